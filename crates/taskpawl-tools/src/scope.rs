//! Scope of calls: a label that a host program attaches to all work of one conversation, session or agent.

use std::future::Future;

tokio::task_local! {
    static SCOPE: String;
}

/// Runs `work`, for example the run of an agent, within a scope.
///
/// Contexts of calls and runs that are created in `work` carry it in [`CallContext::scope`](crate::CallContext::scope).
/// The scope ends with `work`, even on a panic. Tasks that `work` spawns do not inherit it.
///
/// ```
/// use taskpawl_tools::{CallContext, current_scope, in_scope};
///
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # runtime.block_on(async {
/// let scope = in_scope("talk-1", async { CallContext::new("/", "/tmp/call").scope }).await;
/// assert_eq!(scope.as_deref(), Some("talk-1"));
/// assert_eq!(current_scope(), None);
/// # });
/// ```
pub async fn in_scope<T>(scope: impl Into<String>, work: impl Future<Output = T>) -> T {
    SCOPE.scope(scope.into(), work).await
}

/// Returns the current scope, if there is one.
pub fn current_scope() -> Option<String> {
    SCOPE.try_with(Clone::clone).ok()
}
