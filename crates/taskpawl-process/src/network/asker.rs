//! The call that a connection or a question of a program belongs to.

use std::fmt::Debug;
use std::pin::Pin;

/// The sending side of a packet or connection, in the network of the programs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) transport: Transport,
    /// The port of the sending socket, which the kernel sets.
    pub(crate) port: u16,
}

/// The protocol of a socket with a port.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Transport {
    Tcp,
    Udp,
}

impl Source {
    pub(crate) fn tcp(port: u16) -> Self {
        Self { transport: Transport::Tcp, port }
    }

    pub(crate) fn udp(port: u16) -> Self {
        Self { transport: Transport::Udp, port }
    }
}

/// Finds calls by the sockets of their programs.
pub(crate) trait CallLookup: Debug + Send + Sync {
    /// Returns the call whose programs have the socket; `None` if no program has it any more.
    fn call_of(&self, source: Source) -> Pin<Box<dyn Future<Output = Option<u64>> + Send + '_>>;
}
