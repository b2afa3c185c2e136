//! Sizes in the syntax of plans: `512KiB`, `4MiB`.

use std::fmt;
use std::str::FromStr;

use serde::de::{Error, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A size in bytes, written as `512KiB`, `4MiB` or `300000B`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSize(pub u64);

impl ByteSize {
    /// The maximum size of a stored result without `keep`.
    pub const DEFAULT_KEEP: Self = Self(256 << 10);

    /// The maximum value of `keep`.
    pub const MAX_KEEP: Self = Self(16 << 20);

    /// Returns whether this is a valid `keep`.
    pub fn is_keep(self) -> bool {
        (1..=Self::MAX_KEEP.0).contains(&self.0)
    }
}

/// The text is no size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is not a valid size, expected for example `512KiB` or `4MiB`")]
pub struct ByteSizeError {
    /// The given text.
    pub text: String,
}

const UNITS: [(&str, u64); 7] = [
    ("B", 1),
    ("kB", 1_000),
    ("KiB", 1 << 10),
    ("MB", 1_000_000),
    ("MiB", 1 << 20),
    ("GB", 1_000_000_000),
    ("GiB", 1 << 30),
];

impl FromStr for ByteSize {
    type Err = ByteSizeError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        parse(text).map(Self).ok_or_else(|| ByteSizeError { text: text.to_owned() })
    }
}

fn parse(text: &str) -> Option<u64> {
    let (number, unit) = text.split_at(text.find(|c: char| c.is_ascii_alphabetic())?);
    let (_, factor) = UNITS.iter().find(|(name, _)| *name == unit)?;
    if !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    number.parse::<u64>().ok()?.checked_mul(*factor)
}

impl fmt::Display for ByteSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0;
        match bytes {
            0 => f.write_str("0B"),
            _ if bytes.is_multiple_of(1 << 30) => write!(f, "{}GiB", bytes >> 30),
            _ if bytes.is_multiple_of(1 << 20) => write!(f, "{}MiB", bytes >> 20),
            _ if bytes.is_multiple_of(1 << 10) => write!(f, "{}KiB", bytes >> 10),
            _ => write!(f, "{bytes}B"),
        }
    }
}

impl Serialize for ByteSize {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for ByteSize {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(SizeVisitor)
    }
}

/// Accepts numbers only to refuse them with a message about the missing unit.
struct SizeVisitor;

impl Visitor<'_> for SizeVisitor {
    type Value = ByteSize;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a size such as `512KiB` or `4MiB`")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<ByteSize, E> {
        text.parse().map_err(E::custom)
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<ByteSize, E> {
        Err(E::custom(ByteSizeError { text: number.to_string() }))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<ByteSize, E> {
        Err(E::custom(ByteSizeError { text: number.to_string() }))
    }
}

#[cfg(test)]
mod tests {
    use super::ByteSize;

    #[test]
    fn sizes_are_parsed_and_formatted() {
        for (text, bytes, written) in [
            ("4MiB", 4 << 20, "4MiB"),
            ("512KiB", 512 << 10, "512KiB"),
            ("1024KiB", 1 << 20, "1MiB"),
            ("1kB", 1000, "1000B"),
            ("2MB", 2_000_000, "2000000B"),
            ("0B", 0, "0B"),
        ] {
            let size: ByteSize = text.parse().unwrap();
            assert_eq!((size.0, size.to_string().as_str()), (bytes, written));
        }
        for text in ["", "5", "MiB", "-1MiB", "1.5MiB", "4 MiB", "4mib", "99999999999999GiB"] {
            assert!(text.parse::<ByteSize>().is_err(), "{text}");
        }
        assert!(serde_json::from_value::<ByteSize>(5.into()).is_err());
    }

    #[test]
    fn keep_is_between_one_byte_and_the_maximum() {
        let sizes = ["0B", "1B", "16MiB", "17MiB"].map(|text| text.parse::<ByteSize>().unwrap().is_keep());
        assert_eq!(sizes, [false, true, true, false]);
    }
}
