//! A limit on the cost of an evaluation.

use serde_json::Value;

/// The maximum cost of evaluating one value, roughly the number of bytes that it walks or copies. A task stores at most
/// 256 KiB of a result, so this covers a hundred of them, and takes a few milliseconds.
pub(super) const MAX_COST: u64 = 32 << 20;

/// The cost of visiting one value.
const NODE: u64 = 16;

/// The budget is used up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Exhausted;

/// The remaining budget of an evaluation.
#[derive(Debug)]
pub(crate) struct Budget {
    left: u64,
}

impl Default for Budget {
    fn default() -> Self {
        Self { left: MAX_COST }
    }
}

/// The additional budget for each byte of a result that a call keeps with `keep`: `fromjson` alone costs 16 times its
/// text.
const PER_KEPT_BYTE: u64 = 24;

impl Budget {
    /// Returns the budget for an evaluation with this many bytes of results kept with `keep`.
    pub(super) fn with_kept(bytes: u64) -> Self {
        // The bonus is capped, or many large results together would lift the limit.
        let most = PER_KEPT_BYTE * crate::value::ByteSize::MAX_KEEP.0;
        Self { left: MAX_COST + bytes.saturating_mul(PER_KEPT_BYTE).min(most) }
    }

    /// Pays for bytes before they are allocated.
    pub(super) fn bytes(&mut self, count: usize) -> Result<(), Exhausted> {
        let count = u64::try_from(count).map_err(|_| Exhausted)?;
        // One is added so that empty texts cost something as well.
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
