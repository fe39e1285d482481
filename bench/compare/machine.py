"""A virtual machine that takes one nanosecond for each instruction, by qemu's emulator and its `-icount`.

Time in it is a count of instructions: what its Linux accounts to a process as nanoseconds on the processor is the number of
instructions executed for it, in user mode and in the kernel. Neither the machine below nor its load has a part in that. What differs
from a processor's own counter: `rep movs` and `rep stos` count once for each step, not once for all.

Not here: what is run in it (emulated_init.sh) and what is made of the figures (bench/counting).
"""
import glob
import os
import re
import selectors
import shutil
import signal
import stat
import subprocess
import sys
import time

from javatools import die

EMULATOR = "qemu-system-x86_64"
# The package of Debian that always depends on its newest kernel for virtual machines, in which all that is needed here is built in.
KERNEL_PACKAGE = "linux-image-cloud-amd64"
MEMORY = "3G"
# Extensions of which every server's processor has its like. Without `erms` and `fsrm` the kernel and the C library copy by words and
# by vectors; with them they would copy by `rep movsb`, which counts once for each byte here.
PROCESSOR = "max,-erms,-fsrm"
KERNEL_OPTIONS = (
    "console=ttyS0", "quiet", "panic=-1",
    # The processor's clock is exact by construction, and interrupts are accounted to whom they interrupt, as a counter would.
    "tsc=reliable", "tsc=noirqtime", "tsc_early_khz=1000000",
    # The same addresses in each boot: places in hash tables that follow from addresses then stay.
    "nokaslr", "norandmaps",
)
# Between two lines of the console. The longest step is a load, some minutes on a busy machine.
LINE_PATIENCE_S = 900


def emulator():
    """The path of qemu's emulator."""
    path = shutil.which(EMULATOR)
    if not path:
        die(f"no {EMULATOR} found; install it (Debian: apt-get install qemu-system-x86)")
    return path


def busybox():
    """The path of a busybox that needs no libraries."""
    path = shutil.which("busybox")
    if not path or libraries(path):
        die("no static busybox found; install it (Debian: apt-get install busybox-static)")
    return path


def kernel_image(named, directory):
    """A Linux kernel: the one named, else this machine's own, else Debian's unpacked below `directory`, fetched at need."""
    if named:
        return named if os.access(named, os.R_OK) else die(f"cannot read the kernel image {named}")
    images = [path for path in newest_first("/boot/vmlinuz-*") if os.access(path, os.R_OK)] or unpacked(directory)
    if not images:
        fetch_kernel(directory)
        images = unpacked(directory)
    return images[0] if images else die(f"no kernel in Debian's package {KERNEL_PACKAGE}; name one with --kernel-image")


def unpacked(directory):
    return newest_first(os.path.join(directory, "unpacked", "boot", "vmlinuz-*"))


def newest_first(pattern):
    return sorted(glob.glob(pattern), key=os.path.getmtime, reverse=True)


