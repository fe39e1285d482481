//! Numbers for people: few digits and a unit. Exact numbers are in tooltips.

use base::history::Unit;

/// The text for a missing value.
pub(crate) const NO_VALUE: &str = "–";

/// Integers below this are shown with all their digits.
const COUNT_MAX: f64 = 100_000.0;

/// Formats an integer with thousands separators: `1,234,567`.
pub(crate) fn exact(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Formats a number with three significant digits, without trailing zeros after the point.
fn rounded(value: f64) -> String {
    let decimals = match value.abs() {
        at_least if at_least >= 99.95 => 0,
        at_least if at_least >= 9.995 => 1,
        _ => 2,
    };
    let text = format!("{value:.decimals$}");
    if decimals == 0 { text } else { text.trim_end_matches('0').trim_end_matches('.').to_owned() }
}

/// Scales a number to the first of `steps` in which it is below 1000. Returns the number and the
/// unit.
fn scaled(value: f64, base: f64, steps: &[&'static str]) -> (String, &'static str) {
    let (mut value, mut at) = (value, 0);
    // A number that would round to 1000 belongs to the next step.
    while value.abs() >= base.min(999.5) && at + 1 < steps.len() {
        value /= base;
        at += 1;
    }
    (rounded(value), steps[at])
}

/// A number and its unit as separate texts.
pub(crate) fn parts(value: f64, unit: Unit) -> (String, String) {
    let (number, unit) = match unit {
        Unit::Count if value.fract() == 0.0 && (0.0..COUNT_MAX).contains(&value) => (exact(value as u64), ""),
        Unit::Count => scaled(value, 1000.0, &["", "k", "M", "G", "T"]),
        Unit::PerSecond => scaled(value, 1000.0, &["/s", "k/s", "M/s", "G/s"]),
        Unit::Bytes => scaled(value, 1024.0, &["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
        Unit::BytesPerSecond => scaled(value, 1024.0, &["B/s", "KiB/s", "MiB/s", "GiB/s"]),
        Unit::Microseconds => scaled(value, 1000.0, &["µs", "ms", "s", "ks"]),
        Unit::Percent => (rounded(value), "%"),
        Unit::Cores => (rounded(value), if value == 1.0 { "core" } else { "cores" }),
    };
    (number, unit.to_owned())
}

/// A number with its unit: `12.3 k/s`, `1.5 GiB`.
pub(crate) fn format(value: f64, unit: Unit) -> String {
    let (number, unit) = parts(value, unit);
    if unit.is_empty() { number } else { format!("{number} {unit}") }
}

/// Formats a duration in its two largest units: `2 h 5 min`.
pub(crate) fn duration(ms: u64) -> String {
    let seconds = ms / 1000;
    let (days, hours, minutes) = (seconds / 86400, seconds / 3600 % 24, seconds / 60 % 60);
    match (days, hours, minutes, seconds) {
        (0, 0, 0, 0) => format!("{ms} ms"),
        (0, 0, 0, seconds) => format!("{seconds} s"),
        (0, 0, minutes, seconds) if minutes < 10 => format!("{minutes} min {} s", seconds % 60),
        (0, 0, minutes, _) => format!("{minutes} min"),
        (0, hours, minutes, _) => format!("{hours} h {minutes} min"),
        (days, hours, ..) => format!("{days} d {hours} h"),
    }
}

/// Formats a time of day in UTC: `15:04:05`.
pub(crate) fn time_of_day(epoch_ms: u64) -> String {
    let seconds = epoch_ms / 1000 % 86400;
    format!("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60)
}

/// Formats a date with time: `2026-02-28 15:04:05 UTC`.
pub(crate) fn moment(epoch_ms: u64) -> String {
    let (year, month, day) = date(epoch_ms / 86_400_000);
    format!("{year}-{month:02}-{day:02} {} UTC", time_of_day(epoch_ms))
}

/// The date this many days after 1970-01-01, in the Gregorian calendar.
fn date(days: u64) -> (u64, u64, u64) {
    // Years count from March, so that the leap day is the last one. 400 years always have the same
    // number of days. The epoch is 719,468 days after 0000-03-01.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    // From March on, each five months have 153 days.
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 { month_from_march + 3 } else { month_from_march - 9 };
    (year_of_era + era * 400 + u64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short() {
        for (value, unit, expected) in [
            (0.0, Unit::Count, "0"),
            (999.0, Unit::Count, "999"),
            (1006.0, Unit::Count, "1,006"),
            (999.6, Unit::Count, "1 k"),
            (1_234_567.0, Unit::Count, "1.23 M"),
            (12_345.0, Unit::PerSecond, "12.3 k/s"),
            (0.25, Unit::PerSecond, "0.25 /s"),
            (1536.0, Unit::Bytes, "1.5 KiB"),
            (1000.0, Unit::Bytes, "0.98 KiB"),
            (f64::from(1 << 30), Unit::Bytes, "1 GiB"),
            (850.0, Unit::Microseconds, "850 µs"),
            (1250.0, Unit::Microseconds, "1.25 ms"),
            (2_000_000.0, Unit::Microseconds, "2 s"),
            (99.96, Unit::Percent, "100 %"),
            (1.0, Unit::Cores, "1 core"),
            (1.4, Unit::Cores, "1.4 cores"),
        ] {
            assert_eq!(format(value, unit), expected, "{value} {unit:?}");
        }
        assert_eq!([0, 999, 1000, 1_234_567].map(exact), ["0", "999", "1,000", "1,234,567"]);
    }

    #[test]
    fn spans_of_time_have_two_units() {
        for (ms, expected) in [
            (12, "12 ms"),
            (59_999, "59 s"),
            (61_000, "1 min 1 s"),
            (600_000, "10 min"),
            (7_500_000, "2 h 5 min"),
            (90_000_000, "1 d 1 h"),
        ] {
            assert_eq!(duration(ms), expected);
        }
    }

    #[test]
    fn moments_are_those_of_the_calendar() {
        for (ms, expected) in [
            (0, "1970-01-01 00:00:00 UTC"),
            (951_782_400_000, "2000-02-29 00:00:00 UTC"),
            (1_700_000_000_000, "2023-11-14 22:13:20 UTC"),
            (4_107_542_399_000, "2100-02-28 23:59:59 UTC"),
            (4_107_542_400_000, "2100-03-01 00:00:00 UTC"),
        ] {
            assert_eq!(moment(ms), expected);
        }
    }
}
