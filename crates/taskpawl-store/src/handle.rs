//! The handle of a store: a queue in front of the committer, a thread that empties it when somebody cannot wait, and the
//! bell that rings after each commit.

use std::collections::VecDeque;
use std::fmt::{self, Debug};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, TryLockError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use taskpawl_model::{Request, View, ViewResult};

use crate::StoreError;
use crate::committer::{Backend, Committer};
use crate::faults::{self, Fault};
use crate::store::{Look, Outcome, Reply, Store};

const FIRST_POLL: Duration = Duration::from_millis(20);
const LAST_POLL: Duration = Duration::from_millis(200);

/// The reading side of a backend.
pub(crate) trait Reader: Send + Sync + Debug {
    /// Shows one consistent moment to `look`.
    fn read(&self, look: &mut dyn FnMut(&dyn View) -> ViewResult<()>) -> Result<(), StoreError>;

    /// Starts to watch for changes by others.
    fn watch(&self) -> Result<Box<dyn Watch + '_>, StoreError>;

    /// Returns what people should be told about the store.
    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        Ok(Vec::new())
    }
}

/// Notices changes by others, cheaply.
pub(crate) trait Watch {
    /// Returns whether something may have changed since the call before; true the first time.
    fn has_changed(&mut self) -> Result<bool, StoreError>;
}

/// A store of any backend.
pub(crate) struct Handle {
    shared: Arc<Shared>,
}

struct Shared {
    path: PathBuf,
    /// Whether a commit waits for nothing outside the process.
    is_instant: bool,
    reader: Box<dyn Reader>,
    committer: Mutex<Committer>,
    queue: Mutex<Queue>,
    /// Rung by `submit` and by the end of the handle; only the thread waits for it.
    work: Condvar,
    is_poisoned: AtomicBool,
    committed: Mutex<Committed>,
    /// Rung after each commit of this process that somebody waits for.
    bell: Condvar,
}

#[derive(Debug, Default)]
struct Committed {
    /// The last revision that this process committed.
    revision: u64,
    /// How many wait for the next one: ringing for nobody costs a call into the kernel.
    waiting: usize,
}

/// Who puts in: `submit` and `write`. Who takes out: whoever holds the committer. It is bounded by its callers: `write`
/// waits, and a dispatcher submits only what its window of calls in flight brings.
#[derive(Default)]
struct Queue {
    jobs: Vec<Job>,
    thread: Option<JoinHandle<()>>,
    is_closed: bool,
}

struct Job {
    requests: Vec<Request>,
    look: Option<Look>,
    reply: Reply,
}

/// What some of the jobs of a commit want to see, in their order, with the place of their outcomes among all.
struct Looks(VecDeque<(Range<usize>, Look)>);

impl Looks {
    fn of(jobs: &mut [Job]) -> Self {
        let mut next = 0;
        let look_of = |job: &mut Job| {
            let first = next;
            next += job.requests.len();
            job.look.take().map(|look| (first..next, look))
        };
        Self(jobs.iter_mut().filter_map(look_of).collect())
    }

    /// Shows what the last of the outcomes left to whom it belongs.
    fn show(&mut self, view: &dyn View, outcomes: &[Outcome]) {
        if let Some((own, look)) = self.0.pop_front_if(|(own, _)| own.end == outcomes.len()) {
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
            bell: Condvar::new(),
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
            self.leave_to_thread();
        }
    }

    fn submit_here(&self, requests: Vec<Request>, reply: Reply) {
        lock(&self.shared.queue).jobs.push(Job { requests, look: None, reply });
        if !self.shared.drain_if_free(|committer| committer.is_instant() || committer.lock_now()) {
            self.leave_to_thread();
        }
    }

    fn write(&self, requests: Vec<Request>) -> Result<Vec<Outcome>, StoreError> {
        self.write_job(requests, None)
    }

    fn write_and_look(&self, requests: Vec<Request>, look: Look) -> Result<Vec<Outcome>, StoreError> {
        if requests.is_empty() {
            return self.write_then_look(requests, look);
        }
        self.write_job(requests, Some(look))
    }

