//! The forms of option values: syntax and parser of each.
//!
//! A plain number has HBase's unit (bytes, milliseconds); an explicit unit may follow it. Each form
//! is a module with `FORM`, its text in the documentation, and `parse`, whose error states the
//! expected form.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::cache_files::CacheFiles;
use super::root_uri::RootUri;
use crate::classes::{CompactionPolicy, RateLimiter, SplitPolicy, StoreEngine};

/// The words that mean "no value" in an optional form. HBase uses -1 for it.
const AUTO: &[&str] = &["auto"];
const AUTO_OR_UNSET: &[&str] = &["auto", "-1"];
const OFF: &[&str] = &["-1"];
/// The shortest and longest period of a sink, in milliseconds.
const PERIOD_MS: RangeInclusive<u64> = 100..=86_400_000;
/// Bytes of a checksum chunk. A smaller chunk could not hold a block's header (source: HBase's
/// HFile reader).
const CHUNK_BYTES: RangeInclusive<u64> = 33..=1 << 30;
/// The smallest amount of memory in which a server runs.
const SHARE_BYTES_MIN: u64 = 32 << 20;
const MIB: f64 = 1_048_576.0;
/// The largest second-level block cache: 1 PiB.
const MEBIBYTES_MAX: f64 = 1_073_741_824.0;
/// Longest host name (RFC 1035, section 2.3.4).
const HOST_LEN_MAX: usize = 253;

/// Declares forms: name, type, text in the documentation, parser.
macro_rules! forms {
    ($($name:ident: $type:ty = $form:expr, $parse:expr;)+) => {$(
        pub(super) mod $name {
            #[allow(unused_imports, reason = "not every form needs the helpers")]
            use super::*;

            pub(crate) const FORM: &str = $form;

            pub(crate) fn parse(text: &str) -> Result<$type, String> {
                let parse: fn(&str) -> Option<$type> = $parse;
                parse(text).ok_or_else(|| format!("expected {FORM}"))
            }
        }
    )+};
}

