//! Bytes and times, formatted as in HBase's shell.

use std::fmt::Write;

/// Formats bytes as HBase's `Bytes.toStringBinary` does: printable ASCII except the backslash as
/// is, other bytes as `\xHH`.
pub(crate) fn binary(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'\\' => shown.push(char::from(*byte)),
            _ => write!(shown, "\\x{byte:02X}").expect("writing to a String cannot fail"),
        }
    }
    shown
}

/// Parses the format of [`binary`]: `\xHH` is a byte, as in HBase's `Bytes.toBytesBinary`.
pub(crate) fn from_binary(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, tail @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        rest = match tail {
            [b'x', high, low, tail @ ..] if *first == b'\\' => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = tail;
                    continue;
                }
                _ => &rest[1..],
            },
            _ => tail,
        };
        bytes.push(*first);
    }
    bytes
}

/// Quotes bytes so that the shell parses them as the same bytes.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        _ => format!("\"{}\"", binary(bytes).replace('"', "\\\"")),
    }
}

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// Formats a timestamp as Java's `LocalDateTime` does, in UTC: `2026-11-21T08:00:00.123`. A zero
/// fraction is left out, and then zero seconds too.
pub(crate) fn date_time(timestamp_ms: i64) -> String {
    let (seconds, millis) = (timestamp_ms.div_euclid(1000), timestamp_ms.rem_euclid(1000));
    let mut shown = format!("{}T{}", date(seconds), minute(seconds));
    let second = seconds.rem_euclid(60);
    if second != 0 || millis != 0 {
        shown.push_str(&format!(":{second:02}"));
    }
    if millis != 0 {
        shown.push_str(&format!(".{millis:03}"));
    }
    shown
}

/// Formats a timestamp as Ruby's `Time` does, in UTC: `2026-11-21 08:00:00 UTC`, always with
/// seconds.
pub(crate) fn ruby_time(timestamp_ms: i64) -> String {
    let seconds = timestamp_ms.div_euclid(1000);
    format!("{} {}:{:02} UTC", date(seconds), minute(seconds), seconds.rem_euclid(60))
}

/// The date of a number of seconds since 1970, as `2026-11-21`. Years with more than four digits
/// have a sign.
fn date(seconds: i64) -> String {
    let (year, month, day) = civil(seconds.div_euclid(DAY_SECONDS));
    let year = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", -year),
    };
    format!("{year}-{month:02}-{day:02}")
}

/// Hour and minute within the day, of a number of seconds since 1970, as `08:00`.
fn minute(seconds: i64) -> String {
    let of_day = seconds.rem_euclid(DAY_SECONDS);
    format!("{:02}:{:02}", of_day / 3600, of_day / 60 % 60)
}

/// Year, month and day of a number of days since 1970-01-01, in the proleptic Gregorian calendar.
///
/// Years count from March, so that the leap day is the last one. 400 years (an era) always have
/// 146,097 days.
fn civil(days: i64) -> (i64, i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    const FROM_YEAR_0: i64 = 719_468; // 0000-03-01 to 1970-01-01
    let shifted = days + FROM_YEAR_0;
    let (era, of_era) = (shifted.div_euclid(ERA_DAYS), shifted.rem_euclid(ERA_DAYS));
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let from_march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * from_march + 2) / 5 + 1;
    let month = if from_march < 10 { from_march + 3 } else { from_march - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_as_hbase_shows_them() {
        assert_eq!(binary(b"row 1~"), "row 1~");
        assert_eq!(binary(b"a\\b\x00\x7f\xff\n"), r"a\x5Cb\x00\x7F\xFF\x0A");
        assert_eq!(binary("\u{e9}".as_bytes()), r"\xC3\xA9");
        assert_eq!(from_binary(br"a\x00\xfF\xg0\x0"), b"a\x00\xff\\xg0\\x0");
    }

    #[test]
    fn quoted_text_can_be_parsed_again() {
        use super::super::error::Position;
        use super::super::lexer::{TokenKind, tokens};
        for bytes in [&b"plain"[..], b"it's \\ it", b"\x00\xff\"", "\u{e9}".as_bytes(), b"\n'"] {
            let read = tokens(&quoted(bytes), Position::START).unwrap();
            assert_eq!(read[0].kind, TokenKind::Text(bytes.to_vec()));
        }
    }

    #[test]
    fn times_are_shown_as_java_shows_them() {
        let check = |ms, shown| assert_eq!(date_time(ms), shown);
        check(0, "1970-01-01T00:00");
        check(1, "1970-01-01T00:00:00.001");
        check(1_000, "1970-01-01T00:00:01");
        check(-1, "1969-12-31T23:59:59.999");
        check(1_700_000_000_000, "2023-11-14T22:13:20");
        check(951_782_399_999, "2000-02-28T23:59:59.999");
        check(951_782_400_000, "2000-02-29T00:00");
        check(951_868_800_000, "2000-03-01T00:00");
        check(4_107_542_400_000, "2100-03-01T00:00");
        // What Java prints for the ends of its own range of milliseconds.
        check(i64::MAX, "+292278994-08-17T07:12:55.807");
        check(i64::MIN, "-292275055-05-16T16:47:04.192");
    }
    #[test]
    fn times_of_snapshots_have_their_seconds_at_full_minutes_too() {
        assert_eq!(ruby_time(0), "1970-01-01 00:00:00 UTC");
        assert_eq!(ruby_time(1_700_000_000_999), "2023-11-14 22:13:20 UTC");
    }
}
