//! Flags of sockets. Systems without them cannot start the programs of calls, which is where they matter: a program inherits a socket
//! that is open when it starts, and a closed peer sends SIGPIPE, which programs in Rust ignore.

use rustix::net::{RecvFlags, SendFlags, SocketFlags};

#[cfg(target_os = "linux")]
mod system {
    use super::{RecvFlags, SendFlags, SocketFlags};

    pub(in super::super) const CLOSED_ON_EXEC: SocketFlags = SocketFlags::CLOEXEC;
    pub(in super::super) const RIGHTS_CLOSED_ON_EXEC: RecvFlags = RecvFlags::CMSG_CLOEXEC;
    pub(in super::super) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;
}

#[cfg(not(target_os = "linux"))]
mod system {
    use super::{RecvFlags, SendFlags, SocketFlags};

    pub(in super::super) const CLOSED_ON_EXEC: SocketFlags = SocketFlags::empty();
    pub(in super::super) const RIGHTS_CLOSED_ON_EXEC: RecvFlags = RecvFlags::empty();
    pub(in super::super) const NO_SIGNAL: SendFlags = SendFlags::empty();
}

pub(super) use system::{CLOSED_ON_EXEC, NO_SIGNAL, RIGHTS_CLOSED_ON_EXEC};
