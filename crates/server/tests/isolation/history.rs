//! What became of one row: who wrote and read it, when, and what was read; and whether that could have happened one
//! after the other.
//!
//! Each write has a version of its own, so a history is linearizable if and only if its versions can be put in a row
//! (Gibbons and Korach, "Testing shared memories", 1997). What is done with one version, its write and its reads, makes a
//! zone in time. Where the last of it begins after the first of it ended, the version must have been the current one all
//! the while between, so no two such zones may overlap. Where all of it overlaps, it may have been the current one for a
//! moment, but not within another one's time.

use std::collections::BTreeMap;

/// What was done with a version: its number, and when it began and ended. No two moments are the same.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub version: u64,
    pub began: u64,
    pub ended: u64,
}

/// All that was done with a row; before the first write it has version 0.
#[derive(Default)]
pub struct History {
    pub writes: Vec<Done>,
    pub reads: Vec<Done>,
}

/// What was done with one version.
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
    fn of_write(write: &Done) -> Zone {
        let Done { version, began, ended } = *write;
        Zone { version, write_began: began, first_end: ended, last_begin: began }
    }

    /// Whether it must have been current for a time, and not only for a moment.
    fn lasts(&self) -> bool {
        self.first_end < self.last_begin
    }
}

impl History {
    /// # Errors
    /// Why it cannot have happened one after the other.
    pub fn check(&self) -> Result<(), String> {
        let zones = self.zones()?;
        let (mut lasting, moments): (Vec<&Zone>, Vec<&Zone>) = zones.values().partition(|zone| zone.lasts());
        lasting.sort_by_key(|zone| zone.first_end);
        if let Some(pair) = lasting.windows(2).find(|pair| pair[0].last_begin > pair[1].first_end) {
            return Err(format!("seen as current at once: {} and {}", pair[0], pair[1]));
        }
        for moment in moments {
            let at = lasting.partition_point(|zone| zone.first_end < moment.last_begin);
            let around = at.checked_sub(1).map(|at| lasting[at]);
            if let Some(zone) = around.filter(|zone| zone.last_begin > moment.first_end) {
                return Err(format!("{moment} had its time within that of {zone}"));
            }
        }
        Ok(())
    }

    fn zones(&self) -> Result<BTreeMap<u64, Zone>, String> {
        let before_all = Done { version: 0, began: 0, ended: 0 };
        let writes = self.writes.iter().chain([&before_all]);
        let mut zones: BTreeMap<u64, Zone> =
            writes.map(|write| (write.version, Zone::of_write(write))).collect();
        for read in &self.reads {
            let Some(zone) = zones.get_mut(&read.version) else {
                return Err(format!("nobody wrote what was read: {read:?}"));
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

    /// Writes as `w1 begin end`, reads as `r1 begin end`.
    fn checked(text: &str) -> Result<(), String> {
        let mut history = History::default();
        for done in text.split(", ") {
            let words: Vec<&str> = done.split(' ').collect();
            let (kind, version) = words[0].split_at(1);
            let done = Done {
                version: version.parse().unwrap(),
                began: words[1].parse().unwrap(),
                ended: words[2].parse().unwrap(),
            };
            if kind == "w" { history.writes.push(done) } else { history.reads.push(done) }
        }
        history.check()
    }

    #[test]
    fn what_can_be_put_in_a_row_passes() {
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
    fn what_cannot_is_noticed() {
        for bad in [
            "w1 1 2, r0 3 4",                           // An acknowledged write is not seen.
            "w1 1 10, r1 2 3, r0 4 5",                  // One that was seen is not seen any more.
            "w1 1 2, w2 3 4, r1 5 6",                   // An older one is back.
            "w1 1 20, w2 2 19, r1 3 4, r2 5 6, r1 7 8", // They take turns.
            "r1 1 2, w1 3 4",                           // It is read before it is written.
            "w1 1 2, r9 3 4",                           // It was never written.
        ] {
            checked(bad).unwrap_err();
        }
    }
}
