//! Numbers of bytes, as people write and read them.

/// A number of bytes as people write it: `65536`, `64K`, `4M`, `1G`. The letters are powers of 1024.
///
/// # Errors
///
/// A sentence that says what to write instead. Zero is no size.
pub fn parse(text: &str) -> Result<u64, String> {
    let expected = || format!("{text:?} is no number of bytes; write 65536, 64K, 4M or 1G");
    let digits = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let shift = match unit {
        "" => 0,
        "K" | "KiB" => 10,
        "M" | "MiB" => 20,
        "G" | "GiB" => 30,
        _ => return Err(expected()),
    };
    let number: u64 = number.parse().map_err(|_| expected())?;
    number.checked_mul(1 << shift).filter(|bytes| *bytes > 0).ok_or_else(expected)
}

/// In powers of 1024, as memory is measured: `64 MiB`. The last digits are cut off, not rounded.
pub fn binary(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let unit = (0..UNITS.len() - 1).find(|unit| bytes >> (10 * unit) < 10_240).unwrap_or(UNITS.len() - 1);
    format!("{} {}", bytes >> (10 * unit), UNITS[unit])
}

/// In powers of 1000, as files are measured: `12.3 MB`.
pub fn decimal(bytes: u64) -> String {
    match bytes {
        0..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_with_their_unit_and_nothing_else_is() {
        assert_eq!(parse("65536"), Ok(65536));
        assert_eq!(parse("64K"), Ok(65536));
        assert_eq!(parse("4MiB"), Ok(4 << 20));
        assert_eq!(parse("1G"), Ok(1 << 30));
        for wrong in ["", "0", "M", "4m", "4X", "-1", "1.5M", "4 M", "99999999999999G"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn sizes_are_written_with_the_digits_that_matter() {
        assert_eq!([10_239, 10_240, 5 << 30].map(binary), ["10239 B", "10 KiB", "5120 MiB"]);
        assert_eq!([12, 12_300_000, 5_000_000_000].map(decimal), ["0.0 kB", "12.3 MB", "5.0 GB"]);
    }
}
