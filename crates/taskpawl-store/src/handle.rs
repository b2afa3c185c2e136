//! The handle of a store: a queue in front of the committer, a thread that drains it for callers that cannot
//! wait, and the notification of waiting readers after each commit.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taskpawl_model::command::Request;
use taskpawl_model::view::{View, ViewResult};

use crate::StoreError;
use crate::backend::Backend;
use crate::backend::Reader;
use crate::committer::Committer;
use crate::faults::{self, Fault};
use crate::store::{Outcome, Reply, Store, ViewCallback};

const FIRST_POLL: Duration = Duration::from_millis(20);
const LAST_POLL: Duration = Duration::from_millis(200);

/// The [`Store`] over any backend.
pub(crate) struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// True if a commit never waits for a disk or another process.
    is_instant: bool,
    reader: Box<dyn Reader>,
    committer: Mutex<Committer>,
    queue: Mutex<Queue>,
    /// Signalled by `submit` and by the drop of the handle. Only the committer thread waits for it.
    work: Condvar,
    /// A copy of the flag of the committer, so that readers can check it without waiting for a running
    /// commit.
    is_poisoned: AtomicBool,
    committed: Mutex<Committed>,
    /// Signalled after each commit of this process, if a reader waits.
    commit_signal: Condvar,
}

#[derive(Debug, Default)]
struct Committed {
    /// The last revision that this process committed.
    revision: u64,
    /// Number of waiting readers. Without one, the notification and its system call are skipped.
    waiting: usize,
}

/// Jobs are added by `submit` and `write`, and taken by the holder of the committer. The queue needs no bound
/// of its own: `write` blocks its caller, and a dispatcher submits at most the results of its window of calls
/// in flight.
#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

struct Job {
    requests: Vec<Request>,
    look: Option<ViewCallback>,
    reply: Reply,
}

/// The read callbacks of the jobs of one commit, in order, each with the index range of its outcomes.
struct ViewCallbacks(VecDeque<(Range<usize>, ViewCallback)>);

impl ViewCallbacks {
    fn of(jobs: &mut [Job]) -> Self {
        let mut next = 0;
        let look_of = |job: &mut Job| {
            let first = next;
            next += job.requests.len();
            job.look.take().map(|look| (first..next, look))
        };
        Self(jobs.iter_mut().filter_map(look_of).collect())
    }

    /// Runs the callback of the job that the last outcome completes, if that job has one.
    fn show(&mut self, view: &dyn View, outcomes: &[Outcome]) {
        let is_complete = |(own, _): &(Range<usize>, _)| own.end == outcomes.len();
        if self.0.front().is_some_and(is_complete)
            && let Some((own, look)) = self.0.pop_front()
        {
            look(view, &outcomes[own]);
        }
    }
}

impl Handle {
    pub(crate) fn new(backend: Box<dyn Backend>, reader: Box<dyn Reader>, path: &Path) -> Self {
        let committer = Committer::new(backend, path);
        let shared = Shared {
            path: path.to_owned(),
            is_instant: committer.is_instant(),
            reader,
            committer: Mutex::new(committer),
            queue: Mutex::default(),
            work: Condvar::new(),
            is_poisoned: AtomicBool::new(false),
            committed: Mutex::default(),
            commit_signal: Condvar::new(),
        };
        Self { shared: Arc::new(shared) }
    }
}

impl Store for Handle {
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.shared.check()?;
        self.shared.reader.read(look)
    }

    fn read_briefly(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError> {
        self.shared.check()?;
        // An instant backend has no writing connection to read on.
        if !self.shared.is_instant
            && let Some(mut committer) = self.shared.free_committer()
            && committer.read(look)?
        {
            return Ok(());
        }
        self.shared.reader.read(look)
    }

    fn submit(&self, requests: Vec<Request>, reply: Reply) {
        lock(&self.shared.queue).jobs.push(Job { requests, look: None, reply });
        if !(self.shared.is_instant && self.shared.drain_if_free(|_| true)) {
            self.wake_thread();
        }
    }

    fn submit_here(&self, requests: Vec<Request>, reply: Reply) {
        lock(&self.shared.queue).jobs.push(Job { requests, look: None, reply });
        if !self.shared.drain_if_free(|committer| committer.is_instant() || committer.lock_now()) {
            self.wake_thread();
        }
    }

    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError> {
        self.write_job(requests, None)
    }

    fn write_then_view(
        &self,
        requests: Vec<Request>,
        look: ViewCallback,
    ) -> Result<Vec<Outcome>, StoreError> {
        if requests.is_empty() {
            return self.write_then_look(requests, look);
        }
        self.write_job(requests, Some(look))
    }

    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError> {
        // `None` if the deadline overflows: wait forever.
        let deadline = Instant::now().checked_add(timeout);
        let mut watch = self.shared.reader.watch()?;
        let mut pause = FIRST_POLL;
        let mut revision = 0;
        loop {
            self.shared.check()?;
            if watch.has_changed()? {
                revision = self.revision()?;
                pause = FIRST_POLL;
            }
            let left =
                deadline.map_or(Duration::MAX, |deadline| deadline.saturating_duration_since(Instant::now()));
            if revision > since || left.is_zero() {
                return Ok(revision);
            }
            // The pause bounds the wait, because commits of other processes do not signal this condition
            // variable.
            revision = revision.max(self.shared.wait_for_commit(since, pause.min(left)));
            pause = (pause * 2).min(LAST_POLL);
        }
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.shared.reader.warnings()
    }
}

