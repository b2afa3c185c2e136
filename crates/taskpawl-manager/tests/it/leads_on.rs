//! From every state, some command that is offered leads on: random plans, ends and edits of the file.

use taskpawl_manager::{ApplyOptions, Error, OnChanged};
use taskpawl_model::command::{Refusal, Remedy};
use taskpawl_model::task::{BlockedReason, Status, Task};
use taskpawl_model::view::Query;
use taskpawl_testkit::Random;

use crate::support::{Fixture, end, ids};

/// Number of random plans.
const PLANS: u64 = 200;

/// The most steps that a plan of this size may take to its end.
const STEPS: usize = 200;

struct Plan {
    /// For each task its dependencies, its trigger and the numbers in the arguments of its calls.
    tasks: Vec<(Vec<usize>, &'static str, Vec<u64>)>,
}

impl Plan {
    fn new(random: &mut Random) -> Self {
        let task = |at: usize, random: &mut Random| {
            let needs: Vec<usize> = (0..at).filter(|_| random.chance(40)).collect();
            let triggers = ["all_done", "all_done", "all_finished", "any_failed"];
            let trigger = if needs.is_empty() { "all_done" } else { triggers[random.below(4)] };
            (needs, trigger, (0..=random.below(2)).map(|_| random.below_u64(3)).collect())
        };
        Self { tasks: (0..2 + random.below(4)).map(|at| task(at, random)).collect() }
    }

    /// Changes arguments, adds or removes calls.
    fn edit(&mut self, random: &mut Random) {
        for (_, _, calls) in &mut self.tasks {
            if random.chance(40) {
                calls[0] += 1;
            }
            if random.chance(15) {
                calls.push(7);
            } else if random.chance(15) && calls.len() > 1 {
                calls.pop();
            }
        }
    }

