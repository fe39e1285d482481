//! Which files should be on another tier than they are.

use fs::{FilePath, Purpose};

use crate::placement::Placement;
use crate::tier::Tier;
use crate::volume::Health;

/// A file that was read this many times as a whole within about an hour is hot: it belongs on a
/// faster tier. Reads from memory do not count.
const HOT: f64 = 2.0;
/// A file that was read less often is cold. The range between the two keeps a file from moving back
/// and forth.
const COLD: f64 = 0.25;

/// How much of a tier's space may be used, relative to the limit of its rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Level {
    /// The limit. Above it, the tier gives its coldest files to the next one. Files move to a
    /// slower tier up to it.
    Full,
    /// The tier gives files away until it is below this. Hot files move to a faster tier up to it.
    Relieved,
    /// Other files move to a faster tier up to this, so that it does not give them back soon.
    Roomy,
}

impl Level {
    /// The share of the space, where a tier is full at `full`.
    fn share(self, full: f64) -> f64 {
        match self {
            Level::Full => full,
            Level::Relieved => full - 0.1,
            Level::Roomy => full - 0.2,
        }
    }
}

/// A file that may be moved.
#[derive(Clone, Debug)]
pub struct StoredFile {
    /// Its path.
    pub path: FilePath,
    /// What it is for. The expected length is its length.
    pub purpose: Purpose,
}

/// A move that should be made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedMove {
    /// The file.
    pub path: FilePath,
    /// Its length in bytes.
    pub bytes: u64,
    /// The position of the tier that it should be on.
    pub to: usize,
}

/// A file, where it is and how often it was read.
#[derive(Debug)]
pub(crate) struct Located {
    pub(crate) file: StoredFile,
    /// The position of its tier; `None` if it is in the root directory, and that is no part of a
    /// tier.
    pub(crate) tier: Option<usize>,
    /// How often the whole file was read within about the last hour.
    pub(crate) reads: f64,
}

/// The space of a tier, as planned moves change it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TierSpace {
    pub(crate) total_bytes: f64,
    pub(crate) used_bytes: f64,
}

impl TierSpace {
    /// The space of the usable volumes of a tier.
    pub(crate) fn of(tier: &Tier) -> TierSpace {
        let usable = tier.volumes.iter().filter(|volume| volume.health() == Health::Good);
        usable.filter_map(|volume| volume.space()).fold(TierSpace::default(), |sum, space| TierSpace {
            total_bytes: sum.total_bytes + space.total_bytes as f64,
            used_bytes: sum.used_bytes + space.total_bytes.saturating_sub(space.free_bytes) as f64,
        })
    }
}

/// A plan in the making.
struct Planner<'a> {
    placement: &'a Placement,
    tiers: &'a [Tier],
    now_ms: u64,
    spaces: Vec<TierSpace>,
    moves: Vec<PlannedMove>,
}

/// The moves to make, most urgent first: those that free a tier that is nearly full, then those of
/// rules and policies, then those to a faster tier, the file that is read most first.
pub(crate) fn plan(
    (placement, tiers): (&Placement, &[Tier]),
    files: Vec<Located>,
    spaces: Vec<TierSpace>,
    now_ms: u64,
) -> Vec<PlannedMove> {
    debug_assert_eq!(tiers.len(), spaces.len(), "the space of each tier is known");
    let mut planner = Planner { placement, tiers, now_ms, spaces, moves: Vec::new() };
    let mut files = files;
    files.sort_by(|a, b| a.reads.total_cmp(&b.reads));
    planner.relieve_full_tiers(&mut files);
    let wanted = files.into_iter().filter_map(|file| planner.wanted(&file).map(|target| (file, target)));
    let (up, down): (Vec<_>, Vec<_>) = wanted.partition(|(file, target)| target.is_faster_than(file.tier));
    // A file that moves down makes room for one that moves up.
    for (file, target) in down.iter().chain(up.iter().rev()) {
        planner.add(file, *target);
    }
    planner.moves
}

/// The tier that a file should be on, and up to which level it moves there.
#[derive(Clone, Copy, Debug)]
struct Target {
    tier: usize,
    level: Level,
}

