use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::time::Duration;

use futures_util::FutureExt;
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::{CallContext, interrupted};
use crate::error::ToolError;
use crate::registry::RegisteredTool;

/// Runs one call of `tool` as everybody should: with checked arguments, held to its deadline and to the tool's own time, its panics
/// caught.
///
/// A tool that is cancelled or past its deadline has [`CallLimits::grace`](crate::CallLimits::grace) to end by itself
/// (a program gets its `TERM` in this time); then its future is dropped and the call fails with
/// [`ToolError::Cancelled`] or [`ToolError::Timeout`]. A plain future: nothing is spawned before it is polled.
///
/// # Cancel safety
///
/// Dropping the future drops the tool's, which ends whatever the call has started.
pub async fn call_guarded(
    tool: RegisteredTool,
    mut cx: CallContext,
    args: Value,
) -> Result<Value, ToolError> {
    if !tool.tool().is_foreign() {
        tool.check_call(&args)?;
    }
    let end = tool.spec().timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    cx.deadline = [cx.deadline, end].into_iter().flatten().min();
    cx.check()?;
    let (cancel, deadline, grace) = (cx.cancel.clone(), cx.deadline, cx.limits.grace);
    let work = AssertUnwindSafe(async { tool.tool().call(cx, args).await }).catch_unwind();
    tokio::select! {
        biased;
        ended = work => ended.unwrap_or_else(|panic| Err(panicked(&*panic))),
        error = overdue(&cancel, deadline, grace) => Err(error),
    }
}

/// Ends when the tool has had its time to react to a cancellation or its deadline. The margin covers what a
/// tool does after it has used up the grace itself: reaping a killed program and reading its output.
async fn overdue(cancel: &CancellationToken, deadline: Option<Instant>, grace: Duration) -> ToolError {
    let error = interrupted(cancel, deadline).await;
    tokio::time::sleep(grace + grace / 4).await;
    error
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    ToolError::Panicked { message: panic_text(panic) }
}

/// Returns the message of a panic in one line.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let message = if let Some(text) = panic.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = panic.downcast_ref::<String>() {
        text.clone()
    } else {
        "no message".to_owned()
    };
    crate::text::one_line(&message)
}