    fn wait_change(&self, since: u64, timeout: Duration) -> Result<u64, StoreError> {
        // A time too far to be told is for ever.
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
            revision = revision.max(self.shared.wait_for_bell(since, pause.min(left)));
            pause = (pause * 2).min(LAST_POLL);
        }
    }

    fn warnings(&self) -> Result<Vec<String>, StoreError> {
        self.shared.reader.warnings()
    }
}

impl Handle {
    fn write_job(&self, requests: Vec<Request>, look: Option<Look>) -> Result<Vec<Outcome>, StoreError> {
        let (sender, receiver) = mpsc::sync_channel(1);
        let reply: Reply = Box::new(move |result| {
            // The receiver waits below; it cannot be gone.
            let _ = sender.send(result);
        });
        lock(&self.shared.queue).jobs.push(Job { requests, look, reply });
        if faults::is_on(Fault::AnswerEarly) {
            self.leave_to_thread();
        } else {
            // Another thread may commit this job with its own while we wait for the committer: then there is nothing left to do.
            self.shared.drain();
        }
        receiver.recv().unwrap_or_else(|_| Err(self.shared.poisoned()))
    }

    /// Has the thread empty the queue.
    fn leave_to_thread(&self) {
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
            // Then the caller has to wait: slower, but no less true.
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
    /// The thread: empties the queue until the handle is gone.
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

    /// Commits everything that is queued and replies. The committer stays locked meanwhile, so that replies come in the
    /// order of the commits.
    fn drain(&self) {
        self.drain_with(&mut lock(&self.committer));
    }

    /// As [`drain`](Self::drain), unless somebody commits just now, or the committer may not; returns whether the queue is empty.
    fn drain_if_free(&self, may_commit: impl FnOnce(&mut Committer) -> bool) -> bool {
        let Some(mut committer) = self.free_committer() else { return false };
        // Whoever held the committer before may have taken all: then there is nothing to take the lock for.
        let is_done = lock(&self.queue).jobs.is_empty();
        let is_free = is_done || may_commit(&mut committer);
        if is_free {
            self.drain_with(&mut committer);
        }
        is_free
    }

    /// Returns the committer, unless somebody commits just now.
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
        let mut looks = Looks::of(&mut jobs);
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

    /// Does what must never be done: nobody learns whether the commit succeeds.
    fn answer_early(&self, committer: &mut Committer, jobs: Vec<Job>, mut looks: Looks) {
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
                self.bell.notify_all();
            }
        }
    }

    /// Waits for a commit of this process after `since`, at most `pause`, and returns the last one.
    fn wait_for_bell(&self, since: u64, pause: Duration) -> u64 {
        let mut committed = lock(&self.committed);
        committed.waiting += 1;
        let (mut committed, _) = self
            .bell
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

/// A panic of a reply leaves nothing half done behind these locks: the committer catches its own.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Handle {
    /// Waits until everything queued is durable.
    fn drop(&mut self) {
        let mut queue = lock(&self.shared.queue);
        queue.is_closed = true;
        let thread = queue.thread.take();
        drop(queue);
        self.shared.work.notify_all();
        if let Some(thread) = thread
            && thread.thread().id() != thread::current().id()
        {
            // A panic of the thread is one of a reply, and was reported where it happened.
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

    use taskpawl_model::{ViewError, ViewResult};

    use super::{Handle, Store};
    use crate::files::LockFile;

    #[test]
    fn a_commit_that_waits_for_nothing_is_answered_before_submit_returns() {
        let (backend, reader) = crate::memory::open();
        let handle = Handle::new(backend, reader, Path::new(":memory:"));
        let (sender, receiver) = mpsc::channel();
        handle.submit(Vec::new(), Box::new(move |result| sender.send(result.unwrap()).unwrap()));
        assert_eq!(receiver.try_recv(), Ok(Vec::new()));
        assert!(super::lock(&handle.shared.queue).thread.is_none());
    }

    #[test]
    fn who_has_nothing_else_to_do_commits_where_the_lock_is_free() {
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
        assert_eq!(receiver.try_recv(), Err(mpsc::TryRecvError::Empty), "somebody else has the lock");
        other.unlock();
        assert_eq!(receiver.recv(), Ok(Vec::new()));
        other.lock().unwrap();
    }

    #[test]
    fn a_short_look_goes_through_the_connection_that_writes_unless_somebody_writes() {
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
    fn while_somebody_commits_a_thread_takes_what_is_submitted() {
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