impl Target {
    fn is_faster_than(self, tier: Option<usize>) -> bool {
        tier.is_some_and(|tier| self.tier < tier)
    }
}

impl Planner<'_> {
    /// Moves the coldest files of tiers that are nearly full to slower ones. Files whose policy
    /// names their tier stay. `files` are sorted from the coldest to the hottest.
    fn relieve_full_tiers(&mut self, files: &mut Vec<Located>) {
        for tier in 0..self.tiers.len() {
            if self.is_below(tier, 0, Level::Full) {
                continue;
            }
            files.retain(|file| {
                let may_move = file.tier == Some(tier) && !self.placement.is_by_policy(&file.file.purpose);
                if !may_move || self.is_below(tier, 0, Level::Relieved) {
                    return true;
                }
                let slower = (tier + 1..self.tiers.len()).map(|tier| Target { tier, level: Level::Full });
                let target = slower.into_iter().find(|target| self.has_room(file, *target));
                target.inspect(|target| self.add(file, *target)).is_none()
            });
        }
    }

    /// Where a file should be, if it is elsewhere.
    fn wanted(&self, Located { file, tier, reads }: &Located) -> Option<Target> {
        let purpose = &file.purpose;
        let by_rule = *self.placement.order(self.tiers, purpose, self.now_ms).first()?;
        let is_fixed = self.placement.is_by_policy(purpose);
        let target = match *tier {
            Some(now) if !is_fixed && *reads >= HOT => {
                Target { tier: self.placement.fastest_for(purpose).min(now), level: Level::Relieved }
            }
            // Neither hot nor cold: it stays.
            Some(now) if !is_fixed && by_rule > now && *reads >= COLD => return None,
            Some(now) if by_rule < now => Target { tier: by_rule, level: Level::Roomy },
            _ => Target { tier: by_rule, level: Level::Full },
        };
        (Some(target.tier) != *tier).then_some(target)
    }

    /// Adds a move, if the tier still has room.
    fn add(&mut self, file: &Located, to: Target) {
        if !self.has_room(file, to) {
            return;
        }
        let bytes = file.file.purpose.expected_bytes;
        self.spaces[to.tier].used_bytes += bytes as f64;
        if let Some(from) = file.tier {
            self.spaces[from].used_bytes -= bytes as f64;
        }
        self.moves.push(PlannedMove { path: file.file.path.clone(), bytes, to: to.tier });
    }

    fn has_room(&self, file: &Located, to: Target) -> bool {
        self.is_below(to.tier, file.file.purpose.expected_bytes, to.level)
    }

    /// Whether a tier is not above a level with `bytes` more bytes.
    fn is_below(&self, tier: usize, bytes: u64, level: Level) -> bool {
        let space = self.spaces[tier];
        let share = level.share(self.placement.fill_max(tier));
        space.used_bytes + bytes as f64 <= space.total_bytes * share
    }
}

#[cfg(test)]
mod tests {
    use fs::Role;

    use super::*;
    use crate::{DiskClass, TierRule};

    const MIB: u64 = 1 << 20;

    fn tiers() -> Vec<Tier> {
        ["ssd", "hdd"]
            .map(|class| Tier {
                name: class.into(),
                class: DiskClass::built_in(class).unwrap(),
                volumes: Vec::new(),
                bus: None,
                missing: Vec::new(),
            })
            .into()
    }

    /// A file of this role with 10 MiB on a tier.
    fn file(name: &str, role: Role, tier: usize, reads: f64) -> Located {
        let purpose = Purpose { expected_bytes: 10 * MIB, ..Purpose::of(role) };
        Located { file: StoredFile { path: FilePath::new(name), purpose }, tier: Some(tier), reads }
    }

    /// The moves of a plan for tiers of 100 MiB, of which these shares are used, and rules by which
    /// the first tier takes no file with cells from before 500.
    fn moves(used: [f64; 2], files: Vec<Located>) -> Vec<(String, usize)> {
        let recent = TierRule { age_ms_max: Some(500), ..TierRule::default_of(0, 2) };
        let placement = Placement::new(vec![recent, TierRule::default_of(1, 2)]);
        let space =
            |used: f64| TierSpace { total_bytes: 100.0 * MIB as f64, used_bytes: used * 100.0 * MIB as f64 };
        let planned = plan((&placement, &tiers()), files, used.map(space).into(), 1000);
        planned.into_iter().map(|planned| (planned.path.as_str().to_owned(), planned.to)).collect()
    }

