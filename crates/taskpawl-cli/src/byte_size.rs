//! Sizes in bytes, as people write them.

/// Parses a size in bytes, with an optional decimal or binary unit.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let unknown = || format!("`{text}` is not a valid size, expected for example `500MB` or `2GiB`");
    let split = text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(unknown()),
    };
    let number: u64 = number.trim().parse().map_err(|_| unknown())?;
    number.checked_mul(factor).ok_or_else(unknown)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!([parse("12"), parse("3 kB"), parse("2GiB")], [Ok(12), Ok(3_000), Ok(2 << 30)]);
        for wrong in ["", "GiB", "1.5GiB", "-1", "2TB", "99999999999999999999", "18446744073709551615GiB"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
