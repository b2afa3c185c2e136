use std::fmt::Display;
use std::os::fd::OwnedFd;
use std::path::PathBuf;

use super::mounts::Covered;
use super::namespaces::Namespaces;
use super::places::Places;
use super::sockets::Sockets;
use super::{cgroup, landlock_rules, mounts, namespaces, privileges, syscalls};
use crate::faults::{self, Fault};
use crate::profile::{Enforcement, Level, Network, NetworkWall, Profile};

/// Why a profile cannot be enforced, for the person who has to do something about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) missing: String,
    pub(crate) advice: String,
    /// What has to be put away when this process has ended.
    pub(crate) cgroup: Option<PathBuf>,
}

impl Refusal {
    pub(crate) fn new(missing: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { missing: missing.into(), advice: advice.into(), cgroup: None }
    }

    /// A step that works on every system that comes so far, as far as is known.
    pub(super) fn step(step: &str, error: impl Display) -> Self {
        Self::new(
            format!("{step} failed ({error})"),
            "look whether a container or a security module forbids it",
        )
    }
}

/// What is in force, and what has to be put away after the last program.
#[derive(Debug)]
pub(crate) struct Enforced {
    pub(crate) enforcement: Enforcement,
    pub(crate) cgroup: Option<PathBuf>,
    /// The rules behind which each program of a call is put, so that those of other calls do not look into it.
    pub(crate) room: Option<OwnedFd>,
}

/// Puts this process, which must have one thread, into a sandbox that it cannot leave.
///
/// After an error some of it may be in force; then nothing may be started.
pub(crate) fn enforce(profile: &Profile) -> Result<Enforced, Refusal> {
    let (level, gaps) = (profile.level, profile.gaps.clone());
    let mut enforcement = Enforcement { level, gaps, ..Enforcement::default() };
    let cgroup = limited(profile, &mut enforcement.gaps);
    enforcement.cgroup = cgroup.is_some();
    match confine(profile, &mut enforcement) {
        Ok(room) => Ok(Enforced { enforcement, cgroup, room }),
        Err(refusal) => Err(Refusal { cgroup, ..refusal }),
    }
}

/// Does all but the limits of a cgroup, which are there. Returns the rules for each call.
fn confine(profile: &Profile, enforcement: &mut Enforcement) -> Result<Option<OwnedFd>, Refusal> {
    let places = Places::of(profile);
    places.check()?;
    places.describe_gaps(&mut enforcement.gaps);
    // Before the namespace of the network is left: the kernel lists the sockets of the own one alone.
    let sockets = Sockets::list();
    let namespaces = namespaces::enter(wants_own_network(profile));
    enforcement.network = network_wall(profile, &namespaces, &mut enforcement.gaps);
    let covered = cover(profile, &places, &namespaces, &sockets, &mut enforcement.gaps)?;
    enforcement.mounts = covered.is_some();
    let has_own_user = namespaces.has_own_user;
    enforcement.processes = privileges::limit(&profile.limits, has_own_user, &mut enforcement.gaps)
        .map_err(|error| Refusal::step("setting limits", error))?;
    privileges::keep_descriptors().map_err(|error| Refusal::step("keeping descriptors", error))?;
    privileges::give_up_new().map_err(|error| Refusal::step("giving up new privileges", error))?;
    let wall = landlock_rules::LandlockRules { places: &places, covered, network: enforcement.network };
    enforcement.landlock = wall.raise(&mut enforcement.gaps)?;
    privileges::drop_capabilities().map_err(|error| Refusal::step("dropping capabilities", error))?;
    privileges::hide_from_programs().map_err(|error| Refusal::step("hiding from programs", error))?;
    // Last: some of the above is denied from then on.
    syscalls::filter(enforcement.network, enforcement.mounts)?;
    Ok(landlock_rules::own_room())
}

fn wants_own_network(profile: &Profile) -> bool {
    profile.network == Network::None && !faults::is_on(Fault::NoNetworkWall)
}

/// Makes a cgroup for the limits of all programs together, where there may be one.
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
    if !namespaces.network {
        gaps.push(format!("no loopback: {}", namespaces.why("network")));
        return NetworkWall::Filter;
    }
    if let Err(error) = namespaces::raise_loopback() {
        gaps.push(format!("no loopback: it cannot be set up ({error})"));
    }
    NetworkWall::Namespace
}

/// Covers what has to be out of sight, if this process has mounts of its own.
fn cover(
    profile: &Profile,
    places: &Places,
    namespaces: &Namespaces,
    sockets: &Sockets,
    gaps: &mut Vec<String>,
) -> Result<Option<Covered>, Refusal> {
    let problem = if namespaces.mounts {
        match mounts::make_private() {
            Ok(()) => {
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
    places.describe_uncovered(&problem, gaps);
    gaps.push(format!("no unix sockets, no `/dev/shm`, no new terminals: {problem}"));
    Ok(None)
}
