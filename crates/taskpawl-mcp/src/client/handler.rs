//! What a server says by itself, and what is known of its connection.

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

/// How often a call may say how far it is. What comes between is left out: a server may say so without end.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);

/// The longest message about progress, in characters.
const MAX_PROGRESS_CHARS: usize = 500;

/// What the parts of a connection tell each other.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// Fires when nothing more will be said on the connection.
    pub(super) over: CancellationToken,
    /// How many messages came from the server.
    pub(super) received: AtomicU64,
    /// A call was given up during which nothing came from the server.
    pub(super) is_suspect: AtomicBool,
    /// The server has said that its tools are others now.
    pub(super) is_stale: AtomicBool,
    problem: Mutex<Option<String>>,
    routes: Mutex<HashMap<ProgressToken, Route>>,
}

/// Who hears how far a call is.
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
    /// Ends the connection, for a reason that the server is to blame for.
    pub(super) fn give_up(&self, problem: String) {
        locked(&self.problem).get_or_insert(problem);
        self.over.cancel();
    }

    /// Returns what the server is to blame for.
    pub(super) fn problem(&self) -> Option<String> {
        locked(&self.problem).clone()
    }

    /// Lets a call hear how far it is, until the guard is dropped.
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
        drop(routes);
        cx.report(words(progress));
    }
}

/// A call that waits for its answer.
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

/// Hears what the server says by itself.
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
        // No capabilities: nobody is there whom a server could ask.
        let own = Implementation::new("taskpawl", env!("CARGO_PKG_VERSION"));
        ClientConfig::new(ClientCapabilities::default(), own)
    }
}

pub(super) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
