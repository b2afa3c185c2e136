//! Random commands, valid and invalid ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl_model::command::{CallEnd, Command, Context, NewTask, Report, Request, Round};
use taskpawl_model::task::{
    ActorKind, CallError, CallSpec, CallStatus, Mode, NewCall, Origin, Priority, RunRecord, TaskSpec, Trigger,
};
use taskpawl_model::value::{CallId, Key, RunId, TaskId};
use taskpawl_model::value::{Map, Timestamp};

use super::items::{Holder, Reference, Stand, Work};
use crate::random::Random;

/// Number of different task ids. Small, because small graphs exercise every rule sooner.
const MAX_TASKS: usize = 14;

/// Start of the simulated time, in milliseconds since 1970.
const EPOCH: i64 = 1_893_456_000_000;

/// Generates commands that refer to existing tasks.
pub(super) struct Draw<'a> {
    pub(super) random: &'a mut Random,
    pub(super) reference: &'a Reference,
    pub(super) now: i64,
}

impl Draw<'_> {
    pub(super) fn request(&mut self) -> Request {
        let command = self.command();
        let is_of_run = matches!(command, Command::Round(_) | Command::Report(_));
        let run = is_of_run.then(|| self.run());
        let actor = if self.random.chance(60) { "ann" } else { "bob" }.into();
        let now = Timestamp::from_timestamp_millis(EPOCH + self.now).unwrap_or_default();
        let kind = if is_of_run { ActorKind::Run } else { ActorKind::Program };
        Request {
            command,
            context: Context {
                now,
                actor,
                kind,
                run,
                origin: Origin::Library,
                policy_hook: None,
                redact: None,
            },
        }
    }

    fn command(&mut self) -> Command {
        if self.reference.items.len() < 3 {
            return Command::Create(Box::new(self.new_task()));
        }
        match self.random.below(100) {
            0..=11 => Command::Create(Box::new(self.new_task())),
            12..=41 => self.command_of_run(),
            42..=69 => self.command_of_agent(),
            _ => self.command_of_author(),
        }
    }

    fn command_of_run(&mut self) -> Command {
        match self.random.below(20) {
            0..=11 => Command::Round(Box::new(self.round())),
            12 | 13 => Command::Report(Box::new(self.report())),
            14 | 15 => Command::RunOne {
                id: self.id(),
                missing_tool: self.random.chance(40).then(|| "rare".to_owned()),
            },
            16 => Command::ToolsKnown { tasks: vec![Key(self.key()), Key(self.key())] },
            17 => Command::ReturnExpired { tasks: vec![Key(self.key()), Key(self.key())] },
            18 => Command::start_run(self.run_record()),
            _ => {
                let id = self.run();
                if self.random.chance(50) {
                    Command::CloseRun { id }
                } else {
                    Command::FinishRun { id, exit: 0, counts: std::collections::BTreeMap::new() }
                }
            }
        }
    }

    fn command_of_agent(&mut self) -> Command {
        let (cascade, lease) = (self.random.chance(50), Duration::from_millis(self.random.below_u64(200)));
        match self.random.below(26) {
            0..=2 => Command::Claim {
                id: Some(self.id_of(Self::may_be_taken)),
                lease,
                capacities: std::collections::BTreeMap::new(),
                writes: std::collections::BTreeMap::new(),
            },
            3 => Command::Claim {
                id: None,
                lease,
                capacities: std::collections::BTreeMap::new(),
                writes: std::collections::BTreeMap::new(),
            },
            4 => Command::Renew { id: self.id_of(Self::is_held_by_hand), lease },
            5 => Command::Release { ids: vec![self.id_of(Self::is_held_by_hand)], note: None },
            6..=9 => {
                let (ids, attempt) = self.ids_and_attempt();
                Command::Done { ids, result: None, note: None, attempt }
            }
            10 | 11 => {
                let (ids, attempt) = self.ids_and_attempt();
                Command::Fail { ids, result: None, note: None, attempt }
            }
            12 | 13 => Command::Skip { ids: self.ids(), reason: None },
            14 => Command::Block { ids: self.ids(), reason: "wait".to_owned() },
            15..=17 => Command::Unblock { ids: vec![self.id_of(Self::may_be_unblocked)] },
            18..=20 => Command::Retry { ids: self.ids(), cascade },
            21 | 22 => Command::Reopen { ids: self.ids(), cascade },
            23 | 24 => Command::Cancel { ids: self.ids(), reason: None },
            _ => Command::Note {
                id: self.id(),
                text: if self.random.chance(80) { "seen" } else { " " }.to_owned(),
            },
        }
    }

    fn command_of_author(&mut self) -> Command {
        match self.random.below(16) {
            0..=2 => Command::AddDependency { id: self.id(), on: self.id() },
            3 | 4 => Command::RemoveDependency { id: self.id(), on: self.needed() },
            5..=7 => {
                let parent = self.random.chance(70).then(|| self.id());
                Command::Move { id: self.id(), parent }
            }
            8 | 9 => Command::AddCall { id: self.id(), call: Box::new(self.new_call()) },
            10 => Command::Delete { ids: self.ids() },
            11 => Command::Settle,
            _ => Command::Update {
                id: self.id(),
                fields: self.fields(),
                if_version: self.random.chance(5).then_some(u64::MAX),
                restart: None,
            },
        }
    }

    fn key(&mut self) -> u32 {
        let keys = self.reference.keys();
        if self.random.chance(5) { 1000 } else { self.random.one_of(&keys).copied().unwrap_or(0) }
    }

    /// Returns mostly the id of a task, sometimes a prefix of one, and sometimes an unknown id.
    fn id(&mut self) -> String {
        let keys = self.reference.keys();
        let id = self.random.one_of(&keys).map_or("t", |key| &self.reference.item(*key).id);
        match self.random.below(40) {
            0 => "nobody".to_owned(),
            1 => id[..1].to_owned(),
            2 => id[..id.len() - 1].to_owned(),
            _ => id.to_owned(),
        }
    }

    /// Returns mostly the id of a task for which the command is valid.
    fn id_of(&mut self, is_meant: fn(&Reference, u32) -> bool) -> String {
        let keys: Vec<u32> =
            self.reference.keys().into_iter().filter(|key| is_meant(self.reference, *key)).collect();
        match self.random.one_of(&keys) {
            Some(key) if self.random.chance(75) => self.reference.item(*key).id.clone(),
            _ => self.id(),
        }
    }

    fn may_be_taken(reference: &Reference, key: u32) -> bool {
        reference.is_ready(key) && reference.work(key) == Work::Hand
    }

    fn is_held_by_hand(reference: &Reference, key: u32) -> bool {
        matches!(reference.item(key).stand, Stand::Held(Holder::Actor { .. }))
    }

    fn may_be_unblocked(reference: &Reference, key: u32) -> bool {
        matches!(reference.item(key).stand, Stand::BlockedByHand | Stand::BlockedByInterruption(_))
    }

    fn ids(&mut self) -> Vec<String> {
        let count = if self.random.chance(75) { 1 } else { 1 + self.random.below(3) };
        (0..count).map(|_| self.id()).collect()
    }

    fn ids_and_attempt(&mut self) -> (Vec<String>, Option<u32>) {
        let mut ids = self.ids();
        ids[0] = match self.random.below(3) {
            0 => self.id_of(Self::may_be_taken),
            1 => self.id_of(Self::may_be_unblocked),
            _ => self.id_of(Self::is_held_by_hand),
        };
        let current = self.reference.find(&ids[0]).map_or(0, |key| self.reference.item(key).attempt);
        let attempt = self.random.chance(50).then(|| self.near(current));
        (ids, attempt)
    }

    fn near(&mut self, attempt: u32) -> u32 {
        match self.random.below(8) {
            0 => attempt.saturating_sub(1),
            1 => attempt + 1,
            _ => attempt,
        }
    }

    fn needed(&mut self) -> String {
        let needed: Vec<u32> =
            self.reference.items.values().flat_map(|item| item.needs.iter().copied()).collect();
        match self.random.one_of(&needed) {
            Some(key) => self.reference.item(*key).id.clone(),
            None => self.id(),
        }
    }

    fn run(&mut self) -> RunId {
        RunId::from(if self.random.chance(60) { "r1" } else { "r2" })
    }

    fn run_record(&mut self) -> RunRecord {
        RunRecord {
            id: self.run(),
            scope: Vec::new(),
            params: Map::new(),
            actor: "ann".to_owned(),
            actor_kind: taskpawl_model::task::ActorKind::Unknown,
            stop: None,
            host: "here".to_owned(),
            started_at: Timestamp::default(),
            finished_at: None,
            recovered_at: None,
            output_pruned_at: None,
            exit: None,
            counts: std::collections::BTreeMap::new(),
            ending: std::collections::BTreeMap::new(),
        }
    }

    fn round(&mut self) -> Round {
        let reports = (0..self.random.below(4)).map(|_| self.report()).collect();
        let releases = if self.random.chance(15) { vec![self.release()] } else { Vec::new() };
        let ready: Vec<u32> =
            self.reference.keys().into_iter().filter(|key| self.reference.is_ready(*key)).collect();
        let mut claims: Vec<Key> = Vec::new();
        for _ in 0..self.random.below(4) {
            let key = if self.random.chance(80) { self.random.one_of(&ready).copied() } else { None };
            claims.push(Key(key.unwrap_or_else(|| self.key())));
        }
        let mut tools = BTreeSet::from(["work".to_owned()]);
        if self.random.chance(50) {
            tools.insert("rare".to_owned());
        }
        Round { reports, releases, claims, tools: Arc::new(tools), ..Round::default() }
    }

    fn release(&mut self) -> (Key, u32) {
        let key = self.held_key();
        let attempt = self.reference.items.get(&key).map_or(0, |item| item.attempt);
        (Key(key), self.near(attempt))
    }

    fn held_key(&mut self) -> u32 {
        let ending = &self.reference.ending;
        let is_held = |key: &u32| {
            matches!(self.reference.item(*key).stand, Stand::Held(Holder::Run(_)))
                || ending.iter().any(|(_, task, ..)| task == key)
        };
        let held: Vec<u32> = self.reference.keys().into_iter().filter(is_held).collect();
        if self.random.chance(5) { self.key() } else { self.random.one_of(&held).copied().unwrap_or(0) }
    }

    fn report(&mut self) -> Report {
        let key = self.held_key();
        let item = self.reference.items.get(&key);
        let calls: Vec<&super::items::Call> = item.iter().flat_map(|item| &item.calls).collect();
        let running: Vec<&str> = calls
            .iter()
            .filter(|call| {
                matches!(call.status, CallStatus::Running | CallStatus::Cancelled) || self.random.chance(5)
            })
            .map(|call| call.id.as_str())
            .collect();
        let call = CallId::from(self.random.one_of(&running).copied().unwrap_or("c9"));
        let attempt = self.near(item.map_or(0, |item| item.attempt));
        let end = match self.random.below(10) {
            0..=5 => CallEnd::Succeeded(Value::Null),
            6 | 7 => CallEnd::Failed { error: CallError::new("exit_code", "1"), result: None },
            8 => CallEnd::interrupted(true),
            _ => CallEnd::interrupted(false),
        };
        Report {
            task: Key(key),
            attempt,
            call,
            end,
            cut: Vec::new(),
            usage: None,
            artifacts: Vec::new(),
            changed_beyond: Vec::new(),
            changes_unknown: None,
            inputs_changed: false,
            worker: None,
            go_on: self.random.chance(85),
        }
    }

    fn new_task(&mut self) -> NewTask {
        // The ids repeat, so that creating a task is often refused once there are many.
        let letters = ["a", "b", "c"];
        let number = self.random.below(MAX_TASKS);
        let mut id = format!("{}{number:02}", letters[number % 3]);
        if self.random.chance(2) {
            id.push('/');
        }
        let dependencies = (0..self.random.below(3)).map(|_| self.id()).collect::<Vec<_>>();
        let calls = if self.random.chance(55) { 1 + self.random.below(3) } else { 0 };
        let mut spec = TaskSpec { name: id.clone(), ..TaskSpec::default() };
        spec.trigger = self.random.chance(50).then(|| Trigger::ALL[self.random.below(4)]);
        spec.mode = self.random.chance(40).then_some(Mode::Parallel);
        spec.milestone = self.random.chance(if calls == 0 { 25 } else { 3 });
        spec.priority = Priority::ALL[self.random.below(4)];
        NewTask {
            id: TaskId::from(id),
            spec,
            calls: (0..calls).map(|_| self.new_call()).collect(),
            dependencies: if self.reference.items.is_empty() { Vec::new() } else { dependencies },
            parent: (self.random.chance(40) && !self.reference.items.is_empty()).then(|| self.id()),
            ..NewTask::default()
        }
    }

    fn new_call(&mut self) -> NewCall {
        let tool_name = if self.random.chance(85) { "work" } else { "rare" }.to_owned();
        let id = format!("c{}", self.random.below(12));
        NewCall { id: Some(CallId::from(id)), spec: CallSpec { tool_name, ..CallSpec::default() }.into() }
    }

    fn fields(&mut self) -> Map {
        let (field, value) = match self.random.below(12) {
            0 => ("name", json!("new")),
            1 => ("name", json!(" ")),
            2 => ("status", json!("done")),
            3 | 4 => ("priority", json!(Priority::ALL[self.random.below(4)].as_str())),
            5 | 6 => ("trigger", json!(Trigger::ALL[self.random.below(4)].as_str())),
            7 => ("milestone", json!(self.random.chance(50))),
            8 => ("mode", json!(Mode::ALL[self.random.below(2)].as_str())),
            _ => {
                let count = self.random.below(3);
                ("dependencies", json!((0..count).map(|_| self.id()).collect::<Vec<_>>()))
            }
        };
        Map::from_iter([(field.to_owned(), value)])
    }
}
