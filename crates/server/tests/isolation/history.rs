//! The history of one row: its writes and reads with their times. Checks that the history is
//! linearizable.
//!
//! Each write has a unique version, so a history is linearizable if and only if its versions can be
//! ordered (Gibbons and Korach, "Testing shared memories", 1997). The operations on one version,
//! its write and its reads, form a zone in time. If the last operation begins after the first one
//! ended, the version must have been current for all the time between them. So two such zones must
//! not overlap. If all operations overlap, the version may have been current for only a moment,
//! which must not lie within another zone.

use std::collections::BTreeMap;

/// An operation on a version, with the times of its begin and end. All times are distinct.
#[derive(Clone, Copy, Debug)]
pub struct Operation {
    pub version: u64,
    pub began: u64,
    pub ended: u64,
}

/// All operations on a row. Before its first write, the row has version 0.
#[derive(Default)]
pub struct History {
    pub writes: Vec<Operation>,
    pub reads: Vec<Operation>,
}

/// The operations on one version.
struct Zone {
    version: u64,
    write_began: u64,
    first_end: u64,
    last_begin: u64,
}

impl std::fmt::Display for Zone {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Zone { version, write_began, first_end, last_begin } = self;
        write!(
            f,
            "version {version} (written from {write_began}, first done at {first_end}, last begun at {last_begin})"
        )
    }
}

impl Zone {
    fn of_write(write: &Operation) -> Zone {
        let Operation { version, began, ended } = *write;
        Zone { version, write_began: began, first_end: ended, last_begin: began }
    }

    /// Whether the version must have been current for some time, and not only for a moment.
    fn lasts(&self) -> bool {
        self.first_end < self.last_begin
    }
}

impl History {
    /// # Errors
    /// Why the history is not linearizable.
    pub fn check(&self) -> Result<(), String> {
        let zones = self.zones()?;
        let (mut lasting, moments): (Vec<&Zone>, Vec<&Zone>) = zones.values().partition(|zone| zone.lasts());
        lasting.sort_by_key(|zone| zone.first_end);
        if let Some(pair) = lasting.windows(2).find(|pair| pair[0].last_begin > pair[1].first_end) {
            return Err(format!("both current at the same time: {} and {}", pair[0], pair[1]));
        }
        for moment in moments {
            let at = lasting.partition_point(|zone| zone.first_end < moment.last_begin);
            let around = at.checked_sub(1).map(|at| lasting[at]);
            if let Some(zone) = around.filter(|zone| zone.last_begin > moment.first_end) {
                return Err(format!("{moment} was current within {zone}"));
            }
        }
        Ok(())
    }

    fn zones(&self) -> Result<BTreeMap<u64, Zone>, String> {
        let before_all = Operation { version: 0, began: 0, ended: 0 };
        let writes = self.writes.iter().chain([&before_all]);
        let mut zones: BTreeMap<u64, Zone> =
            writes.map(|write| (write.version, Zone::of_write(write))).collect();
        for read in &self.reads {
            let Some(zone) = zones.get_mut(&read.version) else {
                return Err(format!("read a version that was never written: {read:?}"));
            };
            if read.ended < zone.write_began {
                return Err(format!("read before it was written: {read:?}"));
            }
            zone.first_end = zone.first_end.min(read.ended);
            zone.last_begin = zone.last_begin.max(read.began);
        }
        Ok(zones)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Parses a history in which `w1 3 7` is a write and `r1 3 7` a read of version 1 from time 3
    /// to 7.
    fn checked(text: &str) -> Result<(), String> {
        let mut history = History::default();
        for operation in text.split(", ") {
            let words: Vec<&str> = operation.split(' ').collect();
            let (kind, version) = words[0].split_at(1);
            let operation = Operation {
                version: version.parse().unwrap(),
                began: words[1].parse().unwrap(),
                ended: words[2].parse().unwrap(),
            };
            if kind == "w" { history.writes.push(operation) } else { history.reads.push(operation) }
        }
        history.check()
    }

    #[test]
    fn linearizable_histories_pass() {
        for good in [
            "r0 1 2, w1 3 4, r1 5 6",
            "w1 1 10, r0 2 3, r1 4 5, r1 6 7",
            "w1 1 10, w2 2 9, r2 3 4, r1 5 6",
            "w1 1 2, w2 3 10, r1 4 7, r2 5 6",
        ] {
            checked(good).unwrap();
        }
    }

    #[test]
    fn other_histories_are_detected() {
        for bad in [
            "w1 1 2, r0 3 4",                           // A read misses an acknowledged write.
            "w1 1 10, r1 2 3, r0 4 5",                  // A write that was read disappears.
            "w1 1 2, w2 3 4, r1 5 6",                   // An older version returns.
            "w1 1 20, w2 2 19, r1 3 4, r2 5 6, r1 7 8", // Two versions alternate.
            "r1 1 2, w1 3 4",                           // A version is read before its write.
            "w1 1 2, r9 3 4",                           // A version was never written.
        ] {
            checked(bad).unwrap_err();
        }
    }
}
