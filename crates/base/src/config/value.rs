//! The forms of values: how each is written and parsed.
//!
//! A plain number means what HBase means by it (bytes, milliseconds); a unit may be written behind it. Each form is a
//! module with `FORM`, the words of the documentation, and `parse`, whose error says what was expected.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

type Parsed<T> = Result<T, String>;

// Splits "128 MiB" into its digits and the unit in lower case.
fn number_and_unit(text: &str) -> Option<(u64, String)> {
    let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let (number, unit) = text.split_at(digits);
    Some((number.parse().ok()?, unit.trim().to_ascii_lowercase()))
}

fn bytes_of(text: &str) -> Option<u64> {
    let (number, unit) = number_and_unit(text)?;
    // Powers of 1024 throughout, as Hadoop reads the letters.
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

pub(super) mod bytes {
    pub(crate) const FORM: &str = "bytes, such as `134217728` or `128 MiB`";
    pub(crate) fn parse(text: &str) -> super::Parsed<u64> {
        super::bytes_of(text).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod bytes_or_no_limit {
    pub(crate) const FORM: &str = "bytes, such as `10485760` or `10 MiB`; 0 or less: no limit";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if text.strip_prefix('-').is_some_and(|digits| digits.parse::<u64>().is_ok()) {
            return Ok(None);
        }
        let bytes = super::bytes_of(text).ok_or_else(|| format!("expected {FORM}"))?;
        Ok((bytes > 0).then_some(bytes))
    }
}

pub(super) mod bytes_or_auto {
    pub(crate) const FORM: &str = "bytes, such as `1048576` or `1 MiB`, or `auto`";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        // HBase has -1 for none.
        if text.eq_ignore_ascii_case("auto") || text == "-1" {
            return Ok(None);
        }
        super::bytes_of(text).map(Some).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod split_policy {
    const PACKAGE: &str = "org.apache.hadoop.hbase.regionserver.";
    const CLASSES: [&str; 7] = [
        "BusyRegionSplitPolicy",
        "ConstantSizeRegionSplitPolicy",
        "DelimitedKeyPrefixRegionSplitPolicy",
        "DisabledRegionSplitPolicy",
        "IncreasingToUpperBoundRegionSplitPolicy",
        "KeyPrefixRegionSplitPolicy",
        "SteppingSplitPolicy",
    ];
    pub(crate) const FORM: &str = "one of HBase's split policies, such as `SteppingSplitPolicy`, `ConstantSizeRegionSplitPolicy`, \
         `IncreasingToUpperBoundRegionSplitPolicy`, `DisabledRegionSplitPolicy`, with or without their package";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        match CLASSES.contains(&text.strip_prefix(PACKAGE).unwrap_or(text)) {
            true => Ok(text.to_owned()),
            false => Err(format!("expected {FORM}")),
        }
    }
}

pub(super) mod chunk_bytes {
    // Source: HBase's HFile reader; a smaller chunk could not hold a block's header.
    const MIN: u32 = 33;
    pub(crate) const FORM: &str = "bytes from 33 to 1 GiB, such as `16384` or `16 KiB`";
    pub(crate) fn parse(text: &str) -> super::Parsed<u32> {
        let fits = |bytes: &u64| (u64::from(MIN)..=1 << 30).contains(bytes);
        super::bytes_of(text).filter(fits).map(|bytes| bytes as u32).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod millis {
    pub(crate) const FORM: &str =
        "milliseconds, such as `60000`, or with a unit: `60 s`, `5 min`, `1 h`, `7 d`";
    pub(crate) fn parse(text: &str) -> super::Parsed<u64> {
        let parsed = super::number_and_unit(text).and_then(|(number, unit)| {
            let factor = match unit.as_str() {
                "" | "ms" => 1,
                "s" | "sec" => 1000,
                "m" | "min" => 60_000,
                "h" => 3_600_000,
                "d" => 86_400_000,
                _ => return None,
            };
            number.checked_mul(factor)
        });
        parsed.ok_or_else(|| format!("expected {FORM}"))
    }
}

/// Values that HBase switches off by -1.
fn is_off(text: &str) -> bool {
    text == "-1"
}

pub(super) mod millis_or_off {
    pub(crate) const FORM: &str = "milliseconds, with or without a unit (`10 s`); -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if super::is_off(text) {
            return Ok(None);
        }
        super::millis::parse(text).map(Some).map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod bytes_or_off {
    pub(crate) const FORM: &str = "bytes, such as `104857600` or `100 MiB`; -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if super::is_off(text) {
            return Ok(None);
        }
        super::bytes_of(text).map(Some).ok_or_else(|| format!("expected {FORM}"))
    }
}

/// `auto` is none; what is switched off is beyond all that there is.
pub(super) mod millis_off_or_auto {
    pub(crate) const FORM: &str = "milliseconds, with or without a unit (`10 s`), or `auto`; -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        let parsed = super::millis_or_off::parse(text).map_err(|_| format!("expected {FORM}"))?;
        Ok(Some(parsed.unwrap_or(u64::MAX)))
    }
}

/// `auto` is none; what is switched off is beyond all that there is.
pub(super) mod bytes_off_or_auto {
    pub(crate) const FORM: &str = "bytes, such as `104857600` or `100 MiB`, or `auto`; -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        let parsed = super::bytes_or_off::parse(text).map_err(|_| format!("expected {FORM}"))?;
        Ok(Some(parsed.unwrap_or(u64::MAX)))
    }
}

