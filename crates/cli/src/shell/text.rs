//! Bytes and times as HBase's shell shows them.

use std::fmt::Write;

/// Bytes as HBase's `Bytes.toStringBinary` shows them: printable ASCII but the backslash as it is, else `\xHH`.
pub(crate) fn binary(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b' '..=b'~' if *byte != b'\\' => shown.push(char::from(*byte)),
            _ => write!(shown, "\\x{byte:02X}").expect("text takes all that is written"),
        }
    }
    shown
}

/// The bytes that [`binary`] shows so: `\xHH` is a byte, as HBase's `Bytes.toBytesBinary` reads it.
pub(crate) fn from_binary(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, behind @ ..] = rest {
        let hex = |digit: &u8| char::from(*digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        rest = match behind {
            [b'x', high, low, behind @ ..] if *first == b'\\' => match (hex(high), hex(low)) {
                (Some(high), Some(low)) => {
                    bytes.push(high << 4 | low);
                    rest = behind;
                    continue;
                }
                _ => &rest[1..],
            },
            _ => behind,
        };
        bytes.push(*first);
    }
    bytes
}

/// Text in quotes that the shell reads as the same bytes.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        _ => format!("\"{}\"", binary(bytes).replace('"', "\\\"")),
    }
}

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

/// A timestamp as Java's `LocalDateTime` shows it, in UTC: `2026-11-21T08:00:00.123`; fractions of zero, and then
/// seconds of zero, are left out.
pub(crate) fn date_time(timestamp_ms: i64) -> String {
    let (days, of_day) = (timestamp_ms.div_euclid(DAY_MS), timestamp_ms.rem_euclid(DAY_MS));
    let (year, month, day) = civil(days);
    let (hours, minutes) = (of_day / 3_600_000, of_day / 60_000 % 60);
    let (seconds, millis) = (of_day / 1000 % 60, of_day % 1000);
    let mut shown = match year {
        0..=9999 => format!("{year:04}"),
        10_000.. => format!("+{year}"),
        _ => format!("-{:04}", -year),
    };
    let mut add =
        |part: std::fmt::Arguments<'_>| shown.write_fmt(part).expect("text takes all that is written");
    add(format_args!("-{month:02}-{day:02}T{hours:02}:{minutes:02}"));
    if seconds != 0 || millis != 0 {
        add(format_args!(":{seconds:02}"));
    }
    if millis != 0 {
        add(format_args!(".{millis:03}"));
    }
    shown
}

/// Year, month and day of a number of days since 1970-01-01, by the Gregorian calendar in both directions.
///
/// Years are counted from March, so that the day that may be missing is the last one; 400 years (an era) have
/// always 146,097 days.
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
    fn quoted_text_can_be_read_again() {
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
}