forms! {
    bytes: u64 = "bytes, such as `134217728` or `128 MiB`", bytes_in;
    bytes_or_no_limit: Option<u64> = "bytes, such as `10485760` or `10 MiB`; 0 or less: no limit",
        |text| match text.strip_prefix('-') {
            Some(digits) => digits.parse::<u64>().ok().map(|_| None),
            None => bytes_in(text).map(|bytes| (bytes > 0).then_some(bytes)),
        };
    bytes_or_auto: Option<u64> = "bytes, such as `1048576` or `1 MiB`, or `auto`",
        |text| optional(text, AUTO_OR_UNSET, bytes_in);
    bytes_or_off: Option<u64> = "bytes, such as `104857600` or `100 MiB`; -1: none",
        |text| optional(text, OFF, bytes_in);
    bytes_off_or_auto: Option<u64> = "bytes, such as `104857600` or `100 MiB`, or `auto`; -1: none",
        |text| optional(text, AUTO, |text| off_as_max(text, bytes_in));
    chunk_bytes: u32 = "bytes from 33 to 1 GiB, such as `16384` or `16 KiB`",
        |text| bytes_in(text).filter(|bytes| CHUNK_BYTES.contains(bytes)).map(|bytes| bytes as u32);
    cache_files: CacheFiles = "`file:PATH`, `files:PATH,PATH` or `mmap:PATH`; empty: none", CacheFiles::parse;
    mebibytes_or_none: Option<u64> = "MiB, at least 1, such as `8192`, or bytes with a unit: `8 GiB`; 0: none",
        |text| match text.parse::<f64>() {
            Ok(0.0) => Some(None),
            Ok(mebibytes) => {
                (1.0..=MEBIBYTES_MAX).contains(&mebibytes).then_some(Some((mebibytes * MIB) as u64))
            }
            Err(_) => bytes_in(text).filter(|bytes| *bytes >= MIB as u64).map(Some),
        };
    millis: u64 = "milliseconds, such as `60000`, or with a unit: `60 s`, `5 min`, `1 h`, `7 d`", millis_in;
    millis_or_auto: Option<u64> = "milliseconds, with or without a unit (`1 h`, `7 d`), or `auto`",
        |text| optional(text, AUTO, millis_in);
    millis_or_off: Option<u64> = "milliseconds, with or without a unit (`10 s`); -1: none",
        |text| optional(text, OFF, millis_in);
    millis_off_or_auto: Option<u64> = "milliseconds, with or without a unit (`10 s`), or `auto`; -1: none",
        |text| optional(text, AUTO, |text| off_as_max(text, millis_in));
    seconds: u64 = "seconds from 1 to a day, such as `10`, or with a unit: `500 ms` (at least 100), `1 min`",
        |text| seconds_in(text).filter(|millis| PERIOD_MS.contains(millis));
    chore_seconds: u64 = "seconds, at least 1, such as `3600`, or with a unit: `1 h`, `7 d`",
        |text| seconds_in(text).filter(|millis| *millis >= 1000);
    hour_or_off: Option<u8> = "an hour from 0 to 23; -1: none",
        |text| optional(text, OFF, |text| text.parse().ok().filter(|hour| *hour < 24));
    count: u32 = "a whole number, at least 1", count_in;
    count_or_auto: Option<u32> = "a whole number, at least 1, or `auto`",
        |text| optional(text, AUTO, count_in);
    flag: bool = "`true` or `false`", flag_in;
    flag_or_auto: Option<bool> = "`true`, `false` or `auto`", |text| optional(text, AUTO, flag_in);
    fraction: f64 = "a fraction from 0 to 1, such as `0.4`", |text| number_in(text, 0.0..=1.0);
    factor: f64 = "a factor from 0.01 to 100, such as `0.5`", |text| number_in(text, 0.01..=100.0);
    share: MemoryShare = "bytes, such as `2 GiB` (at least 32 MiB), or a percentage of the limit, such as `40%`",
        |text| match text.strip_suffix('%') {
            Some(percent) => number_in(percent.trim(), 1.0..=100.0).map(|percent| MemoryShare::Part(percent / 100.0)),
            None => bytes_in(text).filter(|bytes| *bytes >= SHARE_BYTES_MIN).map(MemoryShare::Bytes),
        };
    port: u16 = "a port from 0 to 65535; 0: any free port", |text| text.parse().ok();
    peer_port: u16 = "a port from 1 to 65535", |text| text.parse().ok().filter(|port| *port > 0);
    port_or_off: Option<u16> = "a port from 0 to 65535; 0: any free port; -1: none",
        |text| optional(text, OFF, |text| text.parse().ok());
    address: IpAddr = "an IP address of this machine, or `localhost`",
        |text| match text.eq_ignore_ascii_case("localhost") {
            true => Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            false => text.parse().ok(),
        };
    host_or_auto: Option<String> = "a host name or an IP address; empty: chosen by the server", host_in;
    host_or_none: Option<String> = "a host name or an IP address; empty: none", host_in;
    file_or_none: Option<PathBuf> = "a local file; empty: none", |text| {
        let names_file = !text.ends_with('/') && !text.contains('\0');
        names_file.then(|| (!text.is_empty()).then(|| PathBuf::from(text)))
    };
    text: String = "text; empty: none", text_in;
    // Compiled by the code that uses it, which reports its errors.
    pattern: String = "a regular expression that matches a whole name; empty: none", text_in;
    znode: String = "a path that begins with `/` and does not end with `/`", |text| {
        let mut parts = text.strip_prefix('/')?.split('/');
        let fits = parts.all(|part| !matches!(part, "" | "." | "..")) && !text.contains('\0');
        fits.then(|| text.to_owned())
    };
    root_uri: RootUri = "a local directory, as a path or as `file:///…`; in a cluster also `hdfs://NAMESERVICE/PATH`",
        RootUri::parse;
    root_uri_or_none: Option<RootUri> =
        "a local directory, as a path or as `file:///…`; in a cluster also `hdfs://NAMESERVICE/PATH`; empty: none",
        |text| optional(text, &[""], RootUri::parse);
    checksum: Checksum = "`CRC32C`, `CRC32` or `NULL` (no checksums)", |text| match text {
        "CRC32C" => Some(Checksum::Crc32c),
        "CRC32" => Some(Checksum::Crc32),
        "NULL" => Some(Checksum::Null),
        _ => None,
    };
    split_policy: SplitPolicy = "one of HBase's split policies, such as `SteppingSplitPolicy`, \
         `ConstantSizeRegionSplitPolicy`, `IncreasingToUpperBoundRegionSplitPolicy`, \
         `DisabledRegionSplitPolicy`, with or without their package", SplitPolicy::of_class_or_name;
    compaction_policy: CompactionPolicy = "one of HBase's classes `ExploringCompactionPolicy`, \
         `RatioBasedCompactionPolicy` and `FIFOCompactionPolicy`, with or without their package",
        CompactionPolicy::of_class_or_name;
    store_engine: StoreEngine = "one of HBase's classes `DefaultStoreEngine` and \
         `DateTieredStoreEngine`, with or without their package", StoreEngine::of_class_or_name;
    mob_compaction: MobCompactionKind = "`full` or `optimized`", |text| match text {
        "full" => Some(MobCompactionKind::Full),
        "optimized" => Some(MobCompactionKind::Optimized),
        _ => None,
    };
    rate_limiter: RateLimiter = "HBase's class `AverageIntervalRateLimiter` or \
         `FixedIntervalRateLimiter`, with or without their package", RateLimiter::of_class_or_name;
}