pub(super) mod seconds {
    pub(crate) const FORM: &str =
        "seconds from 1 to a day, such as `10`, or with a unit: `500 ms` (at least 100), `1 min`";
    pub(crate) fn parse(text: &str) -> super::Parsed<u64> {
        const MS_MIN: u64 = 100;
        const MS_MAX: u64 = 86_400_000;
        let plain = text.parse::<u64>().ok().map(|seconds| seconds.saturating_mul(1000));
        let millis = plain.or_else(|| super::millis::parse(text).ok());
        let fits = |millis: &u64| (MS_MIN..=MS_MAX).contains(millis);
        millis.filter(fits).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod millis_or_auto {
    pub(crate) const FORM: &str = "milliseconds, with or without a unit (`1 h`, `7 d`), or `auto`";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u64>> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        super::millis::parse(text).map(Some).map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod hour_or_off {
    pub(crate) const FORM: &str = "an hour from 0 to 23; -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u8>> {
        if text == "-1" {
            return Ok(None);
        }
        text.parse().ok().filter(|hour| *hour < 24).map(Some).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod compaction_policy {
    /// Of the package `org.apache.hadoop.hbase.regionserver.compactions`.
    const CLASSES: [&str; 3] =
        ["ExploringCompactionPolicy", "RatioBasedCompactionPolicy", "FIFOCompactionPolicy"];
    pub(crate) const FORM: &str = "one of HBase's classes `ExploringCompactionPolicy`, `RatioBasedCompactionPolicy` and \
                                   `FIFOCompactionPolicy`, with their package";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        let name = text.strip_prefix("org.apache.hadoop.hbase.regionserver.compactions.");
        match name.is_some_and(|name| CLASSES.contains(&name)) {
            true => Ok(text.to_owned()),
            false => Err(format!("expected {FORM}")),
        }
    }
}

pub(super) mod store_engine {
    /// Of the package `org.apache.hadoop.hbase.regionserver`.
    const CLASSES: [&str; 2] = ["DefaultStoreEngine", "DateTieredStoreEngine"];
    pub(crate) const FORM: &str =
        "one of HBase's classes `DefaultStoreEngine` and `DateTieredStoreEngine`, with their package";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        let name = text.strip_prefix("org.apache.hadoop.hbase.regionserver.");
        match name.is_some_and(|name| CLASSES.contains(&name)) {
            true => Ok(text.to_owned()),
            false => Err(format!("expected {FORM}")),
        }
    }
}

pub(super) mod count {
    pub(crate) const FORM: &str = "a whole number, at least 1";
    pub(crate) fn parse(text: &str) -> super::Parsed<u32> {
        text.parse().ok().filter(|count| *count > 0).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod count_or_auto {
    pub(crate) const FORM: &str = "a whole number, at least 1, or `auto`";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u32>> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        super::count::parse(text).map(Some).map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod flag {
    // Source: Hadoop's `Configuration.getBoolean`, which takes no other words.
    pub(crate) const FORM: &str = "`true` or `false`";
    pub(crate) fn parse(text: &str) -> super::Parsed<bool> {
        match text.to_ascii_lowercase().as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("expected {FORM}")),
        }
    }
}

pub(super) mod flag_or_auto {
    pub(crate) const FORM: &str = "`true`, `false` or `auto`";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<bool>> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(None);
        }
        super::flag::parse(text).map(Some).map_err(|_| format!("expected {FORM}"))
    }
}

fn number_in(text: &str, range: std::ops::RangeInclusive<f64>, form: &str) -> Parsed<f64> {
    // NaN is in no range.
    text.parse().ok().filter(|number| range.contains(number)).ok_or_else(|| format!("expected {form}"))
}

pub(super) mod fraction {
    pub(crate) const FORM: &str = "a fraction from 0 to 1, such as `0.4`";
    pub(crate) fn parse(text: &str) -> super::Parsed<f64> {
        super::number_in(text, 0.0..=1.0, FORM)
    }
}

pub(super) mod factor {
    pub(crate) const FORM: &str = "a factor from 0.01 to 100, such as `0.5`";
    pub(crate) fn parse(text: &str) -> super::Parsed<f64> {
        super::number_in(text, 0.01..=100.0, FORM)
    }
}

pub(super) mod port {
    pub(crate) const FORM: &str = "a port; 0: any that is free";
    pub(crate) fn parse(text: &str) -> super::Parsed<u16> {
        text.parse().map_err(|_| "expected a port from 0 to 65535".to_owned())
    }
}

pub(super) mod peer_port {
    pub(crate) const FORM: &str = "a port from 1 to 65535";
    pub(crate) fn parse(text: &str) -> super::Parsed<u16> {
        text.parse().ok().filter(|port| *port > 0).ok_or_else(|| format!("expected {FORM}"))
    }
}

pub(super) mod port_or_off {
    pub(crate) const FORM: &str = "a port; 0: any that is free; -1: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<u16>> {
        if text == "-1" { Ok(None) } else { super::port::parse(text).map(Some) }
    }
}