def fetch_kernel(directory):
    """Debian's kernel, unpacked and not installed, so that nothing of this machine's boot changes."""
    advice = f"name one with --kernel-image, or install one (Debian: apt-get install {KERNEL_PACKAGE})"
    if not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg"))):
        die(f"no Linux kernel found in /boot; {advice}")
    os.makedirs(directory, exist_ok=True)
    depends = subprocess.run(["apt-cache", "depends", KERNEL_PACKAGE], capture_output=True, text=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if not package or subprocess.run(["apt-get", "download", package.group(1)], cwd=directory).returncode:
        die(f"no Linux kernel found in /boot, and Debian's could not be fetched (apt-get update?); {advice}")
    for archive in newest_first(os.path.join(directory, "linux-image-*.deb"))[:1]:
        subprocess.run(["dpkg", "-x", archive, os.path.join(directory, "unpacked")], check=True)
        os.remove(archive)


def libraries(binary):
    """The shared libraries that a binary needs, and its loader."""
    told = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", told)))


def stripped(binary, path):
    """A copy of a binary at `path`, without what only a debugger needs."""
    if not shutil.which("objcopy"):
        die("no objcopy found; install it (Debian: apt-get install binutils)")
    subprocess.run(["objcopy", "--strip-debug", binary, path], check=True)
    return path


class FirstFiles:
    """The files that a machine starts with, as the archive that Linux takes (cpio, "newc")."""

    def __init__(self):
        self._archive = bytearray()
        self._directories = {""}
        self._entries = 0

    def add_file(self, path, of):
        """A file of this machine, to be run there."""
        with open(of, "rb") as file:
            self.add_bytes(path, file.read())

    def add_bytes(self, path, contents):
        self._parents(path)
        self._entry(path, stat.S_IFREG | 0o755, contents)

    def add_directory(self, path):
        path = path.strip("/")
        if path not in self._directories:
            self._parents(path)
            self._directories.add(path)
            self._entry(path, stat.S_IFDIR | 0o755)

    def add_console(self):
        """What the first process has as its input and output."""
        self._parents("dev/console")
        self._entry("dev/console", stat.S_IFCHR | 0o600, device=(5, 1))

    def write(self, path):
        self._entry("TRAILER!!!", 0)
        with open(path, "wb") as file:
            file.write(self._archive)

    def _parents(self, path):
        parent = os.path.dirname(path.strip("/"))
        if parent not in self._directories:
            self.add_directory(parent)

    def _entry(self, path, mode, contents=b"", device=(0, 0)):
        name = path.strip("/").encode() + b"\0"
        self._entries += 1
        # Number, mode, user, group, links, time, length, where it lies (2), which device it is (2), length of the name, checksum.
        fields = (self._entries, mode, 0, 0, 1, 0, len(contents), 0, 0, *device, len(name), 0)
        for part in (b"070701" + b"".join(b"%08X" % field for field in fields) + name, contents):
            self._archive += part + bytes(-(len(self._archive) + len(part)) % 4)


def boot(kernel, first_files):
    """Boots a machine and gives the lines of its console until it ends."""
    command = [emulator(), "-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1", "-m", MEMORY, "-cpu", PROCESSOR,
               "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
               # The machine's calendar goes by its instructions as well.
               "-rtc", "base=2024-01-01,clock=vm",
               "-kernel", kernel, "-initrd", first_files, "-append", " ".join(KERNEL_OPTIONS)]
    # A run that is told to end ends its machine as well.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield from lines(process.stdout)
    finally:
        process.kill()
        process.wait()


def lines(pipe):
    """Lines of a pipe until it ends, or ends the script when none comes for long."""
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(pipe, selectors.EVENT_READ)
        until = time.monotonic() + LINE_PATIENCE_S
        while selector.select(max(0, until - time.monotonic())):
            received = os.read(pipe.fileno(), 1 << 16)
            if not received:
                return
            *complete, pending = (pending + received).split(b"\n")
            for line in complete:
                until = time.monotonic() + LINE_PATIENCE_S
                yield line.decode(errors="replace").rstrip("\r")
    die(f"the virtual machine said nothing for {LINE_PATIENCE_S} s; its last words: {pending.decode(errors='replace')}")


def counting_loop(turns):
    """A program for Linux of `turns` times two instructions and four more, by which the count is checked."""
    code = (b"\x48\xb9" + turns.to_bytes(8, "little")  # mov rcx, turns
            + b"\x48\xff\xc9"  # dec rcx
            + b"\x75\xfb"  # jnz, back to dec
            + b"\xb8\x3c\0\0\0" + b"\x31\xff" + b"\x0f\x05")  # exit(0)
    at, header_len = 0x400000, 64 + 56
    words = lambda *pairs: b"".join(value.to_bytes(length, "little") for value, length in pairs)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + words(
        # An executable for x86-64, version 1; entry, program headers, no sections; flags, lengths and numbers of headers.
        (2, 2), (62, 2), (1, 4), (at + header_len, 8), (64, 8), (0, 8), (0, 4), (64, 2), (56, 2), (1, 2), (0, 2), (0, 2), (0, 2))
    length = header_len + len(code)
    # One segment, to be read and executed, all of the file.
    segment = words((1, 4), (5, 4), (0, 8), (at, 8), (at, 8), (length, 8), (length, 8), (0x1000, 8))
    return header + segment + code
