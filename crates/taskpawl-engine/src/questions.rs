//! The approver of a run: questions that it has, and its decisions.

use std::collections::BTreeMap;
use std::sync::Arc;

use taskpawl_manager::{Approving, Error, Manager};
use taskpawl_model::command::Refusal;
use taskpawl_model::rules::approval_request;
use taskpawl_model::run::run_loop::Input;
use taskpawl_model::task::ApprovalRequest;
use taskpawl_model::value::Key;
use tokio::task::{AbortHandle, Id, JoinSet};

use crate::approver::{ApprovalVerdict, Approver};

/// The questions that the approver of a run has.
#[derive(Debug)]
pub(crate) struct Questions {
    manager: Manager,
    approver: Option<Arc<dyn Approver>>,
    asking: BTreeMap<Key, AbortHandle>,
    verdicts: JoinSet<(ApprovalRequest, ApprovalVerdict)>,
}

/// An answer of the approver; `None` where it panicked, whose question goes on waiting.
#[derive(Debug)]
pub(crate) struct ApproverReply {
    id: Id,
    answer: Option<(ApprovalRequest, ApprovalVerdict)>,
}

impl Questions {
    /// Returns the questions of a run. `manager` decides in the name of a person: a run cannot.
    pub(crate) fn new(manager: Manager, approver: Option<Arc<dyn Approver>>) -> Self {
        Self { manager, approver, asking: BTreeMap::new(), verdicts: JoinSet::new() }
    }

    /// Asks the approver about a task. The input is the answer where there is nothing to ask any more.
    pub(crate) fn ask(&mut self, key: Key) -> Result<Option<Input>, Error> {
        let request = self.manager.read(|view| approval_request(view, key))?;
        let (Some(approver), Some(request)) = (self.approver.clone(), request) else {
            return Ok(Some(Input::Decided(key)));
        };
        let asking = self.verdicts.spawn(async move {
            let verdict = approver.decide(&request).await;
            (request, verdict)
        });
        self.asking.insert(key, asking);
        Ok(None)
    }

    pub(crate) fn withdraw(&mut self, key: Key) {
        if let Some(asking) = self.asking.remove(&key) {
            asking.abort();
        }
    }

    /// Waits for an answer of the approver. Never returns while it has no question.
    ///
    /// # Cancel safety
    /// Nothing is lost when the future is dropped.
    pub(crate) async fn said(&mut self) -> ApproverReply {
        loop {
            match self.verdicts.join_next_with_id().await {
                Some(Ok((id, answer))) => return ApproverReply { id, answer: Some(answer) },
                Some(Err(error)) if error.is_panic() => {
                    return ApproverReply { id: error.id(), answer: None };
                }
                // It was withdrawn.
                Some(Err(_)) => {}
                None => std::future::pending().await,
            }
        }
    }

    /// Writes a decision of the approver. Returns the task where its question was still open, and the problem with a decision that
    /// cannot be carried out.
    pub(crate) fn carry_out(&mut self, said: ApproverReply) -> Result<(Option<Key>, Option<String>), Error> {
        let key = self.asking.iter().find(|(_, asking)| asking.id() == said.id).map(|(key, _)| *key);
        let Some(key) = key else { return Ok((None, None)) };
        self.asking.remove(&key);
        let problem = match said.answer {
            Some((request, verdict)) => self.decide(request, verdict)?,
            None => None,
        };
        Ok((Some(key), problem))
    }

    fn decide(&self, request: ApprovalRequest, verdict: ApprovalVerdict) -> Result<Option<String>, Error> {
        let ids = [request.task.to_string()];
        let outcome = match verdict {
            ApprovalVerdict::Skip => return Ok(None),
            ApprovalVerdict::Approve { answer, args } => {
                self.manager.approve(&ids, Approving { answer, args, hash: Some(request.hash) })
            }
            ApprovalVerdict::SkipTask => self.manager.skip(&ids, None),
            ApprovalVerdict::Reject { reason } => self.manager.reject(&ids, reason),
            ApprovalVerdict::SendBack { text } => self.manager.send_back(&ids, text),
        };
        match outcome {
            Ok(_) => Ok(None),
            Err(Error::Refused(refusal)) => {
                // Another refusal means that another actor decided first, or that the question changed: the next snapshot shows it.
                let is_answer = matches!(
                    *refusal,
                    Refusal::WrongAnswer { .. } | Refusal::ManyCalls { .. } | Refusal::InvalidField { .. }
                );
                Ok(is_answer.then(|| format!("the decision about `{}` is ignored: {refusal}", request.task)))
            }
            Err(error) => Err(error),
        }
    }
}
