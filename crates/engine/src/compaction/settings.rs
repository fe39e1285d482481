//! What the choice of files depends on, in HBase's keys.
//!
//! A family may say each of them in its configuration or attributes, a table too; the family goes first, then the
//! table, then the site.

use cell::schema::{FamilyDescriptor, TableDescriptor};
use tracing::warn;

/// Which rule chooses the files of a minor compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The run that gets rid of most files for the fewest bytes.
    Exploring,
    /// From the oldest file on that is not much larger than the newer ones together.
    RatioBased,
    /// Nothing but files that are over as a whole.
    Fifo,
    /// Within windows of time.
    DateTiered,
}

/// The beginning of the keys of windows.
const WINDOWS: &str = "hbase.hstore.compaction.date.tiered.";
/// The package of HBase's classes.
const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";

impl Policy {
    /// The key of the policy's class.
    pub const POLICY_KEY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
    /// The key of the class of the store's engine.
    pub const ENGINE_KEY: &str = "hbase.hstore.engine.class";

    /// The policy of HBase's class for one.
    pub fn of_class(class: &str) -> Option<Policy> {
        match class.strip_prefix(PACKAGE)?.strip_prefix("compactions.")? {
            "ExploringCompactionPolicy" => Some(Policy::Exploring),
            "RatioBasedCompactionPolicy" => Some(Policy::RatioBased),
            "FIFOCompactionPolicy" => Some(Policy::Fifo),
            _ => None,
        }
    }
}

/// The engines of stores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// Files are compacted by a policy of one's choice.
    Default,
    /// Within windows of time.
    DateTiered,
}

impl Engine {
    /// The engine of HBase's class for one.
    pub fn of_class(class: &str) -> Option<Engine> {
        match class.strip_prefix(PACKAGE)? {
            "DefaultStoreEngine" => Some(Engine::Default),
            "DateTieredStoreEngine" => Some(Engine::DateTiered),
            _ => None,
        }
    }
}

/// Settings of the compactions of a store; the defaults are HBase's.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// Which rule chooses (`hbase.hstore.defaultengine.compactionpolicy.class`, `hbase.hstore.engine.class`).
    pub policy: Policy,
    /// Files of a minor compaction at least (`hbase.hstore.compaction.min`).
    pub files_min: usize,
    /// Files of a compaction at most (`hbase.hstore.compaction.max`).
    pub files_max: usize,
    /// Bytes of a run below which the ratio of its files does not matter (`hbase.hstore.compaction.min.size`).
    pub bytes_min: u64,
    /// Bytes of a run at most (`hbase.hstore.compaction.max.size`).
    pub bytes_max: u64,
    /// The same in hours of little load (`hbase.hstore.compaction.max.size.offpeak`).
    pub off_peak_bytes_max: u64,
    /// How much larger a file may be than the others of its run together (`hbase.hstore.compaction.ratio`).
    pub ratio: f64,
    /// The same in hours of little load (`hbase.hstore.compaction.ratio.offpeak`).
    pub off_peak_ratio: f64,
    /// The first hour of little load (`hbase.offpeak.start.hour`), with the one behind the last
    /// (`hbase.offpeak.end.hour`).
    pub off_peak_hours: Option<(u8, u8)>,
    /// Bytes from which a compaction waits for the thread of the long ones
    /// (`hbase.regionserver.thread.compaction.throttle`).
    pub long_bytes: u64,
    /// Milliseconds between major compactions, 0 for none (`hbase.hregion.majorcompaction`).
    pub major_period_ms: i64,
    /// The part of the period by which stores differ (`hbase.hregion.majorcompaction.jitter`).
    pub major_jitter: f64,
    /// Files at which flushes wait for a compaction (`hbase.hstore.blockingStoreFiles`).
    pub blocking_files: usize,
    /// Whether files that are over are dropped before the choice (`hbase.store.delete.expired.storefile`).
    pub drops_expired: bool,
    /// Of ten seconds: how many pass between looks at the store (`hbase.server.compactchecker.interval.multiplier`).
    pub check_multiplier: u64,
    /// Settings of the windows of [`Policy::DateTiered`].
    pub windows: WindowSettings,
}

/// Settings of windows of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSettings {
    /// Milliseconds of the newest windows (`hbase.hstore.compaction.date.tiered.base.window.millis`).
    pub base_ms: i64,
    /// Windows of one length; the next older are so many times as long (`….windows.per.tier`).
    pub per_tier: i64,
    /// Files of the newest window at least (`….incoming.window.min`).
    pub incoming_files_min: usize,
    /// Age from which windows grow no more (`….max.tier.age.millis`).
    pub tier_age_max_ms: i64,
    /// Age of files that minor compactions leave alone (`….max.storefile.age.millis`).
    pub file_age_max_ms: i64,
    /// Whether minor compactions write one file instead of cutting at the window's start
    /// (`….single.output.for.minor.compaction`).
    pub single_output: bool,
}