    fn expect(moves: &[(&str, usize)]) -> Vec<(String, usize)> {
        moves.iter().map(|(name, to)| ((*name).to_owned(), *to)).collect()
    }

    #[test]
    fn hot_files_move_up_and_cold_ones_down() {
        let files = || {
            vec![
                file("hot", Role::MajorCompaction, 1, HOT),
                file("hottest", Role::MajorCompaction, 1, 2.0 * HOT),
                file("warm below", Role::MajorCompaction, 1, COLD),
                file("warm above", Role::MajorCompaction, 0, COLD),
                file("cold above", Role::MajorCompaction, 0, 0.0),
            ]
        };
        assert_eq!(moves([0.2, 0.2], files()), expect(&[("cold above", 1), ("hottest", 0), ("hot", 0)]));
        let one_fits = moves([0.75, 0.2], files());
        assert_eq!(one_fits, expect(&[("cold above", 1), ("hottest", 0)]), "the cold file makes room");
    }

    #[test]
    fn a_tier_that_is_nearly_full_gives_its_coldest_files_away() {
        let files = vec![
            file("c", Role::Flush, 0, 0.3),
            file("a", Role::Flush, 0, 0.1),
            file("b", Role::Flush, 0, 0.2),
            file("policy", Role::Flush, 0, 0.0),
        ];
        let with_policy = |mut files: Vec<Located>| {
            files[3].file.purpose.policy = Some("ALL_SSD".into());
            files
        };
        assert_eq!(moves([0.95, 0.5], with_policy(files)), expect(&[("a", 1), ("b", 1)]));
        let file = || vec![file("a", Role::Flush, 0, 0.0)];
        assert_eq!(moves([0.89, 0.5], file()), expect(&[]));
        assert_eq!(moves([0.95, 0.85], file()), expect(&[]), "the slower tier has no room");
    }

    #[test]
    fn rules_and_policies_move_files() {
        let aged = |newest_ms| {
            let mut aged = file("aged", Role::Flush, 0, 0.0);
            aged.file.purpose.newest_ms = Some(newest_ms);
            vec![aged]
        };
        assert_eq!(moves([0.2, 0.2], aged(600)), expect(&[]));
        assert_eq!(moves([0.2, 0.2], aged(400)), expect(&[("aged", 1)]));
        let with = |policy: &str, tier, reads| {
            let mut file = file("f", Role::MajorCompaction, tier, reads);
            file.file.purpose.policy = Some(policy.into());
            vec![file]
        };
        assert_eq!(moves([0.2, 0.2], with("ALL_SSD", 1, 0.0)), expect(&[("f", 0)]));
        assert_eq!(moves([0.65, 0.2], with("ALL_SSD", 1, 0.0)), expect(&[]), "not roomy");
        assert_eq!(moves([0.2, 0.2], with("COLD", 0, 10.0)), expect(&[("f", 1)]), "although it is hot");
    }

    #[test]
    fn a_file_outside_of_all_tiers_is_moved_to_one() {
        let outside = Located { tier: None, ..file("old", Role::MajorCompaction, 0, 0.0) };
        assert_eq!(moves([0.2, 0.2], vec![outside]), expect(&[("old", 1)]));
    }

    #[test]
    fn no_second_plan_undoes_the_first() {
        // A file of each heat on each tier, at each fill.
        for used in [0.5, 0.69, 0.75, 0.85, 0.91, 0.99] {
            for reads in [0.0, COLD, 1.0, HOT, 10.0] {
                for role in [Role::Flush, Role::MajorCompaction] {
                    for tier in [0, 1] {
                        let first = moves([used, 0.5], vec![file("f", role, tier, reads)]);
                        let [(_, to)] = &first[..] else { continue };
                        let moved = if *to == 0 { 0.1 } else { -0.1 };
                        let second = moves([used + moved, 0.5 - moved], vec![file("f", role, *to, reads)]);
                        assert_eq!(second, expect(&[]), "{used} {reads} {role:?} {tier}");
                    }
                }
            }
        }
    }
}
