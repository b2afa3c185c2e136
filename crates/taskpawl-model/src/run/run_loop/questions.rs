//! The approvals that tasks of a run wait for: the approver's queue, and the deadlines of questions.

use std::collections::{BTreeMap, BTreeSet};

use super::Output;
use crate::run::recovery::open_questions;
use crate::run::run_view::is_of_plan;
use crate::task::record::StatusKind;
use crate::task::status::BlockedReason;
use crate::value::Key;
use crate::value::Timestamp;
use crate::view::{View, ViewResult};

/// The maximum number of questions that an approver has at a time.
const MAX_ASKED: usize = 64;

/// The open questions of a run's scope.
#[derive(Debug)]
pub(super) struct Questions {
    has_approver: bool,
    open: BTreeMap<Key, Question>,
    /// Questions that the approver does not have yet, or has in an older form.
    unasked: BTreeSet<Key>,
    asking: BTreeSet<Key>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    /// The SHA-256 of everything that is to be approved. A changed hash is a new question.
    hash: String,
    expires_at: Option<Timestamp>,
}

impl Questions {
    pub(super) fn new(has_approver: bool) -> Self {
        Self { has_approver, open: BTreeMap::new(), unasked: BTreeSet::new(), asking: BTreeSet::new() }
    }

    /// Reads all open questions.
    pub(super) fn begin(
        &mut self,
        view: &dyn View,
        scope: Option<&BTreeSet<Key>>,
    ) -> ViewResult<Vec<Output>> {
        let keys: Vec<Key> = open_questions(view)?.into_iter().map(|(key, _)| key).collect();
        self.update(view, scope, &keys)
    }

    /// Reads the questions of tasks that changed.
    pub(super) fn update(
        &mut self,
        view: &dyn View,
        scope: Option<&BTreeSet<Key>>,
        changed: &[Key],
    ) -> ViewResult<Vec<Output>> {
        let mut outputs = Vec::new();
        for key in changed {
            let question = question(view, *key)?.filter(|_| scope.is_none_or(|scope| scope.contains(key)));
            if question.as_ref() == self.open.get(key) {
                continue;
            }
            self.close(*key, &mut outputs);
            if let Some(question) = question {
                self.open.insert(*key, question);
                self.unasked.insert(*key);
                outputs.push(Output::Waiting(*key));
            }
        }
        Ok(outputs)
    }

    /// Drops questions whose tasks do not wait any more.
    pub(super) fn drop_settled(&mut self, view: &dyn View) -> ViewResult<Vec<Output>> {
        let (mut settled, mut outputs) = (Vec::new(), Vec::new());
        for key in self.open.keys() {
            if view.node(*key)?.is_none_or(|node| node.status_kind != StatusKind::BlockedOther) {
                settled.push(*key);
            }
        }
        for key in settled {
            self.close(key, &mut outputs);
        }
        Ok(outputs)
    }

    fn close(&mut self, key: Key, outputs: &mut Vec<Output>) {
        self.open.remove(&key);
        self.unasked.remove(&key);
        outputs.extend(self.asking.remove(&key).then_some(Output::Withdraw(key)));
    }

    /// Returns whether anything waits, apart from tasks of the `ended` plans.
    pub(super) fn is_any_open(&self, view: &dyn View, ended: &BTreeSet<&str>) -> ViewResult<bool> {
        if ended.is_empty() {
            return Ok(!self.open.is_empty());
        }
        for key in self.open.keys() {
            if !is_of_plan(view, *key, ended)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the approver has yet to decide.
    pub(super) fn is_asking(&self) -> bool {
        !self.asking.is_empty() || (self.has_approver && !self.unasked.is_empty())
    }

    /// Gives the approver as many questions as it may have at a time.
    pub(super) fn ask(&mut self, outputs: &mut Vec<Output>) {
        while self.has_approver
            && self.asking.len() < MAX_ASKED
            && let Some(key) = self.unasked.pop_first()
        {
            self.asking.insert(key);
            outputs.push(Output::Ask(key));
        }
    }

    pub(super) fn note_decided(&mut self, key: Key) {
        self.asking.remove(&key);
    }

    /// Withdraws every question from the approver, and asks it nothing more.
    pub(super) fn stop(&mut self, outputs: &mut Vec<Output>) {
        self.has_approver = false;
        self.unasked.clear();
        outputs.extend(std::mem::take(&mut self.asking).into_iter().map(Output::Withdraw));
    }

    /// Returns the tasks whose questions have passed their deadline, each once.
    pub(super) fn expired(&mut self, now: Timestamp) -> Vec<Key> {
        let is_over = |question: &Question| question.expires_at.is_some_and(|end| end <= now);
        let over = self.open.iter_mut().filter(|(_, question)| is_over(question));
        over.map(|(key, question)| {
            question.expires_at = None;
            *key
        })
        .collect()
    }

    /// Returns the first deadline.
    pub(super) fn next_end(&self) -> Option<Timestamp> {
        self.open.values().filter_map(|question| question.expires_at).min()
    }
}

fn question(view: &dyn View, key: Key) -> ViewResult<Option<Question>> {
    if view.node(key)?.is_none_or(|node| node.status_kind != StatusKind::BlockedOther) {
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
