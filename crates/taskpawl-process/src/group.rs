use std::io;
use std::os::fd::OwnedFd;
use std::process::{ExitStatus, Stdio};
use std::sync::Arc;

use crate::error::SpawnError;
use crate::network::RefusedAccess;
use crate::own_group::OwnGroup;
use crate::spawn_spec::SpawnSpec;
use crate::supervisor::{Ending, Link, Ticket};

/// The streams that a program inherits: standard output, standard error, standard input if it has any, and
/// the passed descriptor.
#[derive(Debug)]
pub(crate) struct Streams {
    pub(crate) outputs: [OwnedFd; 2],
    pub(crate) stdin: Option<OwnedFd>,
    pub(crate) handover: Option<OwnedFd>,
}

/// A running program with its descendants. Dropping it kills all of them.
#[derive(Debug)]
pub(crate) enum Group {
    /// Started by this process.
    Own(OwnGroup),
    /// Started by a supervisor.
    Supervised(Ticket),
}

impl Group {
    /// Starts a program through the supervisor behind `link`, or in this process if there is none.
    pub(crate) fn start(
        link: Option<&Arc<Link>>,
        spec: &SpawnSpec<'_>,
        streams: Streams,
    ) -> Result<Self, SpawnError> {
        let Some(link) = link else {
            if spec.handover.is_some() {
                return Err(SpawnError::HandoverUnsupervised);
            }
            let group = start_here(spec, streams).map_err(|source| spec.refusal(source))?;
            return Ok(Self::Own(group));
        };
        let ticket = link.spawn(spec, streams).map_err(|source| spec.refusal(source))?;
        Ok(Self::Supervised(ticket))
    }

    /// Waits until the program has ended or has failed to start.
    ///
    /// # Cancel safety
    ///
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn ended(&mut self) {
        match self {
            Self::Own(group) => group.ended().await,
            Self::Supervised(ticket) => ticket.ended().await,
        }
    }

    /// Sends `TERM`, which the program may handle.
    pub(crate) fn terminate(&self) {
        match self {
            Self::Own(group) => group.terminate(),
            Self::Supervised(ticket) => ticket.terminate(),
        }
    }

    /// Sends `KILL`.
    pub(crate) fn kill(&self) {
        match self {
            Self::Own(group) => group.kill(),
            Self::Supervised(ticket) => ticket.kill(),
        }
    }

    /// Returns the network access that the program was refused so far.
    pub(crate) async fn refused(&self) -> Vec<RefusedAccess> {
        match self {
            Self::Own(_) => Vec::new(),
            Self::Supervised(ticket) => ticket.refused().await,
        }
    }

    /// Kills the remaining processes and returns the status of the program. Call it after [`Group::ended`].
    pub(crate) fn reap(self, spec: &SpawnSpec<'_>) -> Result<ExitStatus, SpawnError> {
        match self {
            Self::Own(group) => group.reap().map_err(|source| spec.refusal(source)),
            Self::Supervised(ticket) => match ticket.into_ending() {
                Ending::Exited(status) => Ok(status),
                Ending::NotStarted(source) => Err(spec.refusal(source)),
                Ending::Lost(error) => Err(error),
            },
        }
    }
}

fn start_here(spec: &SpawnSpec<'_>, streams: Streams) -> io::Result<OwnGroup> {
    let [stdout, stderr] = streams.outputs;
    let mut command = spec.command();
    command.stdin(streams.stdin.map_or_else(Stdio::null, Stdio::from)).stdout(stdout).stderr(stderr);
    OwnGroup::spawn(&mut command)
}