impl Default for WindowSettings {
    fn default() -> WindowSettings {
        WindowSettings {
            base_ms: 6 * 3_600_000,
            per_tier: 4,
            incoming_files_min: 6,
            tier_age_max_ms: i64::MAX,
            file_age_max_ms: i64::MAX,
            single_output: true,
        }
    }
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            policy: Policy::Exploring,
            files_min: 3,
            files_max: 10,
            bytes_min: 128 << 20,
            bytes_max: i64::MAX as u64,
            off_peak_bytes_max: i64::MAX as u64,
            ratio: f64::from(1.2_f32),
            off_peak_ratio: 5.0,
            off_peak_hours: None,
            long_bytes: 2 * 10 * (128 << 20),
            major_period_ms: 7 * 24 * 3_600_000,
            major_jitter: 0.5,
            blocking_files: 16,
            drops_expired: true,
            check_multiplier: 1000,
            windows: WindowSettings::default(),
        }
    }
}

/// What the site says. Some settings follow from the flush size where nobody gives them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteSettings {
    /// All others; of those below what is here does not count.
    pub settings: Settings,
    /// [`Settings::bytes_min`]; else the flush size.
    pub bytes_min: Option<u64>,
    /// [`Settings::off_peak_bytes_max`]; else as at other hours.
    pub off_peak_bytes_max: Option<u64>,
    /// [`Settings::long_bytes`]; else twice as many flushes as a compaction takes files.
    pub long_bytes: Option<u64>,
    /// [`WindowSettings::tier_age_max_ms`]; else the age of files that are left alone.
    pub tier_age_max_ms: Option<i64>,
}

/// What family and table say, by key.
struct Said<'a> {
    family: &'a FamilyDescriptor,
    table: &'a TableDescriptor,
}

impl Said<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        let (family, table) = (self.family, self.table);
        let of_family =
            || family.attribute(key).or_else(|| family.configuration.get(key).map(String::as_str));
        let of_table = || table.attribute(key).or_else(|| table.configuration.get(key).map(String::as_str));
        of_family().or_else(of_table).map(str::trim)
    }

    /// The number of the first of `keys` that is given; `site` without, and for what is no such number.
    fn number<T: std::str::FromStr + Copy>(&self, keys: &[&str], site: T) -> T {
        let given = keys.iter().find_map(|key| Some((key, self.text(key)?)));
        let Some((key, text)) = given else { return site };
        text.parse().unwrap_or_else(|_| {
            warn!(key, text, table = %self.table.name, "not a number; the site's setting is taken");
            site
        })
    }

    fn count(&self, keys: &[&str], site: usize) -> usize {
        usize::try_from(self.number(keys, i64::try_from(site).unwrap_or(i64::MAX))).unwrap_or(0)
    }

    /// A fraction; HBase keeps these in single precision, and 1.2 is a little more then.
    fn ratio(&self, key: &str, site: f64) -> f64 {
        f64::from(self.number(&[key], site as f32))
    }

    fn flag(&self, key: &str, site: bool) -> bool {
        match self.text(key) {
            Some(text) if text.eq_ignore_ascii_case("true") => true,
            Some(text) if text.eq_ignore_ascii_case("false") => false,
            _ => site,
        }
    }

    fn policy(&self, site: Policy) -> Policy {
        let engine = self.text(Policy::ENGINE_KEY).map(Engine::of_class);
        if engine == Some(Some(Engine::DateTiered)) {
            return Policy::DateTiered;
        }
        let class = self.text(Policy::POLICY_KEY);
        let policy = class.map(Policy::of_class);
        if engine == Some(None) || policy == Some(None) {
            warn!(table = %self.table.name, ?class, "a store engine or compaction policy that is not here: the \
                  default one is taken");
        }
        // A family or table that wants the default engine does not want the windows of the site.
        let site = if engine.is_some() && site == Policy::DateTiered { Policy::Exploring } else { site };
        policy.flatten().unwrap_or(site)
    }

    fn off_peak_hours(&self, site: Option<(u8, u8)>) -> Option<(u8, u8)> {
        let (start, end) = site.map_or((-1, -1), |(start, end)| (i64::from(start), i64::from(end)));
        let start = self.number(&["hbase.offpeak.start.hour"], start);
        let end = self.number(&["hbase.offpeak.end.hour"], end);
        let hour = |number: i64| u8::try_from(number).ok().filter(|hour| *hour < 24);
        Some((hour(start)?, hour(end)?))
    }

    fn windows(&self, site: &WindowSettings, tier_age_max_ms: Option<i64>) -> WindowSettings {
        let number = |key: &str, site: i64| self.number(&[&format!("{WINDOWS}{key}")], site);
        let file_age_max_ms = number("max.storefile.age.millis", site.file_age_max_ms);
        let incoming = self.count(&[&format!("{WINDOWS}incoming.window.min")], site.incoming_files_min);
        WindowSettings {
            base_ms: number("base.window.millis", site.base_ms).max(1),
            per_tier: number("windows.per.tier", site.per_tier).max(2),
            incoming_files_min: incoming.max(1),
            tier_age_max_ms: number("max.tier.age.millis", tier_age_max_ms.unwrap_or(file_age_max_ms)),
            file_age_max_ms,
            single_output: self
                .flag(&format!("{WINDOWS}single.output.for.minor.compaction"), site.single_output),
        }
    }
}

