//! What approvals are bound to beside the call.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::layer::Layer;

/// Counts the meanings that the same files may have: it grows when a release decides otherwise about the same call.
const RULES: u32 = 1;

/// Returns a hash of everything that decisions depend on beside the call.
pub(super) fn version(layers: &[Layer], directory: &Path) -> String {
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(&RULES.to_le_bytes());
    for layer in layers {
        add(layer.kind.as_str().as_bytes());
        add(layer.text.as_bytes());
        for origin in &layer.opted_in {
            add(origin.as_str().as_bytes());
        }
    }
    add(directory.as_os_str().as_encoded_bytes());
    hex(&hasher.finalize())
}

/// Returns the SHA-256 of a content, in hexadecimal: what trust in a file is bound to.
pub fn content_hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}
