"""The kernel's statistics of a process of this machine."""
import os

_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


def cpu_s(pid):
    """CPU time of the process in seconds."""
    with open(f"/proc/{pid}/stat") as stat:
        # The name before may contain anything; utime and stime are the 14th and 15th field.
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS_PER_S


def resident_mib(pid):
    """Current resident memory."""
    return _number(pid, "status", "VmRSS:") / 1024


def most_resident_mib(pid):
    """Peak resident memory."""
    return _number(pid, "status", "VmHWM:") / 1024


def bytes_from_disk(pid):
    """Bytes read from disk for the process, without reads from the page cache."""
    return _number(pid, "io", "read_bytes:")


def _number(pid, file, name):
    with open(f"/proc/{pid}/{file}") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(name))
