"""Short but distinct names of functions: without the types in a path and without parameters."""
import re

# The outermost frames of every thread, and the name that perf gives to the end of a truncated
# stack.
BEGINNINGS = re.compile(r"(clone3?|start_thread|std::(sys|thread)::.*|core::ops::function::.*|\[unknown\])$")
# The hash of a function, or the version of a library.
ENDING = re.compile(r"::h[0-9a-f]{16}$|@@.*$")
ARROW = re.compile(r"->")
# The suffix that inferno-collapse-perf adds to functions of the kernel.
KERNEL = "_[k]"
ALLOCATOR = re.compile(r"_?mi_")
CRATE = re.compile(r"(\w\w+)::")


def short(name):
    """`<a::B<T> as c::D>::e` becomes `a::B::e`, `a::<impl b::C>::d` becomes `a::d`; `drop_in_place`
    keeps its type."""
    return _path(ENDING.sub("", ARROW.sub("", name))).replace("{{", "{").replace("}}", "}")


def _path(name):
    out, at = "", 0
    while at < len(name):
        if name[at] != "<":
            out += name[at]
            at += 1
            continue
        end = _close(name, at)
        inside = name[at + 1:end]
        if out.endswith("drop_in_place"):
            out += f"<{_path(inside)}>"
        elif not out or out[-1] in " &([":
            out += _path(_before_as(inside))
        else:
            # Parameters, or the type of an impl, which is mostly clear from the name.
            out = out.removesuffix("::")
        at = end + 1
    return out


def _before_as(inside):
    """The type of `type as trait`, at bracket depth 0."""
    depth = 0
    for at, letter in enumerate(inside):
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and inside.startswith(" as ", at):
            return inside[:at]
    return inside


def _close(name, at):
    """The position of the bracket that closes the one at `at`."""
    depth = 0
    for end in range(at, len(name)):
        depth += (name[end] == "<") - (name[end] == ">")
        if depth == 0:
            return end
    return len(name) - 1


def owner(name):
    """The crate of a function, or `kernel`, `mimalloc`, or `libc and others`."""
    if name.endswith(KERNEL):
        return "kernel"
    if ALLOCATOR.match(name):
        return "mimalloc"
    crate = CRATE.match(name)
    return crate.group(1) if crate else "libc and others"
