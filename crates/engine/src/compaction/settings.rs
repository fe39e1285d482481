//! Compaction settings, in HBase's keys.
//!
//! A family or table can set each of them in its configuration or attributes. The family takes
//! precedence over the table, and the table over the site.

use base::classes::{CompactionPolicy, StoreEngine};
use cell::schema::{FamilyDescriptor, TableDescriptor};
use tracing::warn;

/// Which rule selects the files of a minor compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// The run that removes the most files for the fewest bytes.
    Exploring,
    /// All files from the first one on that is not much larger than the newer ones together.
    RatioBased,
    /// Only files that are completely expired.
    Fifo,
    /// Files within time windows.
    DateTiered,
}

/// Prefix of the keys of time windows.
const WINDOWS: &str = "hbase.hstore.compaction.date.tiered.";

impl Policy {
    /// Key of the compaction policy class.
    pub const POLICY_KEY: &str = "hbase.hstore.defaultengine.compactionpolicy.class";
    /// Key of the store engine class.
    pub const ENGINE_KEY: &str = "hbase.hstore.engine.class";

    /// The policy that a store engine and its compaction policy select. Time windows are a store
    /// engine of their own in HBase.
    pub fn of(engine: StoreEngine, policy: CompactionPolicy) -> Policy {
        match (engine, policy) {
            (StoreEngine::DateTiered, _) => Policy::DateTiered,
            (StoreEngine::Default, CompactionPolicy::Exploring) => Policy::Exploring,
            (StoreEngine::Default, CompactionPolicy::RatioBased) => Policy::RatioBased,
            (StoreEngine::Default, CompactionPolicy::Fifo) => Policy::Fifo,
        }
    }
}

/// Compaction settings of a store. The defaults are HBase's.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings {
    /// The policy (`hbase.hstore.defaultengine.compactionpolicy.class`,
    /// `hbase.hstore.engine.class`).
    pub policy: Policy,
    /// Minimum number of files of a minor compaction (`hbase.hstore.compaction.min`).
    pub files_min: usize,
    /// Maximum number of files of a compaction (`hbase.hstore.compaction.max`).
    pub files_max: usize,
    /// Total bytes of a run below which the ratio of its files does not matter
    /// (`hbase.hstore.compaction.min.size`).
    pub bytes_min: u64,
    /// Maximum bytes of a run (`hbase.hstore.compaction.max.size`).
    pub bytes_max: u64,
    /// Maximum bytes of a run in off-peak hours (`hbase.hstore.compaction.max.size.offpeak`).
    pub off_peak_bytes_max: u64,
    /// Maximum size of a file relative to the others of its run together
    /// (`hbase.hstore.compaction.ratio`).
    pub ratio: f64,
    /// The same ratio in off-peak hours (`hbase.hstore.compaction.ratio.offpeak`).
    pub off_peak_ratio: f64,
    /// The first off-peak hour (`hbase.offpeak.start.hour`), and the hour after the last one
    /// (`hbase.offpeak.end.hour`).
    pub off_peak_hours: Option<(u8, u8)>,
    /// Bytes above which a compaction is queued for the thread for long compactions
    /// (`hbase.regionserver.thread.compaction.throttle`).
    pub long_bytes: u64,
    /// Milliseconds between major compactions; 0 for none (`hbase.hregion.majorcompaction`).
    pub major_period_ms: i64,
    /// Fraction of the period by which stores differ (`hbase.hregion.majorcompaction.jitter`).
    pub major_jitter: f64,
    /// Number of files at which flushes wait for a compaction (`hbase.hstore.blockingStoreFiles`).
    pub blocking_files: usize,
    /// Whether expired files are dropped before the selection
    /// (`hbase.store.delete.expired.storefile`).
    pub drops_expired: bool,
    /// Interval between checks of the store, in units of ten seconds
    /// (`hbase.server.compactchecker.interval.multiplier`).
    pub check_multiplier: u64,
    /// The time windows of [`Policy::DateTiered`].
    pub windows: WindowSettings,
}

/// Settings of time windows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WindowSettings {
    /// Length of the newest windows in milliseconds
    /// (`hbase.hstore.compaction.date.tiered.base.window.millis`).
    pub base_ms: i64,
    /// Number of windows of one length; the next older ones are longer by this factor
    /// (`….windows.per.tier`).
    pub per_tier: i64,
    /// Minimum number of files of the newest window (`….incoming.window.min`).
    pub incoming_files_min: usize,
    /// Age in milliseconds from which windows no longer grow (`….max.tier.age.millis`).
    pub tier_age_max_ms: i64,
    /// Age in milliseconds from which minor compactions ignore files
    /// (`….max.storefile.age.millis`).
    pub file_age_max_ms: i64,
    /// Whether minor compactions write one file instead of splitting it at the window's start
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

/// The site's settings. Some that are not set derive from the flush size.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SiteSettings {
    /// All other settings. Its values for the fields below are ignored.
    pub settings: Settings,
    /// [`Settings::bytes_min`]; by default the flush size.
    pub bytes_min: Option<u64>,
    /// [`Settings::off_peak_bytes_max`]; by default as in other hours.
    pub off_peak_bytes_max: Option<u64>,
    /// [`Settings::long_bytes`]; by default twice the flush size times [`Settings::files_max`].
    pub long_bytes: Option<u64>,
    /// [`WindowSettings::tier_age_max_ms`]; by default [`WindowSettings::file_age_max_ms`].
    pub tier_age_max_ms: Option<i64>,
}

