//! Dates of the proleptic Gregorian calendar, in UTC.

const DAY_SECONDS: i64 = 24 * 60 * 60;

/// A time of a day, in UTC.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CalendarTime {
    /// The year; 0 is the year before 1.
    pub year: i64,
    /// 1 is January.
    pub month: i64,
    /// Day of the month, from 1.
    pub day: i64,
    /// Day of the week; 0 is Sunday.
    pub weekday: i64,
    /// Hour of the day.
    pub hour: i64,
    /// Minute of the hour.
    pub minute: i64,
    /// Second of the minute.
    pub second: i64,
    /// Millisecond of the second.
    pub millisecond: i64,
}

impl CalendarTime {
    /// The time of a number of milliseconds since 1970.
    pub fn from_ms(timestamp_ms: i64) -> CalendarTime {
        let seconds = timestamp_ms.div_euclid(1000);
        let (days, of_day) = (seconds.div_euclid(DAY_SECONDS), seconds.rem_euclid(DAY_SECONDS));
        let (year, month, day) = date(days);
        CalendarTime {
            year,
            month,
            day,
            // 1970-01-01 was a Thursday.
            weekday: (days + 4).rem_euclid(7),
            hour: of_day / 3600,
            minute: of_day / 60 % 60,
            second: of_day % 60,
            millisecond: timestamp_ms.rem_euclid(1000),
        }
    }
}

/// Year, month and day of a number of days since 1970-01-01.
///
/// Years count from March, so that the leap day is the last one. 400 years (an era) always have
/// 146,097 days.
fn date(days: i64) -> (i64, i64, i64) {
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
    use super::CalendarTime;

    #[test]
    fn times_before_and_after_1970_have_their_date() {
        let time = CalendarTime::from_ms(1_700_000_000_500);
        assert_eq!((time.year, time.month, time.day, time.weekday), (2023, 11, 14, 2));
        assert_eq!((time.hour, time.minute, time.second, time.millisecond), (22, 13, 20, 500));
        let before = CalendarTime::from_ms(-1);
        assert_eq!((before.year, before.month, before.day, before.weekday), (1969, 12, 31, 3));
        assert_eq!((before.hour, before.millisecond), (23, 999));
        let leap = CalendarTime::from_ms(951_782_400_000);
        assert_eq!((leap.year, leap.month, leap.day), (2000, 2, 29));
    }
}
