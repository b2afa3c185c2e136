//! What an evaluation may cost.

use serde_json::Value;

/// The most that the evaluation of one value may cost: about the bytes that it walks or copies. A result is at most
/// 256 KiB in a task, so this is a hundred of them, and takes some milliseconds.
pub(super) const MAX_COST: u64 = 32 << 20;

/// The cost of looking at one value.
const NODE: u64 = 16;

/// More was used than there is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// What is left to be used.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: MAX_COST }
    }
}

/// What each byte of a result that a call keeps by its own `keep` adds: `fromjson` alone costs 16 times its text.
const PER_KEPT_BYTE: u64 = 24;

impl Budget {
    /// Returns what an evaluation may cost that sees so many bytes of results above what is kept without `keep`.
    pub(super) fn with_kept(bytes: u64) -> Self {
        let most = PER_KEPT_BYTE * crate::ByteSize::MAX_KEEP.0;
        Self { left: MAX_COST + bytes.saturating_mul(PER_KEPT_BYTE).min(most) }
    }

    /// Pays for bytes before they are made.
    pub(super) fn bytes(&mut self, count: usize) -> Result<(), Exhausted> {
        let count = u64::try_from(count).map_err(|_| Exhausted)?;
        self.left = self.left.checked_sub(count.saturating_add(1)).ok_or(Exhausted)?;
        Ok(())
    }

    /// Pays for walking or copying a value.
    pub(crate) fn value(&mut self, value: &Value) -> Result<(), Exhausted> {
        self.left = self.left.checked_sub(NODE).ok_or(Exhausted)?;
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
            Value::String(text) => self.bytes(text.len()),
            Value::Array(items) => items.iter().try_for_each(|item| self.value(item)),
            Value::Object(fields) => fields.iter().try_for_each(|(key, value)| {
                self.bytes(key.len())?;
                self.value(value)
            }),
        }
    }
}
