//! Executes the advice that is given about random stores; the rules have to accept all of it.

use std::collections::BTreeMap;

use taskpawl_model::advice::Advice;
use taskpawl_model::command::{Command, Context, Refusal, Request};
use taskpawl_model::insight::{Facts, explain, explain_ready};
use taskpawl_model::rules::DecideError;
use taskpawl_model::rules::{Means, decide, preview};
use taskpawl_model::rules::{asker, command_of_advice};
use taskpawl_model::task::{ActorKind, BlockedReason, Status};
use taskpawl_model::view::{Query, View, ViewResult};

use super::draw::Draw;
use super::play::Pair;
use crate::random::Random;

/// A deliberate fault in the advice, to prove that the test notices it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OfferFlaw {
    /// The advice is executed as another agent.
    WrongActor,
    /// The advice is executed on another task.
    WrongId,
    /// Explanations keep advice that the rules refuse.
    Untried,
}

/// Numbers of executed pieces of advice.
#[derive(Debug, Clone, Default)]
pub struct Offers {
    /// By source and kind of advice.
    pub taken: BTreeMap<(&'static str, String), u64>,
}

impl Offers {
    fn add(&mut self, source: &'static str, advice: &Advice) {
        let debug = format!("{advice:?}");
        let end = debug.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(debug.len());
        *self.taken.entry((source, debug[..end].to_owned())).or_default() += 1;
    }

    /// Adds the numbers of another sequence.
    pub fn merge(&mut self, other: &Self) {
        for (key, count) in &other.taken {
            *self.taken.entry(key.clone()).or_default() += count;
        }
    }
}

/// Executes `length` random commands, the advice in their refusals and, from time to time, the advice of all
/// explanations.
///
/// # Errors
/// The first piece of advice that the rules refuse.
pub fn take_offers(seed: u64, length: usize, flaw: Option<OfferFlaw>) -> Result<Offers, String> {
    let mut random = Random::new(seed ^ 0x0ff3_25ed);
    let (mut pair, mut offers, mut now) = (Pair::new(None), Offers::default(), 0);
    for _ in 0..length {
        now += i64::try_from(random.below(60)).unwrap_or_default();
        let request = Draw { random: &mut random, reference: &pair.reference, now }.request();
        let looks = random.chance(20);
        let taker = Taker { context: &request.context, flaw };
        let checked = pair.store.look(|view| taker.take_all(view, &request, looks, &mut offers));
        if let Some(false_offer) = checked.map_err(|error| error.to_string())? {
            return Err(false_offer);
        }
        // A difference between the two models is reported by another test.
        if pair.give(&request).is_err() {
            break;
        }
    }
    Ok(offers)
}

/// An actor that follows advice.
struct Taker<'a> {
    context: &'a Context,
    flaw: Option<OfferFlaw>,
}

