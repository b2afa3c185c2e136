//! The runs that this server has started: who stops them, and what they ask.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use taskpawl::model::{ApprovalRequest, RunId};
use taskpawl::{ApprovalVerdict, Approver, Observer, RunControl, RunError, RunEvent, RunOptions, Taskpawl};
use taskpawl_text::error_chain;
use tokio::sync::{oneshot, watch};
use tokio_util::task::TaskTracker;

/// The runs of this process.
#[derive(Debug, Default)]
pub(super) struct Runs {
    live: Mutex<BTreeMap<RunId, Live>>,
    /// Runs that ended because the store failed, with why; all else is on record.
    broken: Mutex<BTreeMap<RunId, String>>,
    tracker: TaskTracker,
    /// Counts what happened to runs that no event of the store tells: a question was asked, a run is over.
    news: watch::Sender<u64>,
}

#[derive(Debug, Clone)]
struct Live {
    control: RunControl,
    questions: Option<Arc<QuestionSession>>,
}

impl Runs {
    /// Starts a run, and returns when it is on record. It goes on when whoever asked for it is gone.
    ///
    /// # Errors
    /// It could not start, and is not on record.
    pub(super) async fn start(
        self: &Arc<Self>,
        plans: Taskpawl,
        id: RunId,
        mut options: RunOptions,
        is_elicited: bool,
    ) -> Result<(), RunError> {
        let (started, has_started) = oneshot::channel();
        let control = RunControl::default();
        let questions = is_elicited.then(|| Arc::new(QuestionSession::new(self.news.clone())));
        options.id = Some(id.clone());
        options.control = control.clone();
        options.observer = Some(Arc::new(Start(Mutex::new(Some(started)))));
        options.approver = questions.clone().map(|questions| questions as Arc<dyn Approver>);
        locked(&self.live).insert(id.clone(), Live { control, questions });
        let runs = Arc::clone(self);
        let run = self.tracker.spawn(async move {
            let ended = plans.run_all_ready(options).await;
            runs.leave(&id, ended)
        });
        tokio::select! {
            biased;
            Ok(()) = has_started => Ok(()),
            ended = run => match ended {
                Ok(ended) => ended,
                // It panicked, or the runtime is about to end: the record says what is known.
                Err(_) => Ok(()),
            },
        }
    }

    fn leave(&self, id: &RunId, ended: Result<taskpawl::RunSummary, RunError>) -> Result<(), RunError> {
        locked(&self.live).remove(id);
        if let Err(error) = &ended {
            locked(&self.broken).insert(id.clone(), error_chain(error));
        }
        self.news.send_modify(|count| *count += 1);
        ended.map(drop)
    }

    /// Asks a run to stop: the first time what runs may end, the second time it is ended. Returns false where the run is none of
    /// this process.
    pub(super) fn stop(&self, id: &RunId) -> bool {
        let live = locked(&self.live).get(id).cloned();
        live.map(|live| live.control.stop()).is_some()
    }

    /// Returns how often a run of this process was asked to stop; 0 for all others.
    pub(super) fn stops(&self, id: &RunId) -> u32 {
        locked(&self.live).get(id).map_or(0, |live| live.control.requests())
    }

    /// Asks every run to stop, as [`stop`](Self::stop) does.
    pub(super) fn stop_all(&self) {
        for live in locked(&self.live).values() {
            live.control.stop();
        }
    }

    /// Waits until no run goes on. None starts afterwards.
    pub(super) async fn wait(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }

    pub(super) fn is_own(&self, id: &RunId) -> bool {
        locked(&self.live).contains_key(id)
    }

    /// Returns why a run ended that is not on record as ended.
    pub(super) fn problem(&self, id: &RunId) -> Option<String> {
        locked(&self.broken).get(id).cloned()
    }

    /// Returns the questions that a run asks clients.
    pub(super) fn questions(&self, id: &RunId) -> Vec<ApprovalRequest> {
        self.session(id).map(|questions| questions.questions()).unwrap_or_default()
    }

