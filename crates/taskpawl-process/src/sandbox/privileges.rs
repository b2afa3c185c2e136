use std::io;

use rustix::io::Errno;
use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, getuid, set_dumpable_behavior, setrlimit,
};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capability_is_in_bounding_set,
    clear_ambient_capability_set, remove_capability_from_bounding_set, set_capabilities,
    set_capabilities_secure_bits, set_no_new_privs,
};

use crate::faults::{self, Fault};
use crate::profile::ResourceLimits;

/// How many processes and threads there may be where nothing is said about it: more than any build has, and less than a machine.
const PROCESSES: u64 = 10_000;

/// Sets the limits that processes hand down. Returns how many processes and threads there may be; nothing where that is not limited.
pub(super) fn limit(
    limits: &ResourceLimits,
    has_own_user: bool,
    gaps: &mut Vec<String>,
) -> io::Result<Option<u64>> {
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, limits.open_files)?;
    // Elsewhere the system counts all processes of the user, and those of the administrator not at all.
    if has_own_user && !getuid().is_root() {
        let most = limits.processes.unwrap_or(PROCESSES);
        lower(Resource::Nproc, most.saturating_add(1))?;
        return Ok(Some(most));
    }
    if limits.processes.is_some() && !is_limited_by_cgroup() {
        gaps.push("the number of processes is not limited: there is no delegated cgroup".to_owned());
        return Ok(None);
    }
    Ok(limits.processes)
}

fn is_limited_by_cgroup() -> bool {
    super::cgroup::has_own()
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Makes sure that no program gets more rights than this process has.
pub(super) fn give_up_new() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

/// Gives up all capabilities for good: programs of the administrator do not get them back either.
pub(super) fn drop_capabilities() -> io::Result<()> {
    if faults::is_on(Fault::KeepCapabilities) {
        return Ok(());
    }
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => unless_forbidden(remove_capability_from_bounding_set(capability))?,
            Ok(false) => {}
            // No kernel knows those behind it either.
            Err(_) => break,
        }
    }
    unless_forbidden(clear_ambient_capability_set())?;
    unless_forbidden(set_capabilities_secure_bits(all_secure_bits()))?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    match capabilities(None)?.permitted {
        left if left.is_empty() => Ok(()),
        left => Err(io::Error::other(format!("{left:?} are left"))),
    }
}

/// Who has no capabilities may not give up the chance to get some; having given up new privileges, it is none.
fn unless_forbidden(result: Result<(), Errno>) -> io::Result<()> {
    match result {
        Err(Errno::PERM) | Ok(()) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn all_secure_bits() -> CapabilitiesSecureBits {
    use CapabilitiesSecureBits as Bits;

    let on = Bits::NO_ROOT | Bits::NO_SETUID_FIXUP | Bits::NO_CAP_AMBIENT_RAISE;
    let locked = Bits::NO_ROOT_LOCKED | Bits::NO_SETUID_FIXUP_LOCKED | Bits::NO_CAP_AMBIENT_RAISE_LOCKED;
    on | locked | Bits::KEEP_CAPS_LOCKED
}

/// Keeps from programs what this process was given open by whoever started the engine: what is open needs no path any more.
#[expect(unsafe_code, reason = "there is no safe way to mark all descriptors at once")]
pub(super) fn keep_descriptors() -> io::Result<()> {
    // SAFETY: nothing is closed before another program takes the place of this one, which knows none of these numbers.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Keeps programs from this process's memory and descriptors.
pub(super) fn hide_from_programs() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
