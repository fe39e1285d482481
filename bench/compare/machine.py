"""A virtual machine in which each instruction takes one nanosecond: qemu's emulator with `-icount`.

Its time counts instructions: the CPU nanoseconds that its Linux accounts to a process are the
number of instructions executed for it, in user mode and in the kernel. Neither the host nor its
load has an effect. One difference from a CPU's own counter: `rep movs` and `rep stos` count once
per iteration, not once in total.

Elsewhere: the programs that run in it (emulated_init.sh), and the evaluation of the measurements
(bench/counting).
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
# The Debian package that depends on the newest kernel for virtual machines, which has all needed
# drivers built in.
KERNEL_PACKAGE = "linux-image-cloud-amd64"
MEMORY = "3G"
# Extensions that every server CPU has. Without `erms` and `fsrm` the kernel and the C library copy
# by words and vectors; with them they would copy with `rep movsb`, which counts once per byte here.
PROCESSOR = "max,-erms,-fsrm"
KERNEL_OPTIONS = (
    "console=ttyS0", "quiet", "panic=-1",
    # The CPU's clock is exact by construction, and interrupts are accounted to the interrupted
    # process, as by a counter.
    "tsc=reliable", "tsc=noirqtime", "tsc_early_khz=1000000",
    # The same addresses in each boot, so that positions in hash tables that depend on addresses do
    # not change.
    "nokaslr", "norandmaps",
)
# Limit between two console lines. The longest step is a load, which takes minutes on a busy
# machine.
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
    """A Linux kernel: the named one, else this machine's own, else Debian's, unpacked below
    `directory` and fetched if needed."""
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
    """Fetches Debian's kernel and unpacks it without installing it, so this machine's boot does not
    change."""
    advice = f"name one with --kernel-image, or install one (Debian: apt-get install {KERNEL_PACKAGE})"
    if not all(map(shutil.which, ("apt-get", "apt-cache", "dpkg"))):
        die(f"no Linux kernel found in /boot; {advice}")
    os.makedirs(directory, exist_ok=True)
    depends = subprocess.run(["apt-cache", "depends", KERNEL_PACKAGE], capture_output=True, text=True).stdout
    package = re.search(r"Depends: (linux-image-\S+)", depends)
    if not package or subprocess.run(["apt-get", "download", package.group(1)], cwd=directory).returncode:
        die(f"no Linux kernel found in /boot, and cannot fetch Debian's (run apt-get update?); {advice}")
    for archive in newest_first(os.path.join(directory, "linux-image-*.deb"))[:1]:
        subprocess.run(["dpkg", "-x", archive, os.path.join(directory, "unpacked")], check=True)
        os.remove(archive)


def libraries(binary):
    """The shared libraries that a binary needs, and its loader."""
    told = subprocess.run(["ldd", binary], capture_output=True, text=True).stdout
    return sorted(set(re.findall(r"(/\S+) \(0x", told)))


def stripped(binary, path):
    """A copy of a binary at `path`, without debug information."""
    if not shutil.which("objcopy"):
        die("no objcopy found; install it (Debian: apt-get install binutils)")
    subprocess.run(["objcopy", "--strip-debug", binary, path], check=True)
    return path


class FirstFiles:
    """The initial file system of a machine, as a Linux initramfs (cpio archive, "newc")."""

    def __init__(self):
        self._archive = bytearray()
        self._directories = {""}
        self._entries = 0

    def add_file(self, path, of):
        """Adds an executable file of this machine."""
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
        """Adds the device that is the input and output of the init process."""
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
        # inode, mode, user, group, links, time, length, device it is on (2), device it is (2),
        # length of the name, checksum.
        fields = (self._entries, mode, 0, 0, 1, 0, len(contents), 0, 0, *device, len(name), 0)
        for part in (b"070701" + b"".join(b"%08X" % field for field in fields) + name, contents):
            self._archive += part + bytes(-(len(self._archive) + len(part)) % 4)


def boot(kernel, first_files):
    """Boots a machine and yields the lines of its console until it ends."""
    command = [emulator(), "-accel", "tcg", "-icount", "shift=0,sleep=off", "-smp", "1", "-m", MEMORY, "-cpu", PROCESSOR,
               "-nodefaults", "-no-user-config", "-display", "none", "-serial", "stdio", "-no-reboot",
               # The machine's wall clock follows its instructions too.
               "-rtc", "base=2024-01-01,clock=vm",
               "-kernel", kernel, "-initrd", first_files, "-append", " ".join(KERNEL_OPTIONS)]
    # SIGTERM must end the machine too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(2))
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    try:
        yield from lines(process.stdout)
    finally:
        process.kill()
        process.wait()


def lines(pipe):
    """Yields the lines of a pipe until it ends; ends the script if no line arrives for
    LINE_PATIENCE_S."""
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
    die(f"no output from the virtual machine for {LINE_PATIENCE_S} s; its last output: {pending.decode(errors='replace')}")


def counting_loop(turns):
    """A Linux program of `turns` times two instructions and four more, which checks the count."""
    code = (b"\x48\xb9" + turns.to_bytes(8, "little")  # mov rcx, turns
            + b"\x48\xff\xc9"  # dec rcx
            + b"\x75\xfb"  # jnz, back to dec
            + b"\xb8\x3c\0\0\0" + b"\x31\xff" + b"\x0f\x05")  # exit(0)
    at, header_len = 0x400000, 64 + 56
    words = lambda *pairs: b"".join(value.to_bytes(length, "little") for value, length in pairs)
    header = b"\x7fELF\x02\x01\x01" + bytes(9) + words(
        # An executable for x86-64, version 1; entry, program headers, no sections; flags, lengths
        # and numbers of headers.
        (2, 2), (62, 2), (1, 4), (at + header_len, 8), (64, 8), (0, 8), (0, 4), (64, 2), (56, 2), (1, 2), (0, 2), (0, 2), (0, 2))
    length = header_len + len(code)
    # One readable and executable segment: the whole file.
    segment = words((1, 4), (5, 4), (0, 8), (at, 8), (at, 8), (length, 8), (length, 8), (0x1000, 8))
    return header + segment + code