    /// Answers a question of a run; nothing happens where it does not stand any more.
    pub(super) fn answer(&self, id: &RunId, key: &str, verdict: ApprovalVerdict) {
        if let Some(questions) = self.session(id) {
            questions.answer(key, verdict);
        }
    }

    /// Takes a question for the one form that a run has open at a time; false where it has another one open, or is over.
    pub(super) fn begin_form(&self, id: &RunId, key: &str) -> bool {
        self.session(id).is_some_and(|questions| {
            let mut form = locked(&questions.form);
            let is_free = form.is_none();
            form.get_or_insert_with(|| key.to_owned());
            is_free
        })
    }

    /// Notes that the form of a run is closed.
    pub(super) fn end_form(&self, id: &RunId) {
        if let Some(questions) = self.session(id) {
            *locked(&questions.form) = None;
        }
        self.news.send_modify(|count| *count += 1);
    }

    /// Returns whether a form of a run is open at a client.
    pub(super) fn has_form(&self, id: &RunId) -> bool {
        self.session(id).is_some_and(|questions| locked(&questions.form).is_some())
    }

    /// Does in the background what ends with a run.
    pub(super) fn beside(&self, work: impl Future<Output = ()> + Send + 'static) {
        self.tracker.spawn(work);
    }

    /// Returns what tells that something happened to a run that no event of the store tells.
    pub(super) fn news(&self) -> watch::Receiver<u64> {
        self.news.subscribe()
    }

    fn session(&self, id: &RunId) -> Option<Arc<QuestionSession>> {
        locked(&self.live).get(id)?.questions.clone()
    }
}

/// Tells that a run is on record.
struct Start(Mutex<Option<oneshot::Sender<()>>>);

impl fmt::Debug for Start {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Start")
    }
}

impl Observer for Start {
    fn event(&self, event: &RunEvent) {
        if matches!(event, RunEvent::RunStarted { .. })
            && let Some(started) = locked(&self.0).take()
        {
            // Whoever asked may be gone.
            let _ = started.send(());
        }
    }
}

/// Where the questions of a run wait until a client comes that passes them on to a person.
#[derive(Debug)]
pub(super) struct QuestionSession {
    open: Mutex<BTreeMap<String, Open>>,
    /// Which question a client of the older era shows in a form.
    form: Mutex<Option<String>>,
    news: watch::Sender<u64>,
}

#[derive(Debug)]
struct Open {
    request: ApprovalRequest,
    /// Hears the answer; dropped with the question.
    verdict: oneshot::Sender<ApprovalVerdict>,
}

/// Returns how a question is called among those of its run.
pub(super) fn key_of(request: &ApprovalRequest) -> String {
    let hash: String = request.hash.chars().take(16).collect();
    format!("{}.{hash}", request.task)
}

impl QuestionSession {
    fn new(news: watch::Sender<u64>) -> Self {
        Self { open: Mutex::default(), form: Mutex::default(), news }
    }

    fn questions(&self) -> Vec<ApprovalRequest> {
        locked(&self.open)
            .values()
            .filter(|open| !open.verdict.is_closed())
            .map(|open| open.request.clone())
            .collect()
    }

    fn answer(&self, key: &str, verdict: ApprovalVerdict) {
        if let Some(open) = locked(&self.open).remove(key) {
            // The question may have come to its end otherwise.
            let _ = open.verdict.send(verdict);
        }
    }
}

/// Tells that a question is over, however that came.
struct Told<'p>(&'p watch::Sender<u64>);

impl Drop for Told<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count += 1);
    }
}

#[async_trait]
impl Approver for QuestionSession {
    async fn decide(&self, request: &ApprovalRequest) -> ApprovalVerdict {
        let _told = Told(&self.news);
        let (verdict, answered) = oneshot::channel();
        locked(&self.open).insert(key_of(request), Open { request: request.clone(), verdict });
        self.news.send_modify(|count| *count += 1);
        answered.await.unwrap_or(ApprovalVerdict::Skip)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
