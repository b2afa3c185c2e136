//! Random plans: data flow between tasks, and constructs that depend on it.

use serde_json::{Value, json};
use taskpawl_model::task::{Status, Trigger};

use super::draw::given;
use super::expr::{Expr, Template};
use super::plan::{Items, RandomCall, RandomPlan, Rounds, Script, Verdict};
use crate::random::Random;

/// Generates the conditions, loops and references of one task.
struct Flow<'a> {
    plan: &'a RandomPlan,
    random: &'a mut Random,
    position: usize,
    /// Tasks that have certainly ended before this one starts.
    over: Vec<usize>,
    /// Names of the results of earlier calls of the task.
    names: Vec<String>,
    is_item: bool,
    /// Set while a part of a call is generated. The approval of the task has been given by then.
    is_in_call: bool,
    /// For each task, whether it runs once per list item.
    loops: &'a [bool],
}

impl RandomPlan {
    /// Adds conditions, loops and references to the tasks.
    pub(super) fn add_flow(&mut self, random: &mut Random) {
        let may_loop = |position| self.may_have_items(position) && random.chance(12);
        let loops: Vec<bool> = (0..self.tasks.len()).map(may_loop).collect();
        for position in 0..self.tasks.len() {
            let over = self.over_before(position);
            let (names, loops) = (Vec::new(), &loops[..]);
            let mut flow =
                Flow { plan: self, random, position, over, names, is_item: false, is_in_call: false, loops };
            let when = flow.random.chance(18).then(|| flow.condition());
            let items = loops[position].then(|| flow.items());
            (flow.is_item, flow.is_in_call) = (items.is_some(), true);
            let calls = flow.calls();
            let rounds = (flow.may_have_rounds()).then(|| flow.rounds());
            let timeout = flow.timeout(&calls);
            let is_cached = items.is_none() && rounds.is_none() && flow.may_be_cached(&calls);
            let task = &mut self.tasks[position];
            task.calls_mut().clone_from_slice(&calls);
            (task.when, task.rounds, task.timeout, task.is_cached) = (when, rounds, timeout, is_cached);
            task.items = items;
        }
    }

    fn may_have_items(&self, position: usize) -> bool {
        let task = &self.tasks[position];
        let makes = task.calls().iter().any(|call| !call.makes.is_empty());
        !makes && task.script != Script::Milestone && self.subtasks(position).next().is_none()
    }

    /// Returns the direct and indirect dependencies that have certainly ended before a task starts.
    fn over_before(&self, position: usize) -> Vec<usize> {
        let task = &self.tasks[position];
        if !task.waits_for_all() && task.needs.len() != 1 {
            return Vec::new();
        }
        let is_there = |on: &usize| {
            let by = self.tasks[*on].made_by;
            by.is_none() || by == task.made_by
        };
        let mut over: Vec<usize> = task.needs.iter().copied().filter(is_there).collect();
        if task.trigger == Trigger::AllDone {
            for on in over.clone() {
                let other = &self.tasks[on];
                // The dependency either started, or was skipped after its own dependencies had ended.
                if other.waits_for_all() && other.parent.is_none() {
                    over.extend(other.needs.iter().copied().filter(is_there));
                }
            }
        }
        over.sort_unstable();
        over.dedup();
        over
    }
}