pub(super) mod address {
    use super::{IpAddr, Ipv4Addr};
    pub(crate) const FORM: &str = "an IP address of this machine, or `localhost`";
    pub(crate) fn parse(text: &str) -> super::Parsed<IpAddr> {
        if text.eq_ignore_ascii_case("localhost") {
            return Ok(IpAddr::V4(Ipv4Addr::LOCALHOST));
        }
        text.parse().map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod host_or_auto {
    // Source: RFC 1035, section 2.3.4; the limit of a name as a whole.
    const LEN_MAX: usize = 253;
    pub(crate) const FORM: &str = "a host name or an IP address; empty: chosen by the server";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<String>> {
        // A comma or a blank would break server names, which are `host,port,startcode`.
        let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | ':');
        if text.len() > LEN_MAX || !text.chars().all(allowed) {
            return Err(format!("expected {FORM}"));
        }
        Ok((!text.is_empty()).then(|| text.to_owned()))
    }
}

pub(super) mod host_or_none {
    pub(crate) const FORM: &str = "a host name or an IP address; empty: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<String>> {
        super::host_or_auto::parse(text).map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod file_or_none {
    use super::PathBuf;
    pub(crate) const FORM: &str = "a file of this machine; empty: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<Option<PathBuf>> {
        if text.ends_with('/') || text.contains('\0') {
            return Err(format!("expected {FORM}"));
        }
        Ok((!text.is_empty()).then(|| PathBuf::from(text)))
    }
}

pub(super) mod text {
    pub(crate) const FORM: &str = "a text; empty: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        if text.contains(char::is_control) { Err(format!("expected {FORM}")) } else { Ok(text.to_owned()) }
    }
}

pub(super) mod pattern {
    // Compiled by who uses it, which is where its error comes from.
    pub(crate) const FORM: &str = "a regular expression that fits a whole name; empty: none";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        super::text::parse(text).map_err(|_| format!("expected {FORM}"))
    }
}

pub(super) mod znode {
    pub(crate) const FORM: &str = "a path that begins with `/`";
    pub(crate) fn parse(text: &str) -> super::Parsed<String> {
        let parts_fit = || text[1..].split('/').all(|part| !matches!(part, "" | "." | ".."));
        if !text.starts_with('/') || !parts_fit() || text.contains('\0') {
            return Err(format!("expected {FORM}, without a `/` at its end"));
        }
        Ok(text.to_owned())
    }
}

pub(super) mod root_dir {
    use super::PathBuf;
    pub(crate) const FORM: &str = "a directory of this machine, plain or as `file:///…`";
    pub(crate) fn parse(text: &str) -> super::Parsed<PathBuf> {
        let path = match text.split_once(':') {
            // What precedes is no scheme, as in `./a:b`.
            Some((scheme, _)) if scheme.contains(['/', '.']) => text,
            Some(("file", rest)) => local_path(rest)?,
            Some(("hdfs", _)) => {
                return Err("hdfs:// is not supported yet; give a directory of this machine".to_owned());
            }
            Some((scheme, _)) => {
                return Err(format!("{scheme}: is not supported; give a directory of this machine"));
            }
            None => text,
        };
        if path.is_empty() || path.contains('\0') {
            return Err(format!("expected {FORM}"));
        }
        Ok(PathBuf::from(path))
    }

    // `///path`, `//localhost/path` and `/path`, behind `file:`.
    fn local_path(rest: &str) -> super::Parsed<&str> {
        let path = match rest.strip_prefix("//") {
            Some(authority) => authority.strip_prefix("localhost").unwrap_or(authority),
            None => rest,
        };
        if path.starts_with('/') { Ok(path) } else { Err(format!("expected {FORM}")) }
    }
}

