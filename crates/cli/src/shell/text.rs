//! Bytes and times, formatted as in HBase's shell.

use base::calendar::CalendarTime;
pub(crate) use base::text::{from_string_binary as from_binary, to_string_binary as binary};

/// Quotes bytes so that the shell parses them as the same bytes.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(char::is_control) => {
            format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
        }
        _ => format!("\"{}\"", binary(bytes).replace('"', "\\\"")),
    }
}

/// Formats a timestamp as Java's `LocalDateTime` does, in UTC: `2026-11-21T08:00:00.123`. A zero
/// fraction is left out, and then zero seconds too.
pub(crate) fn date_time(timestamp_ms: i64) -> String {
    let time = CalendarTime::from_ms(timestamp_ms);
    let mut shown = format!("{}T{:02}:{:02}", date(&time), time.hour, time.minute);
    if time.second != 0 || time.millisecond != 0 {
        shown.push_str(&format!(":{:02}", time.second));
    }
    if time.millisecond != 0 {
        shown.push_str(&format!(".{:03}", time.millisecond));
    }
    shown
}

/// Formats a timestamp as Ruby's `Time` does, in UTC: `2026-11-21 08:00:00 UTC`, always with
/// seconds.
pub(crate) fn ruby_time(timestamp_ms: i64) -> String {
    let time = CalendarTime::from_ms(timestamp_ms);
    format!("{} {:02}:{:02}:{:02} UTC", date(&time), time.hour, time.minute, time.second)
}

/// The date as `2026-11-21`. Years with more than four digits have a sign.
fn date(time: &CalendarTime) -> String {
    let year = match time.year {
        year @ 0..=9999 => format!("{year:04}"),
        year @ 10_000.. => format!("+{year}"),
        year => format!("-{:04}", -year),
    };
    format!("{year}-{:02}-{:02}", time.month, time.day)
}

#[cfg(test)]
mod tests {
    use super::*;

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
