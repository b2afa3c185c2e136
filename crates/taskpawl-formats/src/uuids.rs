//! UUIDs for tasks, in formats whose programs accept no other ids.

use taskpawl_model::task::Task;

use crate::ids::hash;

/// Returns the UUID of a task: the preserved one, its id, or a hash of it with the bits of a version. Every export gives the
/// same one. `attempt` tells tasks apart that would share one.
pub(crate) fn of(task: &Task, preserved: Option<&str>, attempt: u64, version: u64) -> String {
    let own = task.id.as_str();
    if attempt > 0 {
        return hashed(&format!("{own}#{attempt}"), version);
    }
    // Programs that check the version accept 4 alone.
    let is_fitting = |own: &&str| is_uuid(own) && (version != 4 || own.as_bytes()[14] == b'4');
    let known = preserved.or(Some(own).filter(is_fitting));
    known.map_or_else(|| hashed(own, version), str::to_owned)
}

/// Returns a UUID that follows from a text. A hash has no version of its own: programs check these bits.
fn hashed(text: &str, version: u64) -> String {
    let (high, low) = (hash(text), hash(&format!("{text}/")));
    let (version, variant) = ((version << 12) | (high & 0x0fff), 0x8000 | ((low >> 48) & 0x3fff));
    format!(
        "{:08x}-{:04x}-{version:04x}-{variant:04x}-{:012x}",
        high >> 32,
        (high >> 16) & 0xffff,
        low & 0xffff_ffff_ffff
    )
}

fn is_uuid(text: &str) -> bool {
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
        && parts.iter().all(|part| part.chars().all(|c| c.is_ascii_digit() || ('a'..='f').contains(&c)))
}
