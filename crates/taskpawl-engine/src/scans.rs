//! Scans of the project around a call: changed files, and changed cache inputs. No scan blocks the run loop or exceeds
//! its bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_model::command::{CacheInputs, CallEnd, Grant, Inquiry, ResolvedWrites, StartedCall};
use taskpawl_tools::{CallContext, CallSandbox, Confinement, SandboxError, ScanBounds, Widening};
use tokio_util::sync::CancellationToken;

use crate::changes::{Changed, Snapshot, Writers};
use crate::fingerprint::fingerprint;
use crate::written::resolve;

/// Time limit for a fingerprint before a claim. The task has no timeout yet at that point; without a fingerprint it
/// simply runs.
const MAX_FINGERPRINT: Duration = Duration::from_secs(10 * 60);

/// Time limit for resolving links in the paths that a task writes.
const MAX_RESOLVE: Duration = Duration::from_secs(10);

/// Scans before and after one call.
#[derive(Debug)]
pub(crate) struct CallScans {
    /// Context of the call, for its project, cancellation and deadline.
    cx: CallContext,
    writers: Writers,
}

/// The files of a project before a call.
#[derive(Debug)]
pub(crate) struct BeforeWrites {
    snapshot: Snapshot,
    number: u64,
}

impl CallScans {
    /// Returns `None` for a call that needs no scan, which is the usual case.
    pub(crate) fn of(started: &StartedCall, cx: &CallContext, writers: &Writers) -> Option<Self> {
        let is_needed = !started.spec.writes.is_empty() || started.cache.is_some();
        is_needed.then(|| Self::new(cx, writers))
    }

    fn new(cx: &CallContext, writers: &Writers) -> Self {
        Self { cx: cx.clone(), writers: writers.clone() }
    }

    /// Takes a snapshot of the project if the task declares the files that it writes.
    pub(crate) async fn before(&self, writes: &[String]) -> Option<BeforeWrites> {
        if writes.is_empty() {
            return None;
        }
        let bounds = ScanBounds::before_call(&self.cx);
        // Snapshots contain real paths, so the resolved paths are needed. The declared ones count as well, because the
        // call may replace a link by a file.
        let ResolvedWrites { asked, paths } = resolve_within(bounds, &self.cx.root, writes.to_vec()).await;
        let number = self.writers.begin(&[asked, paths].concat());
        let snapshot = self.snapshot(ScanBounds::before_call(&self.cx)).await;
        Some(BeforeWrites { snapshot, number })
    }

    /// Returns the changed files that no concurrent call declares, and whether the cache inputs have changed.
    pub(crate) async fn after(
        &self,
        before: Option<BeforeWrites>,
        inputs: Option<CacheInputs>,
        end: &CallEnd,
    ) -> (Changed, bool) {
        let inputs_changed = self.inputs_changed(inputs, end).await;
        (self.changed(before).await, inputs_changed)
    }

    /// Returns the changed files that no concurrent call declares.
    async fn changed(&self, before: Option<BeforeWrites>) -> Changed {
        let Some(BeforeWrites { snapshot, number }) = before else { return Changed::default() };
        // The snapshot comes first: calls that start until then are registered as concurrent.
        let after = self.snapshot(ScanBounds::after_call(&self.cx)).await;
        snapshot.changed(after, &self.writers.end(number))
    }

    async fn snapshot(&self, bounds: ScanBounds) -> Snapshot {
        let root = self.cx.root.clone();
        let taken = bounds.run(move |bounds| Ok(Snapshot::take(&root, bounds))).await;
        taken.unwrap_or_else(Snapshot::stopped)
    }

    /// Returns whether the cache inputs differ from those at the time of the claim. The success is not cached then.
    /// Reading large files takes time, so the bounds are those of the call.
    async fn inputs_changed(&self, inputs: Option<CacheInputs>, end: &CallEnd) -> bool {
        // A failed call is never cached, so its inputs need not be read.
        let (Some(inputs), CallEnd::Succeeded(_)) = (inputs, end) else { return false };
        let recorded = inputs.recorded.clone();
        let bounds = ScanBounds::of_call(&self.cx).at_least(Duration::from_secs(1));
        let now = fingerprint_within(bounds, self.cx.root.clone(), inputs).await;
        now.is_none() || now != recorded
    }
}

/// Looks up the information that is needed to claim a task. If `cancel` fires or a scan takes too long, there is no
/// fingerprint, and the declared paths are used unresolved.
pub(crate) async fn inquire(cancel: CancellationToken, root: PathBuf, inquiry: Inquiry) -> Grant {
    let Inquiry { cache, writes } = inquiry;
    let resolved = ScanBounds::new(cancel.clone(), None).at_most(MAX_RESOLVE);
    let writes = if writes.is_empty() { None } else { Some(resolve_within(resolved, &root, writes).await) };
    let Some(inputs) = cache else { return Grant { writes, ..Grant::default() } };
    let work = Some(inputs.work.clone());
    let bounds = ScanBounds::new(cancel, None).at_most(MAX_FINGERPRINT);
    Grant { work, fingerprint: fingerprint_within(bounds, root, inputs).await, writes }
}