/// A value of another form, or `None` for one of `words`.
fn optional<T>(text: &str, words: &[&str], parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    let is_word = words.iter().any(|word| text.eq_ignore_ascii_case(word));
    if is_word { Some(None) } else { parse(text).map(Some) }
}

/// A number, or the largest one for -1 (disabled).
fn off_as_max(text: &str, parse: impl Fn(&str) -> Option<u64>) -> Option<u64> {
    optional(text, OFF, parse).map(|number| number.unwrap_or(u64::MAX))
}

/// Splits `128 MiB` into the number and the unit in lower case.
fn number_and_unit(text: &str) -> Option<(u64, String)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim().to_ascii_lowercase()))
}

/// Bytes with or without a unit, such as `128 MiB`; `None` for another text.
pub fn parse_bytes(text: &str) -> Option<u64> {
    bytes_in(text)
}

/// Milliseconds with or without a unit, such as `7 d`; `None` for another text.
pub fn parse_millis(text: &str) -> Option<u64> {
    millis_in(text)
}

fn bytes_in(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    // Powers of 1024 throughout, as in Hadoop.
    let shift = match unit.as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 10,
        "m" | "mb" | "mib" => 20,
        "g" | "gb" | "gib" => 30,
        "t" | "tb" | "tib" => 40,
        _ => return None,
    };
    number.checked_mul(1 << shift)
}

fn millis_in(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    let factor = match unit.as_str() {
        "" | "ms" => 1,
        "s" | "sec" => 1000,
        "m" | "min" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return None,
    };
    number.checked_mul(factor)
}

/// Milliseconds of a number of seconds, or of a number with a unit.
fn seconds_in(text: &str) -> Option<u64> {
    let plain = text.parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1000));
    plain.or_else(|| millis_in(text))
}

fn count_in(text: &str) -> Option<u32> {
    text.parse().ok().filter(|count| *count > 0)
}

/// Source: Hadoop's `Configuration.getBoolean`, which accepts no other words.
fn flag_in(text: &str) -> Option<bool> {
    text.to_ascii_lowercase().parse().ok()
}

/// A number of the range, which NaN never is.
fn number_in(text: &str, range: RangeInclusive<f64>) -> Option<f64> {
    text.parse().ok().filter(|number| range.contains(number))
}

fn host_in(text: &str) -> Option<Option<String>> {
    // A comma or a space would break server names, which are `host,port,startcode`.
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
    let fits = text.len() <= HOST_LEN_MAX && text.chars().all(is_allowed);
    fits.then(|| (!text.is_empty()).then(|| text.to_owned()))
}

fn text_in(text: &str) -> Option<String> {
    (!text.contains(char::is_control)).then(|| text.to_owned())
}

/// An amount of memory: in bytes, or as a fraction of the process's limit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MemoryShare {
    /// An absolute number of bytes.
    Bytes(u64),
    /// A fraction of the limit, from 0 to 1.
    Part(f64),
}

impl MemoryShare {
    /// The amount in bytes for a process with this memory `limit`.
    pub fn of(self, limit: u64) -> u64 {
        match self {
            MemoryShare::Bytes(bytes) => bytes,
            MemoryShare::Part(part) => (limit as f64 * part) as u64,
        }
    }
}

/// Which values in MOB files a user's major compaction rewrites, as HBase names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MobCompactionKind {
    /// All.
    Full,
    /// Those in small files.
    Optimized,
}

