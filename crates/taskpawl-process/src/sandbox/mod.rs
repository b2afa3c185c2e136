//! Restrictions that a supervisor puts on itself before it starts programs, so that all of them inherit the restrictions.

mod links;
mod refusal;

#[cfg(feature = "programs")]
mod cgroup;
#[cfg(feature = "programs")]
mod enforce;
#[cfg(feature = "programs")]
mod landlock_rules;
#[cfg(feature = "programs")]
mod layers;
#[cfg(feature = "programs")]
mod listeners;
#[cfg(feature = "programs")]
mod mounts;
#[cfg(feature = "programs")]
mod namespaces;
#[cfg(feature = "programs")]
mod own_processes;
#[cfg(feature = "programs")]
mod places;
#[cfg(feature = "programs")]
mod privileges;
#[cfg(feature = "programs")]
mod sockets;
#[cfg(feature = "programs")]
mod syscalls;

pub use links::{Way, follow};
pub(crate) use refusal::Refusal;

#[cfg(feature = "programs")]
pub(crate) use self::{
    cgroup::leave as leave_cgroup,
    enforce::{Enforced, enforce},
    places::Places,
    sockets::{ListeningSocket, listening_sockets},
};
