// SPDX-License-Identifier: Apache-2.0
//! Times of a calendar, in UTC.
use core::fmt::{self, Display};

const SECOND_NS: u64 = 1_000_000_000;

/// Nanoseconds since 1970 as `2026-11-29T10:00:00.123456`, without a zone.
pub struct Time(pub u64);

impl Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (seconds, micros) = (self.0 / SECOND_NS, self.0 % SECOND_NS / 1000);
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(
            f,
            "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}"
        )
    }
}

/// The date of a day since 1970: a year begins in March, so that a leap day is its last one.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 {
        (month + 3, 0)
    } else {
        (month - 9, 1)
    };
    (era * 400 + year + next, month, date)
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn times_are_those_of_a_calendar() {
        let text = |seconds: u64| Time(seconds * SECOND_NS + 123_456_789).to_string();
        assert_eq!(text(0), "1970-01-01T00:00:00.123456");
        assert_eq!(text(951_782_400), "2000-02-29T00:00:00.123456");
        assert_eq!(text(1_709_251_199), "2024-02-29T23:59:59.123456");
        assert_eq!(text(4_107_542_400), "2100-03-01T00:00:00.123456");
    }
}
