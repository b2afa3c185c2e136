use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::mounts::Covered;
use super::namespaces::Namespaces;
use super::places::Places;
use super::sockets::Sockets;
use super::{cgroup, landlock_rules, listeners, mounts, namespaces, own_processes, privileges, syscalls};
use crate::faults::{self, Fault};
use crate::profile::{Enforcement, Level, Network, NetworkWall, Profile};
use crate::sandbox::refusal::Refusal;

/// The restrictions in force, and the cgroup to remove after the last program.
#[derive(Debug)]
pub(crate) struct Enforced {
    pub(crate) enforcement: Enforcement,
    pub(crate) cgroup: Option<PathBuf>,
    /// A Landlock ruleset that each program of a call puts itself under, so that programs of other calls cannot trace it.
    pub(crate) room: Option<OwnedFd>,
    /// Sockets for granted hosts and ports, in the order of the profile's layout. The engine serves them.
    pub(crate) sockets: Vec<OwnedFd>,
}

/// Puts this process into a sandbox that it cannot leave. The process must have exactly one thread.
///
/// After an error some restrictions may already be in force. The process must not start programs then.
pub(crate) fn enforce(profile: &Profile) -> Result<Enforced, Refusal> {
    let (level, gaps) = (profile.level, profile.gaps.clone());
    let mut enforcement = Enforcement { level, gaps, ..Enforcement::default() };
    // First: a new cgroup needs write access to `/sys/fs/cgroup`, which the later steps take away.
    let cgroup = limited(profile, &mut enforcement.gaps);
    enforcement.cgroup = cgroup.is_some();
    match confine(profile, &mut enforcement) {
        Ok((room, sockets)) => Ok(Enforced { enforcement, cgroup, room, sockets }),
        Err(refusal) => Err(Refusal { cgroup, ..refusal }),
    }
}

/// Applies everything except the cgroup, which is set up before. Returns the ruleset for each call, and the sockets for granted hosts.
fn confine(
    profile: &Profile,
    enforcement: &mut Enforcement,
) -> Result<(Option<OwnedFd>, Vec<OwnedFd>), Refusal> {
    privileges::yield_memory();
    let places = Places::of(profile);
    places.check()?;
    places.describe_gaps(&mut enforcement.gaps);
    // Before the network namespace is left: the kernel lists only the sockets of the current namespace.
    let sockets = Sockets::list();
    let namespaces = namespaces::enter(wants_own_network(profile));
    enforcement.network = network_wall(profile, &namespaces, &mut enforcement.gaps);
    let covered = cover(profile, &places, &namespaces, &sockets, enforcement)?;
    enforcement.mounts = covered.is_some();
    let listening = listeners::open(profile, enforcement.network, &mut enforcement.gaps)?;
    let has_own_user = namespaces.has_own_user;
    // The kernel counts the supervisor, too, and the process that waits for it outside of its process namespace. Inside `bwrap` there is
    // no such process.
    let has_outer = enforcement.own_processes && profile.level == Level::Standard;
    let supervisors = 1 + u64::from(has_outer);
    enforcement.processes =
        privileges::limit(&profile.limits, supervisors, has_own_user, &mut enforcement.gaps)
            .map_err(|error| Refusal::step("setting limits", error))?;
    privileges::keep_descriptors().map_err(|error| Refusal::step("keeping descriptors", error))?;
    // Before Landlock and seccomp, which the kernel lets an unprivileged process use only with `no_new_privs`.
    privileges::give_up_new().map_err(|error| Refusal::step("giving up new privileges", error))?;
    let wall = landlock_rules::LandlockRules { places: &places, covered, network: enforcement.network };
    enforcement.landlock = wall.raise(&mut enforcement.gaps)?;
    privileges::drop_capabilities().map_err(|error| Refusal::step("dropping capabilities", error))?;
    privileges::hide_from_programs().map_err(|error| Refusal::step("hiding from programs", error))?;
    // Last: the filter denies some system calls that the steps above make.
    syscalls::filter(enforcement)?;
    Ok((landlock_rules::own_room(), listening))
}

fn wants_own_network(profile: &Profile) -> bool {
    profile.network == Network::None && !faults::is_on(Fault::NoNetworkWall)
}

/// Creates a cgroup for the limits that all programs share, if the system allows one.
///
/// A missing cgroup is a gap only for a memory limit. `privileges::limit` reports the gap for a process limit, which it can often set
/// itself.
fn limited(profile: &Profile, gaps: &mut Vec<String>) -> Option<PathBuf> {
    if profile.limits.memory.is_none() && profile.limits.processes.is_none() {
        return None;
    }
    let entered = cgroup::enter(&profile.limits);
    if let Err(problem) = &entered
        && profile.limits.memory.is_some()
    {
        gaps.push(format!("memory is not limited: {problem}"));
    }
    entered.ok()
}

fn network_wall(profile: &Profile, namespaces: &Namespaces, gaps: &mut Vec<String>) -> NetworkWall {
    if profile.network == Network::Full || faults::is_on(Fault::NoNetworkWall) {
        return NetworkWall::Open;
    }
    // Without a namespace, the filter denies all sockets. Programs then cannot even talk to themselves through the loopback.
    if !namespaces.network {
        gaps.push(format!("no loopback: {}", namespaces.why("network")));
        return NetworkWall::Filter;
    }
    if let Err(error) = namespaces::raise_loopback() {
        gaps.push(format!("no loopback: it cannot be set up ({error})"));
    }
    NetworkWall::Namespace
}

/// Enters a process namespace, and covers hidden paths and foreign sockets, if this process has a mount namespace of its own.
///
/// Without one, `strict` refuses to start. Otherwise the missing protection is reported as gaps.
fn cover(
    profile: &Profile,
    places: &Places,
    namespaces: &Namespaces,
    sockets: &Sockets,
    enforcement: &mut Enforcement,
) -> Result<Option<Covered>, Refusal> {
    let problem = if namespaces.mounts {
        match mounts::make_private() {
            Ok(()) => {
                isolate_processes(enforcement);
                let gaps = &mut enforcement.gaps;
                let covered = mounts::cover(places, sockets, gaps);
                return covered.map(Some).map_err(|error| Refusal::step("mounting", error));
            }
            Err(error) => format!("mounting is forbidden ({error})"),
        }
    } else {
        namespaces.why("mount")
    };
    if profile.level == Level::Strict {
        let advice = "allow user namespaces, or use the sandbox without `strict`";
        return Err(Refusal::new(format!("no mounts of its own: {problem}"), advice));
    }
    let gaps = &mut enforcement.gaps;
    places.describe_uncovered(&problem, gaps);
    gaps.push(format!("no unix sockets, no `/dev/shm`, no new terminals: {problem}"));
    gaps.push(format!("{SHARED_PROCESSES}: {problem}"));
    Ok(None)
}

/// The gap without a process namespace.
const SHARED_PROCESSES: &str = "programs see the processes of this machine, and can end their supervisor";

/// Enters a process namespace. Must come before `/proc` becomes read-only with all other mounts.
fn isolate_processes(enforcement: &mut Enforcement) {
    match own_processes::enter() {
        Ok(()) => enforcement.own_processes = true,
        Err(error) => {
            let problem = format!("the system provides no process namespace with a `/proc` ({error})");
            enforcement.gaps.push(format!("{SHARED_PROCESSES}: {problem}"));
        }
    }
}
