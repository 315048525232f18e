//! How long something has lasted, for people.

use std::time::{Duration, SystemTime};

/// How long ago a time is that is written as in rows: RFC 3339, UTC.
pub(crate) fn since(time: &str) -> Option<Duration> {
    let then = unix_seconds(time)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    Some(Duration::from_secs(
        now.ok()?.as_secs().saturating_sub(then),
    ))
}

/// How long until then; nothing once it is over.
pub(crate) fn until(time: &str) -> Option<Duration> {
    let then = unix_seconds(time)?;
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    then.checked_sub(now.ok()?.as_secs())
        .map(Duration::from_secs)
}

/// In one unit: `12 s`, `5 min`, `3 h`, `2 d`.
pub(crate) fn short(age: Duration) -> String {
    match age.as_secs() {
        seconds @ ..60 => format!("{seconds} s"),
        seconds @ 60..3_600 => format!("{} min", seconds / 60),
        seconds @ 3_600..86_400 => format!("{} h", seconds / 3_600),
        seconds => format!("{} d", seconds / 86_400),
    }
}

/// `2026-01-31T12:00:00…` as seconds since 1970. Years are counted from March, so that the leap day
/// is a year's last.
fn unix_seconds(time: &str) -> Option<u64> {
    let number = |from: usize, to: usize| time.get(from..to)?.parse::<u64>().ok();
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    let (hour, minute, second) = (number(11, 13)?, number(14, 16)?, number(17, 19)?);
    if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
        return None;
    }
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = 365 * year + year / 4 - year / 100 + year / 400 + of_year;
    let days = days.checked_sub(719_468)?;
    Some(days * 86_400 + hour * 3_600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use super::*;
    use toolway::journal::timestamp;

    #[test]
    fn every_day_of_forty_years_is_read_as_it_is_written() {
        for day in 0..40 * 366 {
            let seconds = day * 86_400 + 86_399;
            let written = timestamp(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds));
            assert_eq!(unix_seconds(&written), Some(seconds), "{written}");
        }
        assert_eq!(unix_seconds("yesterday"), None);
        assert_eq!(unix_seconds("0001-01-01T00:00:00Z"), None);
    }

    #[test]
    fn ages_have_one_unit() {
        let ages = [0, 59, 60, 3_599, 3_600, 86_400 * 3].map(Duration::from_secs);
        let shown = ages.map(short);
        assert_eq!(shown, ["0 s", "59 s", "1 min", "59 min", "1 h", "3 d"]);
    }
}