/// The settings of a family and its table, by key.
struct TableOverrides<'a> {
    family: &'a FamilyDescriptor,
    table: &'a TableDescriptor,
}

impl TableOverrides<'_> {
    fn text(&self, key: &str) -> Option<&str> {
        let (family, table) = (self.family, self.table);
        let of_family =
            || family.attribute(key).or_else(|| family.configuration.get(key).map(String::as_str));
        let of_table = || table.attribute(key).or_else(|| table.configuration.get(key).map(String::as_str));
        of_family().or_else(of_table).map(str::trim)
    }

    /// The number at the first of `keys` that is set; `site` if none is, or if the value is not a
    /// number.
    fn number<T: std::str::FromStr + Copy>(&self, keys: &[&str], site: T) -> T {
        let given = keys.iter().find_map(|key| Some((key, self.text(key)?)));
        let Some((key, text)) = given else { return site };
        text.parse().unwrap_or_else(|_| {
            warn!(key, text, table = %self.table.name, "not a number; using the site's setting");
            site
        })
    }

    fn count(&self, keys: &[&str], site: usize) -> usize {
        usize::try_from(self.number(keys, i64::try_from(site).unwrap_or(i64::MAX))).unwrap_or(0)
    }

    /// A fraction. HBase stores these in single precision, where 1.2 is slightly more.
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
        let engine = self.text(Policy::ENGINE_KEY).map(StoreEngine::of_class);
        if engine == Some(Some(StoreEngine::DateTiered)) {
            return Policy::DateTiered;
        }
        let class = self.text(Policy::POLICY_KEY);
        let policy = class.map(CompactionPolicy::of_class);
        if engine == Some(None) || policy == Some(None) {
            warn!(table = %self.table.name, ?class, "unsupported store engine or compaction policy; using \
                  the default");
        }
        // A family or table that sets an engine does not inherit the site's windows.
        let site = if engine.is_some() && site == Policy::DateTiered { Policy::Exploring } else { site };
        policy.flatten().map_or(site, |policy| Policy::of(StoreEngine::Default, policy))
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
    /// The settings of the store of `family`, in a region with the flush size `flush_bytes`.
    pub fn of(
        table: &TableDescriptor,
        family: &FamilyDescriptor,
        site: &SiteSettings,
        flush_bytes: u64,
    ) -> Settings {
        let overrides = TableOverrides { family, table };
        let by_site = &site.settings;
        let files_min = overrides
            .count(&["hbase.hstore.compaction.min", "hbase.hstore.compactionThreshold"], by_site.files_min);
        let files_max = overrides.count(&["hbase.hstore.compaction.max"], by_site.files_max);
        let bytes_max = overrides.number(&["hbase.hstore.compaction.max.size"], by_site.bytes_max);
        let long_bytes = site.long_bytes.unwrap_or((files_max as u64).saturating_mul(2 * flush_bytes));
        let check_multiplier =
            overrides.number(&["hbase.server.compactchecker.interval.multiplier"], by_site.check_multiplier);
        Settings {
            policy: overrides.policy(by_site.policy),
            files_min: files_min.max(2),
            files_max,
            bytes_min: overrides
                .number(&["hbase.hstore.compaction.min.size"], site.bytes_min.unwrap_or(flush_bytes)),
            bytes_max,
            off_peak_bytes_max: overrides.number(
                &["hbase.hstore.compaction.max.size.offpeak"],
                site.off_peak_bytes_max.unwrap_or(bytes_max),
            ),
            ratio: overrides.ratio("hbase.hstore.compaction.ratio", by_site.ratio),
            off_peak_ratio: overrides.ratio("hbase.hstore.compaction.ratio.offpeak", by_site.off_peak_ratio),
            off_peak_hours: overrides.off_peak_hours(by_site.off_peak_hours),
            long_bytes: overrides.number(&["hbase.regionserver.thread.compaction.throttle"], long_bytes),
            major_period_ms: overrides.number(&["hbase.hregion.majorcompaction"], by_site.major_period_ms),
            major_jitter: overrides.ratio("hbase.hregion.majorcompaction.jitter", by_site.major_jitter),
            blocking_files: overrides.count(&["hbase.hstore.blockingStoreFiles"], by_site.blocking_files),
            drops_expired: overrides.flag("hbase.store.delete.expired.storefile", by_site.drops_expired),
            check_multiplier: check_multiplier.max(1),
            windows: overrides.windows(&by_site.windows, site.tier_age_max_ms),
        }
    }

    /// Maximum bytes of a run.
    pub fn bytes_max(&self, off_peak: bool) -> u64 {
        if off_peak { self.off_peak_bytes_max } else { self.bytes_max }
    }

    /// Maximum size of a file relative to the others of its run together.
    pub fn ratio(&self, off_peak: bool) -> f64 {
        if off_peak { self.off_peak_ratio } else { self.ratio }
    }

    /// Whether `now_ms` is in an off-peak hour, in UTC.
    pub fn is_off_peak(&self, now_ms: u64) -> bool {
        let hour = (now_ms / 3_600_000 % 24) as u8;
        self.off_peak_hours.is_some_and(|(start, end)| match start <= end {
            true => (start..end).contains(&hour),
            false => hour < end || start <= hour,
        })
    }
}
