//! Pending approvals of a run: asks the approver, and expires requests that are not answered in time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use taskpawl_manager::{Approving, Error, Manager};
use taskpawl_model::recovery::open_questions;
use taskpawl_model::{
    ApprovalRequest, BlockedReason, Command, Key, Phase, Timestamp, View, ViewResult, approval_request,
};
use tokio::task::{AbortHandle, JoinError, JoinSet};

use crate::approver::{Approver, Verdict};

/// Number of requests that the approver handles at the same time.
const MOST_ASKED: usize = 64;

/// The pending approvals in the scope of a run.
#[derive(Debug)]
pub(crate) struct Questions {
    manager: Manager,
    approver: Option<Arc<dyn Approver>>,
    /// All pending approvals, by task.
    open: BTreeMap<Key, Question>,
    /// Approvals that the approver has not been asked about, or not about their current content.
    unasked: BTreeSet<Key>,
    asking: BTreeMap<Key, AbortHandle>,
    verdicts: JoinSet<Said>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    hash: String,
    expires_at: Option<Timestamp>,
}

/// Decision of the approver about one request.
#[derive(Debug)]
pub(crate) struct Said {
    key: Key,
    request: ApprovalRequest,
    verdict: Verdict,
}

impl Questions {
    /// Returns an empty set. `manager` must not act as the run, because runs cannot approve.
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

    /// Loads all pending approvals of the scope and returns their tasks.
    pub(crate) fn begin(&mut self, view: &dyn View, scope: Option<&BTreeSet<Key>>) -> ViewResult<Vec<Key>> {
        let keys: Vec<Key> = open_questions(view)?.into_iter().map(|(key, _)| key).collect();
        self.look(view, scope, &keys)
    }

    /// Updates the given tasks, and returns those that have started to wait or that now wait for something else.
    pub(crate) fn look(
        &mut self,
        view: &dyn View,
        scope: Option<&BTreeSet<Key>>,
        changed: &[Key],
    ) -> ViewResult<Vec<Key>> {
        let mut news = Vec::new();
        for key in changed {
            let question = question(view, *key)?.filter(|_| scope.is_none_or(|scope| scope.contains(key)));
            // An equal hash means equal content: the approver is not asked twice.
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

    /// Removes approvals that are no longer pending.
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

    /// Returns whether any approval is pending.
    pub(crate) fn is_any_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether the approver has not yet decided about a request.
    pub(crate) fn is_asking(&self) -> bool {
        !self.asking.is_empty() || (self.approver.is_some() && !self.unasked.is_empty())
    }

    /// Passes requests to the approver, as many as it handles at the same time.
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

    /// Stops asking the approver and cancels its open requests.
    pub(crate) fn stop(&mut self) {
        self.approver = None;
        self.unasked.clear();
        self.asking.clear();
        self.verdicts.abort_all();
    }

    /// Waits for the next decision of the approver. Never returns while it is not asked anything.
    ///
    /// # Cancel safety
    /// No decision is lost when the future is dropped.
    pub(crate) async fn said(&mut self) -> Said {
        loop {
            match self.verdicts.join_next().await {
                Some(Ok(said)) => return said,
                Some(Err(error)) => self.take_broken(&error),
                None => std::future::pending().await,
            }
        }
    }

    /// Handles a failed request. A cancelled one was already removed; after a panic of the approver the task keeps
    /// waiting.
    fn take_broken(&mut self, error: &JoinError) {
        if error.is_panic() {
            self.asking.retain(|_, asking| !asking.is_finished());
        }
    }

    /// Carries out a decision. Returns a warning if the decision itself is invalid.
    pub(crate) fn carry_out(&mut self, said: Said) -> Result<Option<String>, Error> {
        let Said { key, request, verdict } = said;
        // The request was withdrawn after the approver had decided: its decision is about a state that no longer
        // exists.
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
                // Other refusals are expected races: another process decided first, or the request has changed. The
                // change feed reports both.
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

    /// Expires the pending approvals whose time is over, which then follow the setting of their plan.
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
        // Cleared first, so that the alarm does not fire again before the change is read.
        for key in &tasks {
            if let Some(question) = self.open.get_mut(key) {
                question.expires_at = None;
            }
        }
        self.manager.command(Command::ExpireApprovals { tasks })?;
        Ok(true)
    }

    /// Returns the time at which the next approval expires.
    pub(crate) fn next_end(&self) -> Option<Timestamp> {
        self.open.values().filter_map(|question| question.expires_at).min()
    }

    /// Returns the pending request of a task.
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