impl Settings {
    /// The settings of the store of `family`, in a region that is flushed at `flush_bytes`.
    pub fn of(
        table: &TableDescriptor,
        family: &FamilyDescriptor,
        site: &SiteSettings,
        flush_bytes: u64,
    ) -> Settings {
        let said = Said { family, table };
        let by_site = &site.settings;
        let files_min = said
            .count(&["hbase.hstore.compaction.min", "hbase.hstore.compactionThreshold"], by_site.files_min);
        let files_max = said.count(&["hbase.hstore.compaction.max"], by_site.files_max);
        let bytes_max = said.number(&["hbase.hstore.compaction.max.size"], by_site.bytes_max);
        let long_bytes = site.long_bytes.unwrap_or((files_max as u64).saturating_mul(2 * flush_bytes));
        let check_multiplier =
            said.number(&["hbase.server.compactchecker.interval.multiplier"], by_site.check_multiplier);
        Settings {
            policy: said.policy(by_site.policy),
            files_min: files_min.max(2),
            files_max,
            bytes_min: said
                .number(&["hbase.hstore.compaction.min.size"], site.bytes_min.unwrap_or(flush_bytes)),
            bytes_max,
            off_peak_bytes_max: said.number(
                &["hbase.hstore.compaction.max.size.offpeak"],
                site.off_peak_bytes_max.unwrap_or(bytes_max),
            ),
            ratio: said.ratio("hbase.hstore.compaction.ratio", by_site.ratio),
            off_peak_ratio: said.ratio("hbase.hstore.compaction.ratio.offpeak", by_site.off_peak_ratio),
            off_peak_hours: said.off_peak_hours(by_site.off_peak_hours),
            long_bytes: said.number(&["hbase.regionserver.thread.compaction.throttle"], long_bytes),
            major_period_ms: said.number(&["hbase.hregion.majorcompaction"], by_site.major_period_ms),
            major_jitter: said.ratio("hbase.hregion.majorcompaction.jitter", by_site.major_jitter),
            blocking_files: said.count(&["hbase.hstore.blockingStoreFiles"], by_site.blocking_files),
            drops_expired: said.flag("hbase.store.delete.expired.storefile", by_site.drops_expired),
            check_multiplier: check_multiplier.max(1),
            windows: said.windows(&by_site.windows, site.tier_age_max_ms),
        }
    }

    /// Bytes of a run at most.
    pub fn bytes_max(&self, off_peak: bool) -> u64 {
        if off_peak { self.off_peak_bytes_max } else { self.bytes_max }
    }

    /// How much larger a file may be than the others of its run together.
    pub fn ratio(&self, off_peak: bool) -> f64 {
        if off_peak { self.off_peak_ratio } else { self.ratio }
    }

    /// Whether `now_ms` is in an hour of little load, counted in UTC.
    pub fn is_off_peak(&self, now_ms: u64) -> bool {
        let hour = (now_ms / 3_600_000 % 24) as u8;
        self.off_peak_hours.is_some_and(|(start, end)| match start <= end {
            true => (start..end).contains(&hour),
            false => hour < end || start <= hour,
        })
    }
}

#[cfg(test)]
mod names {
    use super::{Engine, Policy};

    #[test]
    fn every_class_that_a_table_may_name_is_known() {
        for class in cell::attribute::STORE_ENGINES {
            assert!(Engine::of_class(class).is_some(), "{class}");
        }
        for class in cell::attribute::COMPACTION_POLICIES {
            assert!(Policy::of_class(class).is_some(), "{class}");
        }
    }
}
