//! The decisions that tasks of a run wait for: who is asked, and what becomes of questions that nobody answers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taskpawl_manager::{Approving, Error, Manager};
use taskpawl_model::recovery::open_questions;
use taskpawl_model::{
    ApprovalRequest, BlockedReason, Command, Key, Phase, Timestamp, View, ViewResult, approval_request,
};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::approver::{Approver, Verdict};

/// How many questions an approver is asked at a time.
const MOST_ASKED: usize = 64;

/// The open questions of a run's scope.
#[derive(Debug)]
pub(crate) struct Questions {
    manager: Manager,
    approver: Option<Arc<dyn Approver>>,
    /// What waits, by task.
    open: BTreeMap<Key, Question>,
    /// Questions that the approver is to be asked, or has to be asked anew.
    unasked: BTreeSet<Key>,
    asking: BTreeMap<Key, AbortHandle>,
    verdicts: JoinSet<Said>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    hash: String,
    expires_at: Option<Timestamp>,
}

/// What the approver said about what.
#[derive(Debug)]
pub(crate) struct Said {
    key: Key,
    request: ApprovalRequest,
    verdict: Verdict,
}

impl Questions {
    /// Returns the questions of a run. `manager` decides in the name of a person: a run cannot.
    pub(crate) fn new(manager: Manager, approver: Option<Arc<dyn Approver>>) -> Self {
        Self {
            manager,
            approver,
            open: BTreeMap::new(),
            unasked: BTreeSet::new(),
            asking: BTreeMap::new(),
            verdicts: JoinSet::new(),
        }
    }

    /// Looks for the first time, and returns what waits.
    pub(crate) fn begin(&mut self, view: &dyn View, scope: Option<&BTreeSet<Key>>) -> ViewResult<Vec<Key>> {
        let keys: Vec<Key> = open_questions(view)?.into_iter().map(|(key, _)| key).collect();
        self.look(view, scope, &keys)
    }

    /// Looks at tasks that changed, and returns those of them of which it is news that they wait.
    pub(crate) fn look(
        &mut self,
        view: &dyn View,
        scope: Option<&BTreeSet<Key>>,
        changed: &[Key],
    ) -> ViewResult<Vec<Key>> {
        let mut news = Vec::new();
        for key in changed {
            let question = question(view, *key)?.filter(|_| scope.is_none_or(|scope| scope.contains(key)));
            if question.as_ref() == self.open.get(key) {
                continue;
            }
            self.forget(*key);
            if let Some(question) = question {
                self.open.insert(*key, question);
                self.unasked.insert(*key);
                news.push(*key);
            }
        }
        Ok(news)
    }

    /// Looks whether the questions still stand.
    pub(crate) fn look_again(&mut self, view: &dyn View) -> ViewResult<()> {
        let mut over = Vec::new();
        for key in self.open.keys() {
            if view.node(*key)?.is_none_or(|node| node.phase != Phase::BlockedOther) {
                over.push(*key);
            }
        }
        for key in over {
            self.forget(key);
        }
        Ok(())
    }

    fn forget(&mut self, key: Key) {
        self.open.remove(&key);
        self.unasked.remove(&key);
        if let Some(asking) = self.asking.remove(&key) {
            asking.abort();
        }
    }

