//! The text of Java's `Date`.

/// A time in UTC as Java's `Date` prints it: `Tue Nov 14 22:13:20 UTC 2023`.
pub(super) fn java_date(epoch_ms: u64) -> String {
    // The epoch was a Thursday.
    const WEEKDAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let (days, seconds) = (epoch_ms / 86_400_000, epoch_ms / 1000 % 86_400);
    let weekday = WEEKDAYS[(days % 7) as usize];
    let (mut year, mut day) = (1970, days);
    while day >= days_of_year(year) {
        day -= days_of_year(year);
        year += 1;
    }
    let mut month = 0;
    while day >= days_of_month(year, month) {
        day -= days_of_month(year, month);
        month += 1;
    }
    let (hour, minute, second) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    format!("{weekday} {} {:02} {hour:02}:{minute:02}:{second:02} UTC {year}", MONTHS[month], day + 1)
}

fn days_of_year(year: u64) -> u64 {
    (0..12).map(|month| days_of_month(year, month)).sum()
}

/// `month` counts from 0.
fn days_of_month(year: u64, month: usize) -> u64 {
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    match month {
        1 if is_leap => 29,
        1 => 28,
        3 | 5 | 8 | 10 => 30,
        _ => 31,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (epoch_ms, expected) in [
            (0, "Thu Jan 01 00:00:00 UTC 1970"),
            (951_782_400_000, "Tue Feb 29 00:00:00 UTC 2000"),
            (1_735_689_599_000, "Tue Dec 31 23:59:59 UTC 2024"),
            (4_107_542_400_000, "Mon Mar 01 00:00:00 UTC 2100"),
        ] {
            assert_eq!(java_date(epoch_ms), expected);
        }
    }
}
