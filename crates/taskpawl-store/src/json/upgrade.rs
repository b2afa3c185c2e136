//! How files of earlier versions become those of this one.

use serde_json::Value;

/// What turns the content of a file of one version into that of the next. One that changes tasks seals them anew, or the change
/// passes for an edit from outside.
pub(super) type Upgrade = fn(&mut Value);

/// From version 1 on; published ones never change.
pub(super) const UPGRADES: &[Upgrade] = &[];

/// Returns the version to which `upgrades` lead.
pub(super) fn version(upgrades: &[Upgrade]) -> i64 {
    1 + i64::try_from(upgrades.len()).expect("BUG: there are few versions")
}

/// Brings `content`, which has the version `from`, to the last one.
pub(super) fn upgrade(content: &mut Value, from: i64, upgrades: &[Upgrade]) {
    let done = usize::try_from(from - 1).unwrap_or(0);
    for step in upgrades.iter().skip(done) {
        step(content);
    }
    content["schemaVersion"] = version(upgrades).into();
}
