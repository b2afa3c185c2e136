//! Fuzz target for files that users edit: any input is parsed or refused, without a panic.

#[cfg(test)]
mod tests;

use taskpawl_model::value::Timestamp;

use super::document::Document;
use super::load::state_of;

pub(crate) fn file(text: &str) -> bool {
    let Ok(mut document) = serde_json::from_str::<Document>(text) else { return false };
    state_of(&mut document, Timestamp::default()).is_ok()
}