impl Flow<'_> {
    fn may_have_rounds(&mut self) -> bool {
        let calls = self.plan.tasks[self.position].calls();
        !calls.is_empty() && calls.iter().all(|call| call.makes.is_empty()) && self.random.chance(15)
    }

    fn may_be_cached(&mut self, calls: &[RandomCall]) -> bool {
        let task = &self.plan.tasks[self.position];
        let is_plain = |call: &RandomCall| call.makes.is_empty() && call.approval.is_none();
        !calls.is_empty() && task.approval.is_none() && calls.iter().all(is_plain) && self.random.chance(15)
    }

    fn rounds(&mut self) -> Rounds {
        let most = 1 + u32::try_from(self.random.below(4)).unwrap_or_default();
        let enough = u32::try_from(self.random.below(4)).unwrap_or_default();
        Rounds { enough, most, delay: self.random.below_u64(60) }
    }

    /// Returns a timeout for a task whose only call never ends, in some cases.
    fn timeout(&mut self, calls: &[RandomCall]) -> Option<u64> {
        let task = &self.plan.tasks[self.position];
        let is_endless = |call: &RandomCall| call.class == "timeout" && call.fails == RandomCall::ALWAYS;
        let is_first = calls.len() == 1 && calls.iter().all(is_endless);
        (is_first && !task.is_parallel() && self.random.chance(40)).then_some(30)
    }

    fn calls(&mut self) -> Vec<RandomCall> {
        let task = self.plan.tasks[self.position].clone();
        let mut calls = task.calls().to_vec();
        for (number, call) in calls.iter_mut().enumerate() {
            if self.random.chance(40) {
                call.value = self.template();
            }
            if self.random.chance(12) {
                call.when = Some(self.condition());
            }
            if task.is_parallel() {
                // The outcome would depend on the timing of the other calls.
                call.approval = None;
            } else {
                self.names.push(call.name(number));
            }
        }
        calls
    }

    fn items(&mut self) -> Items {
        let list = match self.random.below(6) {
            0 if !self.over.is_empty() => Template::Lone(Expr::Field(Box::new(self.result()), "value")),
            1 | 2 if self.plan.tasks[self.position].trigger == Trigger::AllDone => {
                self.some_task().map_or_else(|| self.list(), |task| Template::Lone(Expr::Results(task)))
            }
            _ => self.list(),
        };
        let concurrency = self.random.chance(40).then(|| 1 + u32::from(self.random.chance(50)));
        Items { list, concurrency }
    }

    fn list(&mut self) -> Template {
        let count = self.random.below(5);
        let element = |flow: &mut Self| {
            if flow.random.chance(7) { json!("bad") } else { given(flow.random) }
        };
        Template::Given(Value::Array((0..count).map(|_| element(self)).collect()))
    }

    /// Returns one of the ended tasks. Tasks that create others are excluded, because their results are too large to
    /// pass on.
    fn some_task(&mut self) -> Option<usize> {
        let makes = |task: &usize| self.plan.tasks[*task].calls().iter().any(|call| !call.makes.is_empty());
        let over: Vec<usize> = self.over.iter().copied().filter(|task| !makes(task)).collect();
        self.random.one_of(&over).copied()
    }

    fn result(&mut self) -> Expr {
        self.some_task().map_or(Expr::Param("word"), Expr::Result)
    }

    fn template(&mut self) -> Template {
        match self.random.below(10) {
            _ if self.asks() && self.random.chance(40) => Template::Lone(Expr::Own("approval".to_owned())),
            0 => Template::Lone(Expr::Param(["flag", "n", "word"][self.random.below(3)])),
            1 => Template::Text("n is ", Expr::Param("n")),
            2 | 3 if self.is_item => Template::Lone(Expr::Item),
            4 if self.is_item => Template::Text("no ", Expr::Index),
            5 if !self.names.is_empty() => Template::Lone(self.own()),
            6 if !self.over.is_empty() => Template::Text("it is ", self.status()),
            7 => Template::Lone(self.result()),
            // This is missing if the task has no result.
            8 if self.random.chance(50) => Template::Lone(Expr::Field(Box::new(self.result()), "value")),
            8 => self.of_context().map_or(Template::Lone(Expr::Param("n")), Template::Lone),
            _ => Template::Lone(self.condition()),
        }
    }

    /// Returns the result of one call of an ended task.
    fn of_context(&mut self) -> Option<Expr> {
        let task = self.some_task().filter(|task| !self.loops[*task])?;
        let calls = self.plan.tasks[task].calls();
        let number = self.random.below(calls.len().max(1));
        calls.get(number).map(|call| Expr::Context(task, call.name(number)))
    }

    fn own(&mut self) -> Expr {
        let name = self.random.one_of(&self.names).cloned().unwrap_or_default();
        Expr::Own(name)
    }

    fn status(&mut self) -> Expr {
        self.random.one_of(&self.over).copied().map_or(Expr::Param("word"), Expr::Status)
    }

    fn condition(&mut self) -> Expr {
        match self.random.below(10) {
            0 => self.simple().negated(),
            1 => self.simple().and(self.simple()),
            2 => Expr::Or(Box::new(self.simple()), Box::new(self.simple())),
            _ => self.simple(),
        }
    }

    fn simple(&mut self) -> Expr {
        let number = u32::try_from(self.random.below(3)).unwrap_or_default();
        match self.random.below(12) {
            0 if self.is_item => Expr::AtLeast(Box::new(Expr::Index), number),
            1 if self.is_item => Expr::Equals(Box::new(Expr::Item), given(self.random)),
            2 if !self.names.is_empty() => Expr::IsNone(Box::new(self.own())),
            3 if !self.names.is_empty() => {
                let value = given(self.random);
                self.own().known("value", |of| Expr::Equals(of, value))
            }
            4 | 5 => {
                let status = [Status::Done, Status::Skipped, Status::Failed][self.random.below(3)];
                Expr::Equals(Box::new(self.status()), json!(status.as_str()))
            }
            6 => Expr::IsNone(Box::new(self.result())),
            7 => {
                let value = given(self.random);
                match self.some_task() {
                    Some(task) => Expr::Result(task).known("value", |of| Expr::Equals(of, value)),
                    None => Expr::Param("flag"),
                }
            }
            8 if self.random.chance(30) => {
                Expr::Equals(Box::new(Expr::Field(Box::new(self.result()), "nope")), json!(1))
            }
            9 if self.asks() => Expr::Equals(Box::new(Expr::Own("approval".to_owned())), json!("red")),
            10 => Expr::AtLeast(Box::new(Expr::Param("n")), number),
            11 => Expr::Equals(Box::new(Expr::Param("word")), json!("a")),
            _ => Expr::Param("flag"),
        }
    }

    /// Returns whether the task asks a question that has been answered when its calls start.
    fn asks(&self) -> bool {
        let approval = self.plan.tasks[self.position].approval.as_ref();
        let is_answered = |verdict| matches!(verdict, Verdict::Granted(_));
        let is_asked_again =
            self.plan.tasks[self.position].calls().iter().any(|call| call.approval.is_some());
        self.is_in_call
            && !is_asked_again
            && approval.is_some_and(|decision| decision.is_question && is_answered(decision.verdict))
    }
}