/// How memory is given: in bytes, or as a part of what the process may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// This many.
    Bytes(u64),
    /// This part of the limit; from 0 to 1.
    Part(f64),
}

impl Share {
    /// The bytes of a share, where `limit` is what the process may have.
    pub fn of(self, limit: u64) -> u64 {
        match self {
            Share::Bytes(bytes) => bytes,
            Share::Part(part) => (limit as f64 * part) as u64,
        }
    }
}

pub(super) mod share {
    use super::Share;
    pub(crate) const FORM: &str =
        "bytes, such as `2 GiB` (at least 32 MiB), or a part of the limit, such as `40%`";
    const BYTES_MIN: u64 = 32 << 20;
    pub(crate) fn parse(text: &str) -> super::Parsed<Share> {
        let share = match text.strip_suffix('%') {
            Some(percent) => {
                super::number_in(percent.trim(), 1.0..=100.0, FORM).ok().map(|p| Share::Part(p / 100.0))
            }
            None => super::bytes_of(text).filter(|bytes| *bytes >= BYTES_MIN).map(Share::Bytes),
        };
        share.ok_or_else(|| format!("expected {FORM}"))
    }
}

/// HBase's names of the checksums in HFiles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checksum {
    /// No checksums.
    Null,
    /// zlib's CRC-32.
    Crc32,
    /// CRC-32C (Castagnoli).
    Crc32c,
}

pub(super) mod checksum {
    use super::Checksum;
    pub(crate) const FORM: &str = "`CRC32C`, `CRC32` or `NULL` (no checksums)";
    pub(crate) fn parse(text: &str) -> super::Parsed<Checksum> {
        match text {
            "CRC32C" => Ok(Checksum::Crc32c),
            "CRC32" => Ok(Checksum::Crc32),
            "NULL" => Ok(Checksum::Null),
            _ => Err(format!("expected {FORM}")),
        }
    }
}

/// HBase's classes of rate limiters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateLimiter {
    /// `AverageIntervalRateLimiter`.
    Average,
    /// `FixedIntervalRateLimiter`.
    Fixed,
}

pub(super) mod rate_limiter {
    use super::RateLimiter;
    pub(crate) const FORM: &str = "the name of HBase's class `AverageIntervalRateLimiter` or \
         `FixedIntervalRateLimiter`, behind `org.apache.hadoop.hbase.quotas.`";
    pub(crate) fn parse(text: &str) -> super::Parsed<RateLimiter> {
        match text.strip_prefix("org.apache.hadoop.hbase.quotas.") {
            Some("AverageIntervalRateLimiter") => Ok(RateLimiter::Average),
            Some("FixedIntervalRateLimiter") => Ok(RateLimiter::Fixed),
            _ => Err(format!("expected {FORM}")),
        }
    }
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
    fn what_sinks_need() {
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
    fn root_directories() {
        let check = |text: &str, expected: &str| {
            assert_eq!(root_dir::parse(text), Ok(PathBuf::from(expected)), "{text}");
        };
        check("./grampus-data", "./grampus-data");
        check("/var/lib/grampus", "/var/lib/grampus");
        check("file:///var/lib/grampus", "/var/lib/grampus");
        check("file:/var/lib/grampus", "/var/lib/grampus");
        check("file://localhost/var/lib", "/var/lib");
        check("./odd:name", "./odd:name");
        let refused = |text: &str| root_dir::parse(text).unwrap_err();
        assert!(refused("hdfs://namenode:8020/hbase").starts_with("hdfs:// is not supported yet"));
        assert!(refused("s3a://bucket/hbase").starts_with("s3a: is not supported"));
        for text in ["", "file://host/x", "file:relative", "a\0b"] {
            assert!(root_dir::parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn shares_and_checksums() {
        assert_eq!(share::parse("40%"), Ok(Share::Part(0.4)));
        assert_eq!(share::parse("2 GiB"), Ok(Share::Bytes(2 << 30)));
        assert_eq!(Share::Part(0.25).of(1 << 30), 1 << 28);
        assert_eq!(Share::Bytes(7).of(1 << 30), 7);
        for text in ["0%", "101%", "%", "1 MiB", "", "NaN%"] {
            assert!(share::parse(text).is_err(), "{text}");
        }
        assert_eq!(checksum::parse("CRC32C"), Ok(Checksum::Crc32c));
        let limiter = |name: &str| rate_limiter::parse(&format!("org.apache.hadoop.hbase.quotas.{name}"));
        assert_eq!(limiter("FixedIntervalRateLimiter"), Ok(RateLimiter::Fixed));
        assert_eq!(limiter("AverageIntervalRateLimiter"), Ok(RateLimiter::Average));
        assert!(limiter("OtherRateLimiter").is_err());
        assert!(checksum::parse("MD5").is_err());
    }
}
