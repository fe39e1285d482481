"""Names of functions, as short as they still say which: without types that a path goes through, and without parameters."""
import re

# What is below every stack of a thread, and what perf names the end of one that it has not got whole.
BEGINNINGS = re.compile(r"(clone3?|start_thread|std::(sys|thread)::.*|core::ops::function::.*|\[unknown\])$")
# A hash of what a function was made from, or the version of a library.
ENDING = re.compile(r"::h[0-9a-f]{16}$|@@.*$")
ARROW = re.compile(r"->")
# What inferno-collapse-perf adds to functions of the kernel.
KERNEL = "_[k]"
ALLOCATOR = re.compile(r"_?mi_")
CRATE = re.compile(r"(\w\w+)::")


def short(name):
    """`<a::B<T> as c::D>::e` is `a::B::e`, `a::<impl b::C>::d` is `a::d`; but it is said what is dropped."""
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
            # Parameters, or whose the function is, which its name says mostly.
            out = out.removesuffix("::")
        at = end + 1
    return out


def _before_as(inside):
    """The type of `type as trait`, with a trait that is not in brackets of its own."""
    depth = 0
    for at, letter in enumerate(inside):
        depth += (letter == "<") - (letter == ">")
        if depth == 0 and inside.startswith(" as ", at):
            return inside[:at]
    return inside


def _close(name, at):
    """Where the bracket that opens at a place closes."""
    depth = 0
    for end in range(at, len(name)):
        depth += (name[end] == "<") - (name[end] == ">")
        if depth == 0:
            return end
    return len(name) - 1


def owner(name):
    """The crate that a function is of, or `kernel`, `mimalloc`, or `libc and others`."""
    if name.endswith(KERNEL):
        return "kernel"
    if ALLOCATOR.match(name):
        return "mimalloc"
    crate = CRATE.match(name)
    return crate.group(1) if crate else "libc and others"
