//! Restrictions that a supervisor puts on itself before it starts programs, so that all of them inherit the restrictions.

mod cgroup;
mod enforce;
#[cfg(feature = "programs")]
mod landlock_rules;
#[cfg(not(feature = "programs"))]
#[path = "no_landlock_rules.rs"]
mod landlock_rules;
mod layers;
mod links;
mod listeners;
mod mounts;
mod namespaces;
mod own_processes;
mod places;
mod privileges;
mod refusal;
mod sockets;
#[cfg(feature = "programs")]
mod syscalls;
#[cfg(not(feature = "programs"))]
#[path = "no_syscalls.rs"]
mod syscalls;

pub(crate) use crate::sandbox::refusal::Refusal;
pub(crate) use cgroup::leave as leave_cgroup;
pub(crate) use enforce::{Enforced, enforce};
pub use links::{Way, follow};
pub(crate) use places::Places;
pub(crate) use sockets::{ListeningSocket, listening_sockets};
