//! Parsers of the values of options.

use std::fmt::Display;
use std::ops::RangeInclusive;
use std::str::FromStr;
use std::time::Duration;

/// A whole number that is not 0.
pub fn one_or_more<N: FromStr + PartialEq + Default>(text: &str) -> Result<N, String> {
    let number = text.parse().ok().filter(|number| *number != N::default());
    number.ok_or_else(|| "it takes a whole number that is 1 or more".to_owned())
}

/// A whole number, which may be 0.
pub fn none_or_more<N: FromStr>(text: &str) -> Result<N, String> {
    text.parse().map_err(|_| "it takes a whole number that is 0 or more".to_owned())
}

/// A whole number from one to another, both included.
pub fn within<N>(range: RangeInclusive<N>) -> impl Fn(&str) -> Result<N, String> + Clone
where
    N: FromStr + PartialOrd + Display + Clone,
{
    move |text| {
        let number = text.parse().ok().filter(|number| range.contains(number));
        number.ok_or_else(|| format!("it takes a whole number from {} to {}", range.start(), range.end()))
    }
}

/// A length of time with its unit: `10s`, `500ms`, `1m30s`.
pub fn duration(text: &str) -> Result<Duration, String> {
    let expected =
        || format!("{text:?} is no length of time; write numbers and units: 500ms, 10s, 1m30s, 1h or 2d");
    let (mut length, mut rest, mut largest) = (Duration::ZERO, text, f64::INFINITY);
    // An empty text enters the loop, too, and is refused there.
    while !rest.is_empty() || text.is_empty() {
        let (seconds, unit_seconds, behind) = leading_time(rest).ok_or_else(expected)?;
        // Units go from the largest to the smallest, each once: any other order is a typing error.
        if unit_seconds >= largest {
            return Err(expected());
        }
        let part = Duration::try_from_secs_f64(seconds).ok();
        length = part
            .and_then(|part| length.checked_add(part))
            .ok_or_else(|| format!("{text:?} is longer than any clock here counts"))?;
        (rest, largest) = (behind, unit_seconds);
    }
    if length.is_zero() { Err("a length of time must be more than nothing".into()) } else { Ok(length) }
}

/// The first number with its unit, in seconds; the length of the unit in seconds; and the text after it.
fn leading_time(text: &str) -> Option<(f64, f64, &str)> {
    let digits = text.find(|letter: char| !letter.is_ascii_digit() && letter != '.')?;
    let (number, behind) = text.split_at(digits);
    let letters = behind.find(|letter: char| !letter.is_ascii_lowercase()).unwrap_or(behind.len());
    let (unit, behind) = behind.split_at(letters);
    let unit_seconds = match unit {
        "us" => 1e-6,
        "ms" => 1e-3,
        "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    Some((number.parse::<f64>().ok()? * unit_seconds, unit_seconds, behind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_time_are_read_with_their_unit() {
        assert_eq!(duration("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(duration("10s"), Ok(Duration::from_secs(10)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(duration("1m30s"), Ok(Duration::from_secs(90)));
        assert_eq!(duration("2d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(duration("1d2h3m4s5ms6us"), Ok(Duration::from_micros(93_784_005_006)));
    }

    #[test]
    fn lengths_of_time_without_a_unit_or_a_length_are_refused() {
        for text in [
            "",
            "10",
            "s",
            "-1s",
            "1.2.3s",
            "0s",
            "10 s",
            "infs",
            "30s1m",
            "1s1s",
            "1m30",
            "99999999999999999999999h",
        ] {
            assert!(duration(text).is_err(), "{text}");
        }
    }
}