/// Checksum algorithms of HFiles, as HBase names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// No checksums.
    Null,
    /// zlib's CRC-32.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_with_and_without_units() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(bytes::parse(text).ok(), expected, "{text}");
        check("134217728", Some(128 << 20));
        check("128 MiB", Some(128 << 20));
        check("128m", Some(128 << 20));
        check("64KB", Some(64 << 10));
        check("2 G", Some(2 << 30));
        check("1t", Some(1 << 40));
        check("10 b", Some(10));
        check("0", Some(0));
        for text in
            ["", "MiB", "-1", "1.5 GiB", "12 parsecs", "99999999999999999999", "18014398509481984 k", "1 2"]
        {
            check(text, None);
        }
        assert_eq!(bytes_or_no_limit::parse("-1"), Ok(None));
        assert_eq!(bytes_or_no_limit::parse("0"), Ok(None));
        assert_eq!(bytes_or_no_limit::parse("1k"), Ok(Some(1024)));
        assert!(bytes_or_no_limit::parse("-x").is_err());
        assert_eq!(chunk_bytes::parse("33"), Ok(33));
        assert_eq!(millis_or_off::parse("10 s"), Ok(Some(10_000)));
        assert_eq!(millis_or_off::parse("-1"), Ok(None));
        assert_eq!(millis_off_or_auto::parse("auto"), Ok(None));
        assert_eq!(millis_off_or_auto::parse("-1"), Ok(Some(u64::MAX)));
        assert_eq!(bytes_or_off::parse("0"), Ok(Some(0)));
        assert_eq!(bytes_off_or_auto::parse("1 KiB"), Ok(Some(1024)));
        assert!(bytes_or_off::parse("-2").is_err() && millis_or_off::parse("soon").is_err());
        assert!(chunk_bytes::parse("32").is_err());
        assert!(chunk_bytes::parse("2 GiB").is_err());
    }

    #[test]
    fn times_with_and_without_units() {
        let check =
            |text: &str, expected: Option<u64>| assert_eq!(millis::parse(text).ok(), expected, "{text}");
        check("60000", Some(60_000));
        check("60 s", Some(60_000));
        check("5min", Some(300_000));
        check("1h", Some(3_600_000));
        check("7 d", Some(604_800_000));
        check("250 ms", Some(250));
        for text in ["", "s", "-1", "1 fortnight", "999999999999999999 d"] {
            check(text, None);
        }
    }

    #[test]
    fn values_of_sinks() {
        assert_eq!(seconds::parse("10"), Ok(10_000));
        assert_eq!(seconds::parse("250 ms"), Ok(250));
        for text in ["0", "99 ms", "", "-1", "86401", "18446744073709551615", "often"] {
            assert!(seconds::parse(text).is_err(), "{text}");
        }
        assert_eq!((peer_port::parse("1"), peer_port::parse("0").is_err()), (Ok(1), true));
        assert_eq!(host_or_none::parse(""), Ok(None));
        assert!(host_or_none::parse("a b").unwrap_err().contains("empty: none"));
        assert_eq!(file_or_none::parse(""), Ok(None));
        assert_eq!(file_or_none::parse("m.out"), Ok(Some(PathBuf::from("m.out"))));
        assert!(file_or_none::parse("/var/log/").is_err());
        assert!(text::parse("a\nb").is_err());
    }

    #[test]
    fn numbers() {
        assert_eq!(count::parse("3"), Ok(3));
        assert!(count::parse("0").is_err());
        assert_eq!(count_or_auto::parse("Auto"), Ok(None));
        assert_eq!(count_or_auto::parse("32"), Ok(Some(32)));
        assert!(count_or_auto::parse("some").unwrap_err().contains("auto"));
        assert_eq!(fraction::parse("0.4"), Ok(0.4));
        for text in ["1.1", "-0.1", "NaN", "inf", "", "x"] {
            assert!(fraction::parse(text).is_err(), "{text}");
        }
        assert_eq!(port::parse("65535"), Ok(65535));
        assert!(port::parse("65536").is_err());
        assert!(port::parse("-1").is_err());
        assert_eq!(port_or_off::parse("-1"), Ok(None));
        assert_eq!(port_or_off::parse("0"), Ok(Some(0)));
    }

    #[test]
    fn hosts_addresses_and_znodes() {
        assert_eq!(address::parse("localhost"), Ok(IpAddr::V4(Ipv4Addr::LOCALHOST)));
        assert_eq!(address::parse("::1").map(|address| address.is_loopback()), Ok(true));
        assert!(address::parse("my.host").is_err());
        assert_eq!(host_or_auto::parse(""), Ok(None));
        assert_eq!(host_or_auto::parse("my-host.example"), Ok(Some("my-host.example".to_owned())));
        for text in ["a,b", "a b", "héte", &"x".repeat(254)] {
            assert!(host_or_auto::parse(text).is_err(), "{text}");
        }
        assert_eq!(znode::parse("/hbase"), Ok("/hbase".to_owned()));
        for text in ["", "hbase", "/", "/hbase/", "/a//b", "/a/../b", "/a\0"] {
            assert!(znode::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn shares_and_checksums() {
        assert_eq!(share::parse("40%"), Ok(MemoryShare::Part(0.4)));
        assert_eq!(share::parse("2 GiB"), Ok(MemoryShare::Bytes(2 << 30)));
        assert_eq!(MemoryShare::Part(0.25).of(1 << 30), 1 << 28);
        assert_eq!(MemoryShare::Bytes(7).of(1 << 30), 7);
        for text in ["0%", "101%", "%", "1 MiB", "", "NaN%"] {
            assert!(share::parse(text).is_err(), "{text}");
        }
        assert_eq!(checksum::parse("CRC32C"), Ok(Checksum::Crc32c));
        assert!(checksum::parse("MD5").is_err());
    }
}