impl Handle {
    fn write_job(
        &self,
        requests: Vec<Request>,
        look: Option<ViewCallback>,
    ) -> Result<Vec<Outcome>, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply: Reply = Box::new(move |result| {
            // Cannot fail: the receiver is alive until the end of this function.
            let _ = sender.send(result);
        });
        lock(&self.shared.queue).jobs.push(Job { requests, look, reply });
        if faults::is_on(Fault::AnswerEarly) {
            self.wake_thread();
        } else {
            // Another thread may commit this job together with its own while this one waits for the
            // committer. `drain` is a no-op then.
            self.shared.drain();
        }
        receiver.recv().unwrap_or_else(|_| Err(self.shared.poisoned()))
    }

    /// Lets the committer thread drain the queue, and starts the thread if necessary.
    fn wake_thread(&self) {
        let mut queue = lock(&self.shared.queue);
        if queue.thread.is_some() {
            drop(queue);
            self.shared.work.notify_one();
            return;
        }
        let shared = Arc::clone(&self.shared);
        let builder = thread::Builder::new().name("taskpawl-committer".to_owned());
        queue.thread = builder.spawn(move || shared.serve()).ok();
        let has_thread = queue.thread.is_some();
        drop(queue);
        if !has_thread {
            // The system has no thread left: commit here. The caller waits, but the job is not lost.
            self.shared.drain();
        }
    }

    fn revision(&self) -> Result<u64, StoreError> {
        let mut revision = 0;
        self.read(&mut |view| {
            revision = view.revision()?;
            Ok(())
        })?;
        Ok(revision)
    }
}

impl Shared {
    /// Body of the committer thread: drains the queue until the handle is dropped.
    fn serve(&self) {
        loop {
            let mut queue = lock(&self.queue);
            while queue.jobs.is_empty() && !queue.is_closed {
                queue = self.work.wait(queue).unwrap_or_else(PoisonError::into_inner);
            }
            let is_done = queue.jobs.is_empty();
            drop(queue);
            if is_done {
                return;
            }
            self.drain();
        }
    }

    /// Commits all queued jobs and replies. The committer stays locked during the replies, so that they
    /// arrive in the order of the commits.
    fn drain(&self) {
        self.drain_with(&mut lock(&self.committer));
    }

    /// Like [`drain`](Self::drain), unless another thread commits now or `may_commit` declines. Returns
    /// whether the queue was drained.
    fn drain_if_free(&self, may_commit: impl FnOnce(&mut Committer) -> bool) -> bool {
        let Some(mut committer) = self.free_committer() else { return false };
        // The previous holder of the committer may have taken all jobs: do not take the file lock for
        // nothing.
        let is_done = lock(&self.queue).jobs.is_empty();
        let is_free = is_done || may_commit(&mut committer);
        if is_free {
            self.drain_with(&mut committer);
        }
        is_free
    }