impl Taker<'_> {
    /// Follows the advice in the refusal of a request, and with `looks` that of every explanation. Returns the first
    /// refusal.
    fn take_all(
        &self,
        view: &dyn View,
        request: &Request,
        looks: bool,
        offers: &mut Offers,
    ) -> ViewResult<Option<String>> {
        let mut advised: Vec<(&'static str, String, Advice)> = Vec::new();
        if let Err(DecideError::Refused(refusal)) = decide(view, &request.command, &request.context) {
            let hint = refusal.hint().unwrap_or_default();
            let why = format!("{:?}: {refusal}; {hint}", request.command);
            advised.extend(hint.advised().map(|advice| ("refusal", why.clone(), advice.clone())));
        }
        if looks {
            self.look(view, &mut advised)?;
        }
        for (source, why, advice) in advised {
            offers.add(source, &advice);
            if let Some(refused) = self.take(view, &self.spoilt(view, advice.clone())?)? {
                let Context { actor, kind, .. } = self.context;
                return Ok(Some(format!("{source}: {why}\n{advice:?} by {kind} {actor}: {refused}")));
            }
        }
        Ok(None)
    }

    fn look(&self, view: &dyn View, advised: &mut Vec<(&'static str, String, Advice)>) -> ViewResult<()> {
        let means = Means::default();
        let asker = (self.flaw != Some(OfferFlaw::Untried)).then_some(self.context);
        let facts = Facts { now: self.context.now, is_alive: &|_| true, means: &means, asker };
        for key in view.find(&Query::default())? {
            let why = explain(view, key, &facts)?;
            let next = why.next_actions.iter().map(|next| next.advice().clone());
            advised.extend(next.map(|advice| ("explain", why.first_cause.text.clone(), advice)));
        }
        if let Ok(ready) = explain_ready(view, &[], 0, &means, asker) {
            let next = ready.next_actions.iter().map(|next| next.advice().clone());
            advised.extend(next.map(|advice| ("ready", String::new(), advice)));
        }
        Ok(())
    }

    /// Returns the reason why a piece of advice cannot be followed, if any.
    fn take(&self, view: &dyn View, advice: &Advice) -> ViewResult<Option<String>> {
        if let [first, rest @ ..] = advice.steps()
            && !rest.is_empty()
        {
            return self.take_steps(view, first, rest);
        }
        if let Some(missing) = reads_nothing(view, advice)? {
            return Ok(Some(missing));
        }
        let Some(command) = command(view, advice)? else { return Ok(None) };
        Ok(refusal(view, &command, &self.asker(advice)).map(|refusal| refusal.to_string()))
    }

    /// Follows several steps, each on the result of the previous one.
    fn take_steps(&self, view: &dyn View, first: &Advice, rest: &[Advice]) -> ViewResult<Option<String>> {
        if let Some(refused) = self.take(view, first)? {
            return Ok(Some(refused));
        }
        let Some(command) = command(view, first)? else { return Ok(None) };
        let taken = preview(view, &command, &self.asker(first), |after| {
            let mut refused = rest.iter().map(|step| self.take(after, step));
            refused.find_map(Result::transpose).transpose()
        });
        taken.unwrap_or(Ok(None))
    }

    fn asker(&self, advice: &Advice) -> Context {
        let mut asker = asker(advice, self.context);
        if self.flaw == Some(OfferFlaw::WrongActor) {
            asker.actor = "zoe".into();
            asker.kind = ActorKind::Agent;
        }
        asker
    }

    /// Replaces the task in a piece of advice, if that is the fault to be noticed.
    fn spoilt(&self, view: &dyn View, advice: Advice) -> ViewResult<Advice> {
        let (Some(OfferFlaw::WrongId), Advice::Done { .. }) = (self.flaw, &advice) else { return Ok(advice) };
        let done = view.find(&Query { status: vec![Status::Done], limit: 1, ..Query::default() })?;
        let id = done.first().map(|key| view.id(*key)).transpose()?.flatten();
        Ok(id.map_or(advice, |id| Advice::Done { id }))
    }
}

fn refusal(view: &dyn View, command: &Command, context: &Context) -> Option<Refusal> {
    match decide(view, command, context) {
        Err(DecideError::Refused(refusal)) => Some(*refusal),
        // Reading a store in memory cannot fail, so the only error is a refusal.
        Ok(_) | Err(_) => None,
    }
}

/// Returns the command for a piece of advice. `retry --failed` becomes a command about all failed tasks.
fn command(view: &dyn View, advice: &Advice) -> ViewResult<Option<Command>> {
    if let Advice::RetryFailed { .. } = advice {
        let failed = view.find(&Query { status: vec![Status::Failed], ..Query::default() })?;
        let ids = failed.into_iter().map(|key| view.id(key)).collect::<ViewResult<Vec<_>>>()?;
        let ids = ids.into_iter().flatten().map(|id| id.to_string()).collect();
        return Ok(Some(Command::Retry { ids, cascade: false }));
    }
    if let Advice::UnblockInterrupted { .. } = advice {
        let blocked = view.find(&Query { status: vec![Status::Blocked], ..Query::default() })?;
        let mut ids = Vec::new();
        for key in blocked {
            let reason = view.task(key)?.and_then(|task| task.body.state.blocked_reason().cloned());
            if matches!(reason, Some(BlockedReason::Interrupted { .. })) {
                ids.extend(view.id(key)?.map(|id| id.to_string()));
            }
        }
        return Ok(Some(Command::Unblock { ids }));
    }
    Ok(command_of_advice(advice))
}

/// Returns an error if the advice suggests to read something that does not exist.
fn reads_nothing(view: &dyn View, advice: &Advice) -> ViewResult<Option<String>> {
    let (Advice::Show { id }
    | Advice::Explain { id }
    | Advice::Logs { id }
    | Advice::Diff { id }
    | Advice::History { id: Some(id) }) = advice
    else {
        return Ok(None);
    };
    let Some(key) = view.key(id.as_str())? else { return Ok(Some("there is no such task".to_owned())) };
    let started = view.calls(key)?.iter().any(|call| call.body.attempts > 0);
    let is_empty = matches!(advice, Advice::Logs { .. }) && !started;
    Ok(is_empty.then(|| "no call of it has started".to_owned()))
}
