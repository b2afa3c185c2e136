//! Execution of the same commands on both models, and comparison of the results.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_model::command::{Command, Request};
use taskpawl_model::task::EventKind;
use taskpawl_model::task::{BlockedReason, Status, TaskStatus, Work as Ends};
use taskpawl_model::value::Key;
use taskpawl_model::view::{Query, View, ViewResult};
use taskpawl_store::{Committer, Location};

use super::draw::Draw;
use super::items::{Flaw, Holder, Item, Reference, Stand, Work};
use crate::random::Random;
use crate::tables::may_follow;

/// Numbers of accepted and refused commands.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By kind of command: accepted, refused.
    pub counts: BTreeMap<String, (u64, u64)>,
}

impl Tally {
    fn add(&mut self, command: &Command, is_accepted: bool) {
        let debug = format!("{command:?}");
        let end = debug.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(debug.len());
        let count = self.counts.entry(debug[..end].to_owned()).or_default();
        if is_accepted { count.0 += 1 } else { count.1 += 1 }
    }

    /// Adds the numbers of another sequence.
    pub fn merge(&mut self, other: &Self) {
        for (kind, (accepted, refused)) in &other.counts {
            let count = self.counts.entry(kind.clone()).or_default();
            *count = (count.0 + accepted, count.1 + refused);
        }
    }
}

/// A sequence of commands on which the two models disagree.
#[derive(Debug, Clone)]
pub struct Difference {
    /// The shortest such sequence that was found.
    pub commands: Vec<String>,
    /// The differences after its last command.
    pub lines: Vec<String>,
}

/// Executes `length` random commands on both models.
///
/// # Errors
/// The models disagree.
pub fn play(seed: u64, length: usize, flaw: Option<Flaw>) -> Result<Tally, Difference> {
    let mut random = Random::new(seed ^ 0x0b5e_55ed);
    let (mut pair, mut tally, mut requests) = (Pair::new(flaw), Tally::default(), Vec::new());
    let mut now = 0;
    for _ in 0..length {
        now += i64::try_from(random.below(60)).unwrap_or_default();
        let request = Draw { random: &mut random, reference: &pair.reference, now }.request();
        requests.push(request.clone());
        match pair.give(&request) {
            Ok(is_accepted) => tally.add(&request.command, is_accepted),
            Err(_) => return Err(shorten(requests, flaw)),
        }
    }
    Ok(tally)
}

/// Removes every command that is not needed for a difference.
fn shorten(mut requests: Vec<Request>, flaw: Option<Flaw>) -> Difference {
    let mut lines = differs(&requests, flaw).unwrap_or_default();
    let mut position = requests.len();
    while position > 0 {
        position -= 1;
        let mut fewer = requests.clone();
        fewer.remove(position);
        if let Some(fewer_lines) = differs(&fewer, flaw) {
            (requests, lines) = (fewer, fewer_lines);
        }
    }
    let text = |request: &Request| format!("{}: {:?}", request.context.actor, request.command);
    Difference { commands: requests.iter().map(text).collect(), lines }
}

fn differs(requests: &[Request], flaw: Option<Flaw>) -> Option<Vec<String>> {
    let mut pair = Pair::new(flaw);
    requests.iter().find_map(|request| pair.give(request).err())
}

/// The two models.
pub(super) struct Pair {
    pub(super) store: Committer,
    pub(super) reference: Reference,
    revision: u64,
    states: BTreeMap<String, Status>,
}

impl Pair {
    pub(super) fn new(flaw: Option<Flaw>) -> Self {
        Self {
            store: Committer::open(&Location::Memory),
            reference: Reference { flaw, ..Reference::default() },
            revision: 0,
            states: BTreeMap::new(),
        }
    }

    /// Executes a request on both models. Returns whether it was accepted, or the differences.
    pub(super) fn give(&mut self, request: &Request) -> Result<bool, Vec<String>> {
        let outcomes = self.store.commit([request]).map_err(|error| vec![error.to_string()])?;
        let is_wanted = self.reference.give(&request.command, &request.context);
        let refusal = outcomes.into_iter().next().and_then(Result::err);
        if refusal.is_none() != is_wanted {
            let found = refusal.map_or("accepted".to_owned(), |refusal| format!("refused: {refusal}"));
            return Err(vec![format!("{found}; expected: {is_wanted}")]);
        }
        let (reference, states, revision) = (&self.reference, &mut self.states, &mut self.revision);
        let looked = self.store.look(|view| {
            let mut lines = events(view, revision, states, is_wanted)?;
            lines.extend(compare(view, reference)?);
            Ok(lines)
        });
        let lines = looked.map_err(|error| vec![error.to_string()])?;
        if lines.is_empty() { Ok(is_wanted) } else { Err(lines) }
    }
}

