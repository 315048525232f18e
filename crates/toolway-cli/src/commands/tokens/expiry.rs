//! When a token ends, as it is typed.

/// How long a day is, in seconds.
const DAY: u64 = 86_400;

/// The end of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TokenExpiry {
    /// That many seconds from now.
    After(u64),
    /// At this time, in seconds since 1970.
    At(u64),
    /// It has none.
    Never,
}

/// The end that was typed has come already.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ExpiryOver;

impl TokenExpiry {
    /// The end in seconds since 1970, where it has one.
    pub(super) fn from(self, now: u64) -> Result<Option<u64>, ExpiryOver> {
        match self {
            Self::After(seconds) => Ok(Some(now.saturating_add(seconds))),
            Self::At(end) if end > now => Ok(Some(end)),
            Self::At(_) => Err(ExpiryOver),
            Self::Never => Ok(None),
        }
    }
}

/// Reads `12h`, `30d`, `2w`, a date or `never`.
pub(super) fn parse(text: &str) -> Result<TokenExpiry, String> {
    if text == "never" {
        return Ok(TokenExpiry::Never);
    }
    if let Some(day) = day(text) {
        // Good through that day.
        return Ok(TokenExpiry::At((day + 1) * DAY));
    }
    let units = [('h', 3_600), ('d', DAY), ('w', 7 * DAY)];
    let typed = units.iter().find_map(|(unit, seconds)| {
        let number: u32 = text.strip_suffix(*unit)?.parse().ok()?;
        Some(u64::from(number) * seconds)
    });
    match typed {
        Some(0) => Err("it would be over at once".to_owned()),
        Some(seconds) => Ok(TokenExpiry::After(seconds)),
        None => Err(
            "write a time such as `12h`, `30d` or `2w`, the last day such as `2027-01-31`, or \
             `never`"
                .to_owned(),
        ),
    }
}

/// The days from 1970 to a date; nothing if there is no such day.
fn day(text: &str) -> Option<u64> {
    let digits = |text: &str, count: usize| {
        let is_number = text.len() == count && text.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| text.parse::<u64>().ok()).flatten()
    };
    let mut parts = text.split('-');
    let year = digits(parts.next()?, 4)?;
    let month = digits(parts.next()?, 2)?;
    let day = digits(parts.next()?, 2)?;
    if parts.next().is_some() || year < 1970 {
        return None;
    }
    let is_leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let february = if is_leap { 29 } else { 28 };
    let lengths = [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let before = usize::try_from(month.checked_sub(1)?).ok()?;
    let length = *lengths.get(before)?;
    if day == 0 || day > length {
        return None;
    }
    // The leap days before this year, less those before 1970.
    let leap_days = |year: u64| year / 4 - year / 100 + year / 400;
    let years = (year - 1970) * 365 + leap_days(year - 1) - leap_days(1969);
    Some(years + lengths[..before].iter().sum::<u64>() + day - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_days_and_never_are_understood() {
        for (text, expected) in [
            ("never", TokenExpiry::Never),
            ("1h", TokenExpiry::After(3_600)),
            ("30d", TokenExpiry::After(30 * DAY)),
            ("2w", TokenExpiry::After(14 * DAY)),
            ("1970-01-01", TokenExpiry::At(DAY)),
            ("2000-02-28", TokenExpiry::At(951_782_400)),
            ("2000-02-29", TokenExpiry::At(951_868_800)),
            ("2026-12-31", TokenExpiry::At(1_798_761_600)),
            ("2100-02-28", TokenExpiry::At(4_107_542_400)),
        ] {
            assert_eq!(parse(text), Ok(expected), "{text}");
        }
        for text in [
            "",
            "d",
            "30",
            "0d",
            "-1d",
            "1.5d",
            "30 d",
            "30m",
            "3é",
            "soon",
            "99999999999d",
            "2026-02-29",
            "2026-13-01",
            "2026-00-01",
            "2026-01-00",
            "2026-1-1",
            "2026-01-01-",
            "1969-12-31",
        ] {
            assert!(parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_end_lies_ahead() {
        assert_eq!(TokenExpiry::After(5).from(10), Ok(Some(15)));
        assert_eq!(TokenExpiry::At(11).from(10), Ok(Some(11)));
        assert_eq!(TokenExpiry::At(10).from(10), Err(ExpiryOver));
        assert_eq!(TokenExpiry::Never.from(10), Ok(None));
    }
}
