//! Version of a policy: approvals are bound to it in addition to the call.

use std::path::Path;

use sha2::{Digest, Sha256};

use super::layer::Layer;

/// Version of the decision rules. It is increased when a release decides differently about the same call and files, so
/// that an approval is not carried over to rules that its approver did not see.
///
/// 2: allow rules cover standard input, a directory and variables only if they name them; more variables hold programs.
const RULES: u32 = 2;

/// Returns a hash of everything that decisions depend on except the call.
pub(super) fn version(layers: &[Layer], directory: &Path) -> String {
    version_under(RULES, layers, directory)
}

fn version_under(rules: u32, layers: &[Layer], directory: &Path) -> String {
    let mut hasher = Sha256::new();
    let mut add = |part: &[u8]| {
        // The length in front keeps two different lists of parts from having the same hash.
        hasher.update((part.len() as u64).to_le_bytes());
        hasher.update(part);
    };
    add(&rules.to_le_bytes());
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

/// Returns the SHA-256 of a file's content in hexadecimal. Trust in a file is bound to it.
pub fn content_hash(content: &[u8]) -> String {
    hex(&Sha256::digest(content))
}

fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_approval_under_the_rules_of_an_earlier_release_does_not_hold() {
        let layers = [Layer::builtin()];
        let now = version(&layers, Path::new("/a"));
        // Version 0.1 decided by rules 1, under which an allow rule covered any standard input.
        assert_ne!(version_under(1, &layers, Path::new("/a")), now);
        assert_eq!(version_under(RULES, &layers, Path::new("/a")), now);
    }
}
