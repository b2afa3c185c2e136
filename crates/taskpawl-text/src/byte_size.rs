/// Parses a size in bytes with a decimal or binary unit, as people write them: `12`, `3 kB`, `2GiB`. Returns `None` for anything else, and for
/// sizes beyond 64 bits.
pub fn byte_size(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(text.len()));
    let factor: u64 = match unit.trim() {
        "" | "B" => 1,
        "kB" | "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return None,
    };
    number.trim().parse::<u64>().ok()?.checked_mul(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units() {
        assert_eq!(["12", "3 kB", "2GiB"].map(byte_size), [Some(12), Some(3_000), Some(2 << 30)]);
        for wrong in ["", "GiB", "1.5GiB", "-1", "2TB", "99999999999999999999", "18446744073709551615GiB"] {
            assert_eq!(byte_size(wrong), None, "{wrong}");
        }
    }
}
