//! Notifications of a server, and the state that the parts of a connection share.

use std::collections::HashMap;
use std::fmt;
use std::future::{Future, ready};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::ClientHandler;
use rmcp::model::{
    ClientCapabilities, ClientConfig, Implementation, ProgressNotificationParam, ProgressToken,
};
use rmcp::service::{NotificationContext, RoleClient};
use taskpawl::tools::CallContext;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::words::plain;

/// Least time between two progress reports of a call. Reports in between are dropped, since a server may send any
/// number of them.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// Maximum length of a progress message, in characters.
const MAX_PROGRESS_CHARS: usize = 500;

/// The state that the parts of a connection share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Fires when nothing more will be sent or received on the connection.
    pub(super) over: CancellationToken,
    /// Number of messages received from the server.
    pub(super) received: AtomicU64,
    /// The server sent nothing during a call that was interrupted.
    pub(super) is_suspect: AtomicBool,
    /// The server has reported that its tools changed.
    pub(super) is_stale: AtomicBool,
    problem: Mutex<Option<String>>,
    routes: Mutex<HashMap<ProgressToken, Route>>,
}

/// The receiver of a call's progress reports.
struct Route {
    cx: CallContext,
    last: Option<Instant>,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Route").field("call", &self.cx.call).finish_non_exhaustive()
    }
}

impl Shared {
    /// Ends the connection because of a fault of the server. The first reason is kept.
    pub(super) fn give_up(&self, problem: String) {
        locked(&self.problem).get_or_insert(problem);
        self.over.cancel();
    }

    /// Returns the fault of the server that ended the connection.
    pub(super) fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    /// Reports the progress of a call to its context until the guard is dropped.
    pub(super) fn route(self: &Arc<Self>, token: ProgressToken, cx: &CallContext) -> Routed {
        if cx.progress.is_some() {
            locked(&self.routes).insert(token.clone(), Route { cx: cx.clone(), last: None });
        }
        Routed { shared: Arc::clone(self), token }
    }

    fn progress(&self, progress: &ProgressNotificationParam) {
        let mut routes = locked(&self.routes);
        let Some(route) = routes.get_mut(&progress.progress_token) else { return };
        let now = Instant::now();
        if route.last.is_some_and(|last| now - last < PROGRESS_INTERVAL) {
            return;
        }
        route.last = Some(now);
        let cx = route.cx.clone();
        // The receiver is code of the host. It is called without the lock, so that it cannot block other calls.
        drop(routes);
        cx.report(words(progress));
    }
}

/// A call that waits for its answer and receives progress reports.
pub(super) struct Routed {
    shared: Arc<Shared>,
    token: ProgressToken,
}

impl Drop for Routed {
    fn drop(&mut self) {
        locked(&self.shared.routes).remove(&self.token);
    }
}

pub(super) fn words(progress: &ProgressNotificationParam) -> String {
    let ProgressNotificationParam { progress: done, total, message, .. } = progress;
    let count = match total {
        Some(total) => format!("{done} of {total}"),
        None => done.to_string(),
    };
    match message.as_deref().map(str::trim).filter(|message| !message.is_empty()) {
        Some(message) => {
            format!("{} ({count})", plain(message, MAX_PROGRESS_CHARS))
        }
        None => count,
    }
}

/// Handles notifications of the server.
#[derive(Debug)]
pub(super) struct Handler(pub(super) Arc<Shared>);

impl ClientHandler for Handler {
    fn on_progress(
        &self,
        params: ProgressNotificationParam,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.0.progress(&params);
        ready(())
    }

    fn on_tool_list_changed(
        &self,
        _: NotificationContext<RoleClient>,
    ) -> impl Future<Output = ()> + Send + '_ {
        self.0.is_stale.store(true, Ordering::Relaxed);
        ready(())
    }

    fn get_info(&self) -> ClientConfig {
        // No capabilities: in a run there is nobody to answer a server's questions.
        let own = Implementation::new("taskpawl", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