async fn resolve_within(bounds: ScanBounds, root: &Path, asked: Vec<String>) -> ResolvedWrites {
    let (root, writes) = (root.to_owned(), asked.clone());
    let paths = bounds.run(move |_| Ok(resolve(&root, &writes))).await;
    ResolvedWrites { paths: paths.unwrap_or_else(|_| asked.clone()), asked }
}

async fn fingerprint_within(bounds: ScanBounds, root: PathBuf, inputs: CacheInputs) -> Option<String> {
    bounds.run(move |bounds| Ok(fingerprint(&root, &inputs, bounds))).await.ok().flatten()
}

/// Adds the sandbox to a context. `widening` extends the rules that apply to every call.
pub(crate) async fn confined(
    mut context: CallContext,
    confinement: &Arc<Confinement>,
    widening: Widening,
) -> Result<CallContext, SandboxError> {
    let bounds = ScanBounds::of_call(&context);
    CallSandbox { sandbox: context.sandbox, environment: context.environment, closed: context.closed } =
        sandbox_of(confinement, widening, bounds).await?;
    Ok(context)
}

/// Returns the sandbox of a call with the given widening. For the first use of each widening the project is searched
/// for paths that programs must not see; later uses are cached.
pub(crate) async fn sandbox_of(
    confinement: &Arc<Confinement>,
    widening: Widening,
    bounds: ScanBounds,
) -> Result<CallSandbox, SandboxError> {
    if let Some(known) = confinement.made(&widening) {
        return Ok(known);
    }
    let confinement = Arc::clone(confinement);
    bounds.run(move |bounds| Ok(confinement.of_call(&widening, bounds))).await?
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};

    use serde_json::Value;
    use taskpawl_tools::ScanStopped;
    use tokio::time::{Instant, timeout};

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(60);

    /// Returns a project whose input would take minutes to read, and the context of a call whose deadline has passed.
    fn slow_project() -> (tempfile::TempDir, CallContext, CacheInputs) {
        let root = tempfile::tempdir().unwrap();
        // A sparse file of 4 TiB takes no disk space.
        File::create(root.path().join("sparse")).unwrap().set_len(1 << 42).unwrap();
        let mut cx = CallContext::new(root.path(), root.path());
        cx.deadline = Some(Instant::now());
        let files = vec!["sparse".to_owned()];
        (root, cx, CacheInputs { work: "work".to_owned(), files, recorded: None })
    }

    #[tokio::test]
    async fn fingerprint_of_a_huge_input_stops_at_the_deadline_of_the_call() {
        let (_root, cx, inputs) = slow_project();
        let scans = CallScans::new(&cx, &Writers::default());
        let end = CallEnd::Succeeded(Value::Null);
        let changed = timeout(PATIENCE, scans.inputs_changed(Some(inputs), &end)).await;
        assert_eq!(changed, Ok(true), "an unfinished fingerprint must not be recorded as a success");
    }

    #[tokio::test]
    async fn inputs_of_a_failed_call_are_not_read() {
        let (_root, mut cx, inputs) = slow_project();
        cx.deadline = None;
        let scans = CallScans::new(&cx, &Writers::default());
        let end = CallEnd::interrupted(true);
        assert_eq!(timeout(PATIENCE, scans.inputs_changed(Some(inputs), &end)).await, Ok(false));
    }

    #[tokio::test]
    async fn fingerprint_before_a_claim_stops_with_the_run() {
        let (root, cx, inputs) = slow_project();
        let cancel = cx.cancel.clone();
        let inquiry = Inquiry { cache: Some(inputs), writes: Vec::new() };
        let scan = inquire(cancel.clone(), root.path().to_owned(), inquiry);
        let both = async { tokio::join!(scan, async { cancel.cancel() }).0 };
        let work = Some("work".to_owned());
        assert_eq!(timeout(PATIENCE, both).await, Ok(Grant { work, ..Grant::default() }));
    }

    #[tokio::test]
    async fn a_stopped_snapshot_reports_unknown_changes() {
        let (root, cx, _) = slow_project();
        let scans = CallScans::new(&cx, &Writers::default());
        let before = scans.before(&["out".to_owned()]).await;
        fs::write(root.path().join("other"), "").unwrap();
        let Changed { files, unknown } = scans.changed(before).await;
        assert_eq!((files, unknown), (Vec::new(), Some(ScanStopped::TimedOut.to_string())));
    }
}