    fn text(&self) -> String {
        let line = |(at, (needs, trigger, calls)): (usize, &(Vec<usize>, &str, Vec<u64>))| {
            let needs: Vec<String> = needs.iter().map(|need| format!("t{need}")).collect();
            let calls: Vec<String> = calls.iter().map(|number| format!("{{t: {{n: {number}}}}}")).collect();
            format!(
                "{{id: t{at}, needs: [{}], trigger: {trigger}, calls: [{}]}}",
                needs.join(", "),
                calls.join(", ")
            )
        };
        let tasks: Vec<String> = self.tasks.iter().enumerate().map(line).collect();
        format!("tasks: [{}]", tasks.join(", "))
    }
}

fn tasks(fixture: &Fixture) -> Vec<Task> {
    fixture.manager.list(&Query::default()).unwrap().tasks
}

/// Lets random things happen: calls end in all ways, and people decide.
fn happen(fixture: &Fixture, random: &mut Random) {
    for task in tasks(fixture) {
        let id = task.id.as_str();
        match random.below(10) {
            0 => _ = fixture.manager.cancel(&ids(&[id]), None),
            1 => _ = fixture.manager.skip(&ids(&[id]), None),
            2 => _ = fixture.manager.block(&ids(&[id]), "wait".to_owned()),
            _ => {}
        }
    }
    for _ in 0..random.below(8) {
        if !step(fixture, random, &["ok", "ok", "bad", "lost", "cut"]) {
            return;
        }
    }
}

/// Starts the ready tasks, or ends one running call; false if nothing is ready or running.
fn step(fixture: &Fixture, random: &mut Random, ends: &[&str]) -> bool {
    let running: Vec<(String, String)> = tasks(fixture)
        .iter()
        .flat_map(|task| {
            let running = task.metadata.tool_calls.iter().filter(|call| call.status.as_str() == "running");
            running.map(|call| (task.id.to_string(), call.id.to_string())).collect::<Vec<_>>()
        })
        .collect();
    if let Some((task, call)) = random.one_of(&running) {
        let how = ends[random.below(ends.len())];
        fixture.accept(fixture.try_report(task, call, end(how), true));
        return true;
    }
    let ready = fixture.ready();
    if ready.is_empty() {
        return false;
    }
    fixture.start(&[ready[0].as_str()]);
    true
}

/// Applies the file. What a refusal names is done, and then the file has to be accepted.
fn apply(fixture: &Fixture, random: &mut Random, text: &str) {
    let mut on_changed = OnChanged::Refuse;
    for _ in 0..STEPS {
        let given = on_changed;
        let options = ApplyOptions { on_changed, ..ApplyOptions::default() };
        let refusal = match fixture.try_apply(text, options) {
            Ok(_) => return fixture.check(),
            Err(Error::Refused(refusal)) => *refusal,
            Err(other) => panic!("{other}"),
        };
        let Refusal::PlanConflict { conflicts, .. } = &refusal else {
            let is_running = matches!(refusal, Refusal::InProgress { .. });
            assert!(is_running && step(fixture, random, &["ok"]), "{refusal}\n{}\n{text}", fixture.states());
            continue;
        };
        for conflict in conflicts {
            match conflict.remedy {
                Remedy::Redo => on_changed = OnChanged::Redo,
                Remedy::RedoOrKeep => match on_changed {
                    OnChanged::Refuse if random.chance(50) => on_changed = OnChanged::Keep,
                    OnChanged::Refuse => on_changed = OnChanged::Redo,
                    // Another conflict of this refusal has chosen already.
                    OnChanged::Redo | OnChanged::Keep if given == OnChanged::Refuse => {}
                    OnChanged::Redo | OnChanged::Keep => panic!("{conflict} in spite of {given:?}"),
                },
                Remedy::Settle => fixture.done(conflict.task.as_str()),
                Remedy::OtherId | Remedy::Wait | _ => {
                    assert!(step(fixture, random, &["ok"]), "{conflict} does not end");
                }
            }
        }
    }
    let refusal = fixture.try_apply(text, ApplyOptions { on_changed, ..ApplyOptions::default() });
    panic!("never accepted: {refusal:?}\n{}\n{text}", fixture.states());
}

/// Leads a plan to its end by what is offered for the state of each task.
fn lead_on(fixture: &Fixture, random: &mut Random) {
    for _ in 0..STEPS {
        if step(fixture, random, &["ok"]) {
            continue;
        }
        let all = tasks(fixture);
        let Some(task) = all.iter().find(|task| !matches!(task.status, Status::Done | Status::Skipped))
        else {
            return;
        };
        let stuck = all.iter().find(|task| {
            let by_hand = |reason: &BlockedReason| {
                matches!(reason, BlockedReason::Manual { .. } | BlockedReason::Interrupted { .. })
            };
            matches!(task.status, Status::Failed | Status::Cancelled)
                || task.blocked_reason.as_ref().is_some_and(by_hand)
        });
        let task = stuck.unwrap_or(task);
        let id = ids(&[task.id.as_str()]);
        match task.status {
            Status::Failed => drop(fixture.accept(fixture.manager.retry(&id, true))),
            Status::Cancelled => drop(fixture.accept(fixture.manager.reopen(&id, true))),
            Status::Blocked => drop(fixture.accept(fixture.manager.unblock(&id))),
            Status::Todo | Status::InProgress | Status::Done | Status::Skipped => {
                panic!("nothing leads on: {}", fixture.states())
            }
        }
    }
    panic!("no end: {}", fixture.states());
}

#[test]
fn from_every_state_an_edited_file_is_taken_and_the_plan_ends() {
    for seed in 0..PLANS {
        let mut random = Random::new(seed);
        let (fixture, mut plan) = (Fixture::new(), Plan::new(&mut random));
        fixture.apply(&plan.text());
        for _ in 0..3 {
            happen(&fixture, &mut random);
            plan.edit(&mut random);
            apply(&fixture, &mut random, &plan.text());
        }
        lead_on(&fixture, &mut random);
        let unchanged = fixture.apply(&plan.text());
        assert_eq!(unchanged.changed.len(), 0, "seed {seed}: the file is applied");
    }
}