    /// Returns the committer, unless another thread is using it.
    fn free_committer(&self) -> Option<MutexGuard<'_, Committer>> {
        match self.committer.try_lock() {
            Ok(committer) => Some(committer),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    fn drain_with(&self, committer: &mut Committer) {
        let mut jobs = std::mem::take(&mut lock(&self.queue).jobs);
        if jobs.is_empty() {
            return;
        }
        let mut looks = ViewCallbacks::of(&mut jobs);
        if faults::is_on(Fault::AnswerEarly) {
            return self.answer_early(committer, jobs, looks);
        }
        let requests = &mut jobs.iter().flat_map(|job| &job.requests);
        let result = committer.commit_and_show(requests, &mut |view, outcomes| looks.show(view, outcomes));
        self.is_poisoned.store(committer.is_poisoned(), Ordering::Release);
        match result {
            Ok(outcomes) => self.answer(jobs, outcomes),
            Err(error) => jobs.into_iter().for_each(|job| (job.reply)(Err(error.clone()))),
        }
    }

    /// Implements the fault `AnswerEarly`: the outcome is reported before the commit, whose result is
    /// ignored.
    fn answer_early(&self, committer: &mut Committer, jobs: Vec<Job>, mut looks: ViewCallbacks) {
        let requests = &mut jobs.iter().flat_map(|job| &job.requests);
        match committer.prepare(requests, &mut |view, outcomes| looks.show(view, outcomes)) {
            Ok((outcomes, has_changes)) => {
                self.answer(jobs, outcomes);
                let _ = committer.finish(has_changes);
            }
            Err(error) => jobs.into_iter().for_each(|job| (job.reply)(Err(error.clone()))),
        }
    }

    fn answer(&self, jobs: Vec<Job>, outcomes: Vec<Outcome>) {
        let revision = outcomes.iter().flatten().map(|answer| answer.revision).max();
        let mut outcomes = outcomes.into_iter();
        for job in jobs {
            let own = outcomes.by_ref().take(job.requests.len()).collect();
            (job.reply)(Ok(own));
        }
        if let Some(revision) = revision {
            let mut committed = lock(&self.committed);
            committed.revision = committed.revision.max(revision);
            if committed.waiting > 0 {
                self.commit_signal.notify_all();
            }
        }
    }

    /// Waits up to `pause` for a commit of this process after `since`. Returns the last revision that this
    /// process committed.
    fn wait_for_commit(&self, since: u64, pause: Duration) -> u64 {
        let mut committed = lock(&self.committed);
        committed.waiting += 1;
        let (mut committed, _) = self
            .commit_signal
            .wait_timeout_while(committed, pause, |committed| committed.revision <= since)
            .unwrap_or_else(PoisonError::into_inner);
        committed.waiting -= 1;
        committed.revision
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.is_poisoned.load(Ordering::Acquire) { Err(self.poisoned()) } else { Ok(()) }
    }

    fn poisoned(&self) -> StoreError {
        StoreError::Poisoned { path: self.path.clone() }
    }
}

/// Locks a mutex and ignores its poison flag. A panicking reply leaves consistent data behind these locks,
/// and the committer handles its own panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Handle {
    /// Blocks until all queued jobs are durable.
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.is_closed = true;
        let thread = queue.thread.take();
        drop(queue);
        self.shared.work.notify_all();
        // A reply may drop the last reference to the handle on the committer thread. A thread that joins
        // itself would deadlock.
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // Only a reply can panic here, and the panic hook has reported it already.
            let _ = thread.join();
        }
    }
}

impl Debug for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Store").field("path", &self.shared.path).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::mpsc;

    use taskpawl_model::view::{ViewError, ViewResult};

    use super::{Handle, Store};
    use crate::files::LockFile;

    #[test]
    fn submit_replies_before_it_returns_on_an_instant_backend() {
        let (backend, reader) = crate::memory::open();
        let handle = Handle::new(backend, reader, Path::new(":memory:"));
        let (sender, receiver) = mpsc::channel();
        handle.submit(Vec::new(), Box::new(move |result| sender.send(result.unwrap()).unwrap()));
        assert_eq!(receiver.try_recv(), Ok(Vec::new()));
        assert!(super::lock(&handle.shared.queue).thread.is_none());
    }

    #[test]
    fn submit_here_commits_at_once_if_the_lock_is_free() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        let (backend, reader) = crate::sqlite::open(&path);
        let handle = Handle::new(backend, reader, &path);
        handle.write(Vec::new()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let submit = || {
            let sender = sender.clone();
            handle.submit_here(Vec::new(), Box::new(move |result| sender.send(result.unwrap()).unwrap()));
        };
        submit();
        assert_eq!(receiver.try_recv(), Ok(Vec::new()));
        assert!(super::lock(&handle.shared.queue).thread.is_none());
        let other = LockFile::open(&path).unwrap();
        other.lock().unwrap();
        submit();
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty), "another process has the lock");
        other.unlock();
        assert_eq!(receiver.recv(), Ok(Vec::new()));
        other.lock().unwrap();
    }

    #[test]
    fn a_brief_read_uses_the_writing_connection_unless_a_commit_runs() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tasks.db");
        let (backend, reader) = crate::sqlite::open(&path);
        let handle = Handle::new(backend, reader, &path);
        let store: &dyn Store = &handle;
        let connections = || {
            let open = std::fs::read_dir("/proc/self/fd").unwrap().flatten();
            open.filter(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to == path)).count()
        };
        let revision = || store.view_briefly(|view| view.revision()).unwrap();
        assert_eq!((revision(), connections()), (0, 0), "nothing was written yet");
        store.write(Vec::new()).unwrap();
        assert_eq!((revision(), connections()), (0, 1));
        let failed = store.view_briefly(|_| ViewResult::<()>::Err(ViewError("no".into())));
        assert!(failed.is_err());
        assert_eq!((revision(), connections()), (0, 1));
        let looked = || store.view_briefly(|_| -> ViewResult<()> { panic!("a bug") });
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(looked)).is_err());
        store.write(Vec::new()).unwrap();
        let committer = super::lock(&handle.shared.committer);
        assert_eq!((revision(), connections()), (0, 2));
        drop(committer);
    }

    #[test]
    fn the_committer_thread_takes_jobs_submitted_during_a_commit() {
        let (backend, reader) = crate::memory::open();
        let handle = Handle::new(backend, reader, Path::new(":memory:"));
        let (sender, receiver) = mpsc::channel();
        let committer = super::lock(&handle.shared.committer);
        handle.submit(Vec::new(), Box::new(move |result| sender.send(result.unwrap()).unwrap()));
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty));
        drop(committer);
        assert_eq!(receiver.recv(), Ok(Vec::new()));
    }
}
