//! Signals that end a server.

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Signals that end the server.
pub(super) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(super) fn listen() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    /// Waits for a signal, calls `stop_runs`, and returns the exit code. SIGTERM and SIGHUP count twice:
    /// their sender does not wait for calls that may take minutes.
    pub(super) async fn stop(&mut self, stop_runs: impl Fn()) -> u8 {
        let (exit, requests) = tokio::select! {
            _ = self.interrupt.recv() => (130, 1),
            _ = self.terminate.recv() => (143, 2),
            _ = self.hang_up.recv() => (129, 2),
        };
        for _ in 0..requests {
            stop_runs();
        }
        exit
    }
}
