"""What the kernel tells of a process of this machine."""
import os

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """Seconds of processor time that it has taken."""
    with open(f"/proc/{pid}/stat") as stat:
        # The name before may hold anything; utime and stime are the 14th and 15th field.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mib(pid):
    """Memory that it has now."""
    return _number(pid, "status", "VmRSS:") / 1024


def most_resident_mib(pid):
    """The most that it ever had."""
    return _number(pid, "status", "VmHWM:") / 1024


def bytes_from_disk(pid):
    """Bytes that it has had read from a disk; what the page cache gave is not among them."""
    return _number(pid, "io", "read_bytes:")


def _number(pid, file, name):
    with open(f"/proc/{pid}/{file}") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))
