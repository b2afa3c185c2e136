//! Migrations of the file from earlier schema versions.

use serde_json::Value;

/// Migrates the content of a file from one version to the next. A migration that changes tasks must also
/// update their seals, otherwise the change counts as an edit from outside.
pub(super) type Upgrade = fn(&mut Value);

/// The migrations, from version 1 on. A published migration never changes.
pub(super) const UPGRADES: &[Upgrade] = &[];

/// Returns the schema version after all `upgrades`.
pub(super) fn version(upgrades: &[Upgrade]) -> i64 {
    1 + i64::try_from(upgrades.len()).expect("BUG: there are few versions")
}

/// Migrates `content` from schema version `from` to the latest one.
pub(super) fn upgrade(content: &mut Value, from: i64, upgrades: &[Upgrade]) {
    let done = usize::try_from(from - 1).unwrap_or(0);
    for step in upgrades.iter().skip(done) {
        step(content);
    }
    content["schemaVersion"] = version(upgrades).into();
}
