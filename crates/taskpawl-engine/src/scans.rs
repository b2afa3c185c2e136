//! Scans of the project around a call: which files change, and whether the inputs of its cache do. None of them blocks the run loop or
//! outlasts its bounds.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taskpawl_model::{CacheInputs, CallEnd, Grant, Inquiry, ResolvedWrites, StartedCall};
use taskpawl_tools::{CallContext, CallSandbox, Confinement, SandboxError, ScanBounds, Widening};
use tokio_util::sync::CancellationToken;

use crate::changes::{Changed, Snapshot, Writers};
use crate::fingerprint::fingerprint;
use crate::written::resolve;

/// The longest fingerprint before a task is claimed: the task has no time-out yet, and without a fingerprint it just runs.
const MAX_FINGERPRINT: Duration = Duration::from_mins(10);

/// The longest search for links in paths that a task writes.
const MAX_RESOLVE: Duration = Duration::from_secs(10);

/// Scans before and after one call.
#[derive(Debug)]
pub(crate) struct CallScans {
    /// Of the call, for its project, its cancellation and its deadline.
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
    /// Returns nothing for a call that needs no scan, as most do.
    pub(crate) fn of(started: &StartedCall, cx: &CallContext, writers: &Writers) -> Option<Self> {
        let is_needed = !started.spec.writes.is_empty() || started.cache.is_some();
        is_needed.then(|| Self::new(cx, writers))
    }

    fn new(cx: &CallContext, writers: &Writers) -> Self {
        Self { cx: cx.clone(), writers: writers.clone() }
    }

    /// Takes a snapshot of the project, if the task says which files it writes.
    pub(crate) async fn before(&self, writes: &[String]) -> Option<BeforeWrites> {
        if writes.is_empty() {
            return None;
        }
        let bounds = ScanBounds::before_call(&self.cx);
        // The snapshot knows files by their real paths. The written ones count, too: the call may replace a link by what it writes.
        let ResolvedWrites { asked, paths } = resolve_within(bounds, &self.cx.root, writes.to_vec()).await;
        let number = self.writers.begin(&[asked, paths].concat());
        let snapshot = self.snapshot(ScanBounds::before_call(&self.cx)).await;
        Some(BeforeWrites { snapshot, number })
    }

    /// Returns which files changed that none of the calls says it writes, and whether the inputs of the cache did.
    pub(crate) async fn after(
        &self,
        before: Option<BeforeWrites>,
        inputs: Option<CacheInputs>,
        end: &CallEnd,
    ) -> (Changed, bool) {
        let inputs_changed = self.inputs_changed(inputs, end).await;
        (self.changed(before).await, inputs_changed)
    }

    /// Returns which files changed that none of the calls says it writes.
    async fn changed(&self, before: Option<BeforeWrites>) -> Changed {
        let Some(BeforeWrites { snapshot, number }) = before else { return Changed::default() };
        let after = self.snapshot(ScanBounds::after_call(&self.cx)).await;
        snapshot.changed(after, &self.writers.end(number))
    }

    async fn snapshot(&self, bounds: ScanBounds) -> Snapshot {
        let root = self.cx.root.clone();
        let taken = bounds.run(move |bounds| Ok(Snapshot::take(&root, bounds))).await;
        taken.unwrap_or_else(Snapshot::stopped)
    }

    /// Returns whether files are not any more what they were when the task was claimed; then its success is not recorded. A
    /// fingerprint takes as long as its files are large, so that its bounds are those of the call.
    async fn inputs_changed(&self, inputs: Option<CacheInputs>, end: &CallEnd) -> bool {
        let (Some(inputs), CallEnd::Succeeded(_)) = (inputs, end) else { return false };
        let recorded = inputs.recorded.clone();
        let bounds = ScanBounds::of_call(&self.cx).at_least(Duration::from_secs(1));
        let now = fingerprint_within(bounds, self.cx.root.clone(), inputs).await;
        now.is_none() || now != recorded
    }
}

/// Finds out what has to be known of a task before it is claimed. Where `cancel` fires or the scan takes too long there is no
/// fingerprint, and paths stay as they are written.
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

/// Returns the sandbox of a call that may do what `widening` says beside what every call may. The project is searched for what
/// programs must not see, once for each widening.
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

    const PATIENCE: Duration = Duration::from_mins(1);

    /// A project whose input takes minutes to read, and a call in it that is out of time.
    fn slow_project() -> (tempfile::TempDir, CallContext, CacheInputs) {
        let root = tempfile::tempdir().unwrap();
        File::create(root.path().join("sparse")).unwrap().set_len(1 << 42).unwrap();
        let mut cx = CallContext::new(root.path(), root.path());
        cx.deadline = Some(Instant::now());
        let files = vec!["sparse".to_owned()];
        (root, cx, CacheInputs { work: "work".to_owned(), files, recorded: None })
    }

    #[tokio::test]
    async fn a_huge_input_does_not_outlast_the_time_of_its_call() {
        let (_root, cx, inputs) = slow_project();
        let scans = CallScans::new(&cx, &Writers::default());
        let end = CallEnd::Succeeded(Value::Null);
        let changed = timeout(PATIENCE, scans.inputs_changed(Some(inputs), &end)).await;
        assert_eq!(changed, Ok(true), "its success is not recorded");
    }

    #[tokio::test]
    async fn a_huge_input_of_a_call_that_failed_is_not_read() {
        let (_root, mut cx, inputs) = slow_project();
        cx.deadline = None;
        let scans = CallScans::new(&cx, &Writers::default());
        let end = CallEnd::interrupted(true);
        assert_eq!(timeout(PATIENCE, scans.inputs_changed(Some(inputs), &end)).await, Ok(false));
    }

    #[tokio::test]
    async fn a_huge_input_before_a_claim_ends_with_the_run() {
        let (root, cx, inputs) = slow_project();
        let cancel = cx.cancel.clone();
        let inquiry = Inquiry { cache: Some(inputs), writes: Vec::new() };
        let scan = inquire(cancel.clone(), root.path().to_owned(), inquiry);
        let both = async { tokio::join!(scan, async { cancel.cancel() }).0 };
        let work = Some("work".to_owned());
        assert_eq!(timeout(PATIENCE, both).await, Ok(Grant { work, ..Grant::default() }));
    }

    #[tokio::test]
    async fn a_snapshot_that_was_stopped_says_that_changes_are_unknown() {
        let (root, cx, _) = slow_project();
        let scans = CallScans::new(&cx, &Writers::default());
        let before = scans.before(&["out".to_owned()]).await;
        fs::write(root.path().join("other"), "").unwrap();
        let Changed { files, unknown } = scans.changed(before).await;
        assert_eq!((files, unknown), (Vec::new(), Some(ScanStopped::TimedOut.to_string())));
    }
}