/// Checks that the status changes in the events are allowed and consecutive, and that a refused command wrote no event.
fn events(
    view: &dyn View,
    revision: &mut u64,
    states: &mut BTreeMap<String, Status>,
    is_accepted: bool,
) -> ViewResult<Vec<String>> {
    let mut lines = Vec::new();
    let events = view.events(*revision, None, 0)?;
    if !is_accepted && !events.is_empty() {
        lines.push(format!("refused, and wrote {events:?}"));
    }
    *revision = view.revision()?;
    for event in events {
        let (EventKind::Status { from, to, cause, .. }, Some(task)) = (&event.kind, &event.task) else {
            continue;
        };
        let known = states.insert(task.to_string(), *to).unwrap_or(Status::Todo);
        if known != *from || !may_follow(*from, *to, *cause) {
            lines.push(format!("`{task}` was `{known}`, went from `{from}` to `{to}` by `{cause}`"));
        }
    }
    Ok(lines)
}

fn compare(view: &dyn View, reference: &Reference) -> ViewResult<Vec<String>> {
    let (keys, mut lines, mut counts) =
        (view.find(&Query::default())?, Vec::new(), BTreeMap::<Status, u64>::new());
    if keys.iter().map(|key| key.0).ne(reference.items.keys().copied()) {
        lines.push(format!("there are {keys:?}, expected {:?}", reference.keys()));
        return Ok(lines);
    }
    for key in keys {
        let wanted = reference.item(key.0);
        *counts.entry(wanted.stand.status()).or_default() += 1;
        let is_same = item(view, key)?.as_ref() == Some(wanted);
        let Some(node) = view.node(key)? else { continue };
        let (is_ready, work) = (reference.is_ready(key.0), reference.work(key.0));
        if !is_same || node.is_ready() != is_ready || ends(node.work) != work {
            let found = item(view, key)?;
            let node = (node.is_ready(), node.work);
            lines.push(format!("found {found:?}, {node:?}\nexpected {wanted:?}, {:?}", (is_ready, work)));
        }
    }
    let ending = ending(view)?;
    if ending != reference.ending {
        lines.push(format!("still ending {ending:?}, expected {:?}", reference.ending));
    }
    let mut kept = view.counts()?;
    kept.retain(|_, count| *count > 0);
    if kept != counts {
        lines.push(format!("counted {kept:?}, expected {counts:?}"));
    }
    if !reference.has_order() {
        lines.push("there is a circle".to_owned());
    }
    Ok(lines)
}

fn ending(view: &dyn View) -> ViewResult<BTreeSet<(String, u32, u32, String)>> {
    let mut ending = BTreeSet::new();
    for run in view.open_runs()? {
        for (task, taken) in &run.ending {
            let key = view.key(task.as_str())?.map_or(u32::MAX, |key| key.0);
            let call = |call: &taskpawl_model::value::CallId| {
                (run.id.to_string(), key, taken.attempt, call.to_string())
            };
            ending.extend(taken.calls.iter().map(call));
        }
    }
    Ok(ending)
}

fn ends(work: Ends) -> Work {
    match work {
        Ends::Calls => Work::Calls,
        Ends::Manual => Work::Hand,
        Ends::Automatic => Work::Itself,
    }
}

/// Returns a task of the store in the form of the reference.
fn item(view: &dyn View, key: Key) -> ViewResult<Option<Item>> {
    let (Some(task), Some(node)) = (view.task(key)?, view.node(key)?) else { return Ok(None) };
    let call = |call: taskpawl_model::task::CallRecord| super::items::Call {
        id: call.id.to_string(),
        tool: call.spec.tool_name.clone(),
        status: call.body.status,
    };
    Ok(Some(Item {
        id: task.id.to_string(),
        needs: view.dependencies(key)?.into_iter().map(|key| key.0).collect(),
        above: node.parent.map(|key| key.0),
        trigger: task.spec.trigger(),
        is_milestone: task.spec.milestone,
        is_parallel: task.spec.mode() == taskpawl_model::task::Mode::Parallel,
        priority: task.spec.priority,
        calls: view.calls(key)?.into_iter().map(call).collect(),
        attempt: task.body.attempt,
        stand: stand(task.body.state.clone()),
    }))
}

fn stand(state: TaskStatus) -> Stand {
    match state {
        TaskStatus::Todo => Stand::Todo,
        TaskStatus::InProgress { claim } => Stand::Held(match (claim.run, claim.lease_until) {
            (Some(run), _) => Holder::Run(run.to_string()),
            (None, until) => {
                let lease =
                    claim.lease.map_or(0, |lease| i64::try_from(lease.0.as_millis()).unwrap_or(i64::MAX));
                Holder::Actor {
                    name: claim.actor.into(),
                    lease,
                    until: until.map_or(0, |until| until.timestamp_millis()),
                }
            }
        }),
        TaskStatus::Blocked { reason } => match *reason {
            BlockedReason::Dependency { .. } => Stand::BlockedByDependency,
            BlockedReason::Waiting { .. } => Stand::BlockedUntilFinished,
            BlockedReason::MissingTool { .. } => Stand::BlockedForATool,
            BlockedReason::Interrupted { call } => Stand::BlockedByInterruption(call.to_string()),
            BlockedReason::Manual { .. } | BlockedReason::Approval { .. } => Stand::BlockedByHand,
        },
        TaskStatus::Done => Stand::Done,
        TaskStatus::Failed { .. } => Stand::Failed,
        TaskStatus::Cancelled { .. } => Stand::Cancelled,
        TaskStatus::Skipped { .. } => Stand::Skipped,
    }
}