    /// Returns whether something waits.
    pub(crate) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether an approver has yet to decide.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asking.is_empty() || (self.approver.is_some() && !self.unasked.is_empty())
    }

    /// Asks the approver, as far as it is asked so much at a time.
    pub(crate) fn ask(&mut self) -> Result<(), Error> {
        let Some(approver) = self.approver.clone() else { return Ok(()) };
        while self.asking.len() < MOST_ASKED
            && let Some(key) = self.unasked.pop_first()
        {
            let Some(request) = self.manager.read(|view| approval_request(view, key))? else { continue };
            let approver = Arc::clone(&approver);
            let asking = self.verdicts.spawn(async move {
                let verdict = approver.decide(&request).await;
                Said { key, request, verdict }
            });
            self.asking.insert(key, asking);
        }
        Ok(())
    }

    /// Asks nobody any more.
    pub(crate) fn stop(&mut self) {
        self.approver = None;
        self.unasked.clear();
        self.asking.clear();
        self.verdicts.abort_all();
    }

    /// Waits for what the approver says. Never returns while nobody is asked.
    ///
    /// # Cancel safety
    /// Nothing is lost when it is dropped.
    pub(crate) async fn said(&mut self) -> Said {
        loop {
            match self.verdicts.join_next().await {
                Some(Ok(said)) => return said,
                Some(Err(error)) => self.take_broken(&error),
                None => std::future::pending().await,
            }
        }
    }

    /// A question that was taken back is no matter; an approver that panics says nothing, and its question goes on waiting.
    fn take_broken(&mut self, error: &JoinError) {
        if error.is_panic() {
            self.asking.retain(|_, asking| !asking.is_finished());
        }
    }

    /// Carries out what the approver said. Returns what is wrong with it where it cannot be.
    pub(crate) fn carry_out(&mut self, said: Said) -> Result<Option<String>, Error> {
        let Said { key, request, verdict } = said;
        if self.asking.remove(&key).is_none() {
            return Ok(None);
        }
        let ids = [request.task.to_string()];
        let outcome = match verdict {
            Verdict::Skip => return Ok(None),
            Verdict::Approve { answer, args } => {
                self.manager.approve(&ids, Approving { answer, args, hash: Some(request.hash) })
            }
            Verdict::Reject { reason } => self.manager.reject(&ids, reason),
        };
        match outcome {
            Ok(_) => Ok(None),
            Err(Error::Refused(refusal)) => {
                // Somebody was faster, or it asks about something else by now: that is seen when its change is read.
                let is_answer = matches!(
                    *refusal,
                    taskpawl_model::Refusal::WrongAnswer { .. }
                        | taskpawl_model::Refusal::ManyCalls { .. }
                        | taskpawl_model::Refusal::InvalidField { .. }
                );
                Ok(is_answer
                    .then(|| format!("the decision about `{}` does not count: {refusal}", request.task)))
            }
            Err(error) => Err(error),
        }
    }

    /// Lets questions go the way of their plan whose time is over.
    pub(crate) fn expire(&mut self) -> Result<bool, Error> {
        if !self.open.values().any(|question| question.expires_at.is_some()) {
            return Ok(false);
        }
        let now = self.manager.source().now();
        let is_over = |question: &Question| question.expires_at.is_some_and(|end| end <= now);
        let over = self.open.iter().filter(|(_, question)| is_over(question));
        let tasks: Vec<Key> = over.map(|(key, _)| *key).collect();
        if tasks.is_empty() {
            return Ok(false);
        }
        for key in &tasks {
            if let Some(question) = self.open.get_mut(key) {
                question.expires_at = None;
            }
        }
        self.manager.command(Command::ExpireApprovals { tasks })?;
        Ok(true)
    }

    /// Returns when the time of the first question is over.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.open.values().filter_map(|question| question.expires_at).min()
    }

    /// Returns what a task asks.
    pub(crate) fn request(&self, key: Key) -> Result<Option<ApprovalRequest>, Error> {
        self.manager.read(|view| approval_request(view, key))
    }
}

fn question(view: &dyn View, key: Key) -> ViewResult<Option<Question>> {
    if view.node(key)?.is_none_or(|node| node.phase != Phase::BlockedOther) {
        return Ok(None);
    }
    let task = view.task(key)?;
    let reason = task.as_ref().and_then(|task| task.body.state.blocked_reason());
    Ok(match reason {
        Some(BlockedReason::Approval { hash, expires_at, .. }) => {
            Some(Question { hash: hash.clone(), expires_at: *expires_at })
        }
        _ => None,
    })
}
