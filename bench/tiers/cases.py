"""The mixes of disks that are measured, and the figures of the study that they repeat."""
from dataclasses import dataclass

# The tiers of the study "HDFS HSM and HBase" (Intel, 2016), each as one device that has the speed of
# all its disks together, because a server writes one log. Eight SATA SSDs transfer 1536 MB/s, the
# limit of their controller, and four of them as much. Eight disks of 7200 rpm write 1016 MB/s and
# move eight heads at the same time: the study's times divided by eight, or by four.
SSD = "ssd,read=1536MB/s,write=1536MB/s"
HDD8 = "hdd,read=1120MB/s,write=1016MB/s,seek=0.83ms,sync=0.84ms"
HDD4 = "hdd,read=560MB/s,write=508MB/s,seek=1.67ms,sync=1.68ms"
# The bytes that one worker of the study wrote per second with everything in memory (1800 MB/s).
STUDY_WRITTEN_MB_S = 1800

ALL_ROLES = "log,flush,minor,major,mob"
DATA_ROLES = "flush,minor,major,mob"


@dataclass(frozen=True)
class Tier:
    """A tier of a case: `model` is None for memory as it is."""

    name: str
    model: str | None
    roles: str
    # Longer files go to the next tier; in flush sizes.
    flushes_max: int | None = None

    def option(self, directory, slower, flush_mib):
        """Its part of `grampus.tiers`."""
        # The names are those of classes of disks.
        words = [self.name, self.name, directory, f"roles={self.roles}"]
        if self.model:
            words.append(f"model={self.model},slower={slower:g}")
        if self.flushes_max:
            words.append(f"file.bytes.max={self.flushes_max * flush_mib}MiB")
        return " ".join(words)


@dataclass(frozen=True)
class Case:
    """A mix of tiers, from the fastest to the slowest.

    `slow` and `fast` name the cases with only the slowest and only the fastest tier. The figures
    are throughputs of the study divided by those of these cases; None if it states none.
    """

    name: str
    placement: str
    tiers: tuple
    slow: str = ""
    fast: str = ""
    study_to_slow: float | None = None
    study_to_fast: float | None = None
    # The mean latency of a write divided by that of the slow tier alone.
    study_latency: float | None = None

    def is_mix(self):
        return len(self.tiers) > 1


def alone(name, model, **study):
    """A case with one tier."""
    return Case(name, "everything", (Tier(name, model, ALL_ROLES),), slow="hdd", fast="ram", **study)


def log_apart(slow, model, **study):
    """The log in memory, all files on another tier."""
    tiers = Tier("ram", None, "log"), Tier(slow, model, DATA_ROLES)
    return Case(f"ram+{slow}", f"log in ram, files on {slow}", tiers, slow=slow, fast="ram", **study)


def compacted_apart(fast, fast_model, **study):
    """Log and flushed files on the fast tier, compacted ones on the slow tier."""
    tiers = Tier(fast, fast_model, "log,flush"), Tier("hdd", HDD4, "minor,major,mob")
    return Case(f"{fast}+hdd, compacted", f"log and flushes on {fast}, compacted on hdd", tiers, slow="hdd", fast=fast, **study)


def long_apart(fast, fast_model, **study):
    """Log and files up to a length on the fast tier, longer ones on the slow tier.

    The length was 1.5 GB in the study, a third of the data of a region. A short run writes about
    12 flushes to a region.
    """
    tiers = Tier(fast, fast_model, ALL_ROLES, flushes_max=4), Tier("hdd", HDD4, "minor,major,mob")
    return Case(f"{fast}+hdd, long", f"log and files up to 4 flushes on {fast}, longer on hdd", tiers, slow="hdd", fast=fast, **study)


# Three tiers: a server with all classes of disks.
THREE_TIERS = Case("ram+ssd+hdd", "log in ram, flushes on ssd, compacted on hdd",
                   (Tier("ram", None, "log"), Tier("ssd", SSD, "flush"), Tier("hdd", HDD4, "minor,major,mob")), slow="hdd", fast="ram")

# Throughputs of the study: with 50 GB, RAM 406,577, SSD 320,616 and HDD 250,034 rows/s. With 1 TB,
# SSD 325,148 and HDD 242,801, and RAM 415,318 (extrapolated). The ratio of a mix to its fast tier is
# computed from these and from the ratio to its slow tier.
CASES = (
    alone("ram", None, study_to_slow=1.63, study_latency=0.11),
    alone("ssd", SSD, study_to_slow=1.34, study_to_fast=0.78, study_latency=0.35),
    alone("hdd", HDD8, study_to_fast=0.61),
    log_apart("ssd", SSD, study_to_slow=1.09, study_to_fast=0.85, study_latency=0.67),
    log_apart("hdd", HDD8, study_to_slow=0.89, study_to_fast=0.52),
    long_apart("ssd", SSD, study_to_slow=1.36, study_to_fast=1.02, study_latency=0.35),
    compacted_apart("ssd", SSD),
    compacted_apart("ram", None),
    THREE_TIERS,
)
