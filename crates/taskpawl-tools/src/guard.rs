use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::context::{CallContext, interrupted};
use crate::error::ToolError;
use crate::layer::{CallLayer, Next};
use crate::registry::RegisteredTool;

/// Runs a tool call with argument validation, deadline and panic handling.
///
/// The deadline is the earlier one of the context and the tool. After a cancellation or at the deadline the tool has
/// [`CallLimits::grace`](crate::CallLimits::grace) to end by itself; a program gets its `TERM` in this time. Then its
/// future is dropped, and the call fails with [`ToolError::Cancelled`] or [`ToolError::Timeout`]. Nothing is spawned
/// before the future is polled.
///
/// # Cancel safety
///
/// Dropping the future drops that of the tool, which ends everything that the call has started.
pub async fn call_guarded(tool: RegisteredTool, cx: CallContext, args: Value) -> Result<Value, ToolError> {
    call_layered(tool, &[], cx, args).await
}

/// Runs a tool call like [`call_guarded`], through `layers`, the outermost first. They see arguments that fit the tool.
///
/// # Cancel safety
///
/// As for [`call_guarded`].
pub async fn call_layered(
    tool: RegisteredTool,
    layers: &[Arc<dyn CallLayer>],
    mut cx: CallContext,
    args: Value,
) -> Result<Value, ToolError> {
    if !tool.tool().is_foreign() {
        tool.check_call(&args)?;
    }
    let end = tool.spec().timeout.and_then(|timeout| Instant::now().checked_add(timeout));
    cx.deadline = [cx.deadline, end].into_iter().flatten().min();
    // A call that is already cancelled or late must not start at all.
    cx.check()?;
    let (cancel, deadline, grace) = (cx.cancel.clone(), cx.deadline, cx.limits.grace);
    let work = caught(Next::new(&**tool.tool(), layers).run(cx, args));
    tokio::select! {
        biased;
        ended = work => ended.unwrap_or_else(|panic| Err(panicked(&*panic))),
        error = overdue(&cancel, deadline, grace) => Err(error),
    }
}

/// Runs a future to its end or its panic.
async fn caught<T>(future: impl Future<Output = T>) -> Result<T, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|cx| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(cx))) {
        Ok(poll) => poll.map(Ok),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}

/// Completes when the tool has had its time to react to a cancellation or the deadline.
///
/// The margin is for the work of a tool after it has used the whole grace period itself: reaping a killed program and
/// reading its output.
async fn overdue(cancel: &CancellationToken, deadline: Option<Instant>, grace: Duration) -> ToolError {
    let error = interrupted(cancel, deadline).await;
    tokio::time::sleep(grace + grace / 4).await;
    error
}

fn panicked(panic: &(dyn Any + Send)) -> ToolError {
    ToolError::Panicked { message: panic_text(panic) }
}

/// Returns the message of a panic as one line.
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
