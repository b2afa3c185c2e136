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

/// The default limit of processes and threads: more than any build needs, and fewer than would make a machine unusable.
const PROCESSES: u64 = 10_000;

/// Added to the share of memory by which the kernel picks a process to end; 1,000 would always pick the largest program of a run.
const OOM_SCORE: i32 = 800;

/// Sets the resource limits that child processes inherit. `supervisors` are the processes of this user namespace that are no programs.
/// Returns the limit of processes and threads; `None` if they are unlimited.
pub(super) fn limit(
    limits: &ResourceLimits,
    supervisors: u64,
    has_own_user: bool,
    gaps: &mut Vec<String>,
) -> io::Result<Option<u64>> {
    // The sandboxed programs must not write core dumps, which would copy their memory, secrets included, to the disk.
    lower(Resource::Core, 0)?;
    lower(Resource::Nofile, limits.open_files)?;
    // No limit of address space (`Resource::As`): many runtimes reserve far more than they use.
    lower(Resource::Fsize, limits.file_size)?;
    // Outside a user namespace the kernel counts all processes of the user against this limit, and never limits root.
    if has_own_user && !getuid().is_root() {
        let most = limits.processes.unwrap_or(PROCESSES);
        lower(Resource::Nproc, most.saturating_add(supervisors))?;
        return Ok(Some(most));
    }
    if limits.processes.is_some() && !is_limited_by_cgroup() {
        gaps.push("the number of processes is not limited: there is no delegated cgroup".to_owned());
        return Ok(None);
    }
    Ok(limits.processes)
}

/// Makes the kernel end programs of this run before other processes when memory runs out.
///
/// Must come before `/proc` becomes read-only. An error leaves the order as it was, which restricts nothing.
pub(super) fn yield_memory() {
    let file = "/proc/self/oom_score_adj";
    let now = std::fs::read_to_string(file).ok().and_then(|text| text.trim().parse::<i32>().ok());
    if now.is_some_and(|now| now < OOM_SCORE) {
        let _ = std::fs::write(file, OOM_SCORE.to_string());
    }
}

fn is_limited_by_cgroup() -> bool {
    super::cgroup::has_own()
}

fn lower(resource: Resource, to: u64) -> io::Result<()> {
    let most = getrlimit(resource).maximum.map_or(to, |most| most.min(to));
    Ok(setrlimit(resource, Rlimit { current: Some(most), maximum: Some(most) })?)
}

/// Prevents programs from gaining privileges, for example through a setuid file.
pub(super) fn give_up_new() -> io::Result<()> {
    Ok(set_no_new_privs(true)?)
}

/// Drops all capabilities for good. Programs of root do not get them back at `exec` either.
pub(super) fn drop_capabilities() -> io::Result<()> {
    if faults::is_on(Fault::KeepCapabilities) {
        return Ok(());
    }
    for number in 0..64 {
        let capability = CapabilitySet::from_bits_retain(1 << number);
        match capability_is_in_bounding_set(capability) {
            Ok(true) => unless_forbidden(remove_capability_from_bounding_set(capability))?,
            Ok(false) => {}
            // The first number that the kernel does not know: it knows no higher one either.
            Err(_) => break,
        }
    }
    unless_forbidden(clear_ambient_capability_set())?;
    unless_forbidden(set_capabilities_secure_bits(all_secure_bits()))?;
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    // The kernel's answer decides, because the errors of the single steps are partly ignored.
    match capabilities(None)?.permitted {
        left if left.is_empty() => Ok(()),
        left => Err(io::Error::other(format!("{left:?} are left"))),
    }
}

/// Ignores `EPERM`: a process without capabilities may not change these sets. It cannot gain capabilities anyway, because it has set
/// `no_new_privs`.
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

/// Closes all descriptors above 2 at the next `exec`, so that programs do not inherit files that the engine was started with. An open
/// descriptor gives access without any check of its path.
#[expect(unsafe_code, reason = "there is no safe way to mark all descriptors at once")]
pub(super) fn keep_descriptors() -> io::Result<()> {
    // SAFETY: the descriptors stay open in this process, and are closed only when `exec` replaces it by a program that knows none of them.
    let result =
        unsafe { libc::syscall(libc::SYS_close_range, 3, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Denies programs access to the memory and the descriptors of this process, for example through `/proc`.
pub(super) fn hide_from_programs() -> io::Result<()> {
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}
