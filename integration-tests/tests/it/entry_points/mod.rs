//! Random commands through the command line, MCP and the library at once, on one store. After each command these are checked:
//!
//! - Kind and name decide about access to a claimed task, at every entry point.
//! - Every suggested action is accepted, or says that it asks a person.
//! - A command that one entry point refuses is refused by the others, too.
//! - No refusal has more than 2 kB of text.

mod actors;
mod fields;
mod offers;
mod tables;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl::model::task::{ActorKind, Claim, Status};

use self::actors::{Actor, Outcome, VERBS, Verb, Way, World};
use self::offers::Spoilt;
use crate::support::{Figures, Home, Random, scale, seed};

/// Maximum size of a refusal in bytes.
const MAX_BYTES: usize = 2048;

/// Manual tasks, tasks with succeeding and failing calls, and tasks that wait for dependencies, a decision or a tool.
fn plan() -> String {
    json!({"name": "p", "tools": ["no_such_tool"], "tasks": [
        {"id": "one"}, {"id": "two", "assignee": "ann"}, {"id": "three", "needs": ["one"]}, {"id": "four", "name": "x `taskpawl retry one`"},
        {"id": "well", "call": {"log": {"message": "well"}}}, {"id": "badly", "call": {"fail": {"message": "no"}}},
        {"id": "behind", "needs": ["badly"]}, {"id": "after", "needs": ["badly"], "trigger": "any_failed"},
        {"id": "asks", "approval": {"ask": "Now?", "options": ["yes", "no"]}, "call": {"log": {"message": "asked"}}},
        {"id": "lacks", "call": {"no_such_tool": {}}},
        {"id": "above", "subtasks": [{"id": "below"}, {"id": "beside"}]},
    ]})
    .to_string()
}

const TASKS: [&str; 12] =
    ["one", "two", "three", "four", "well", "badly", "behind", "after", "asks", "lacks", "above", "below"];

/// The rule for access to a claimed task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Kind and name, as promised.
    KindAndName,
    /// The name only: the control.
    NameAlone,
}

/// Returns whether a command on a claimed task is accepted. Written from the promise, and independent of the rules in the model.
fn is_allowed(rule: Rule, verb: Verb, actor: &Actor, claim: &Claim) -> bool {
    let is_own = *claim.actor == actor.name && (rule == Rule::NameAlone || claim.kind == actor.kind());
    let is_person = actor.kind() == ActorKind::Person && rule == Rule::KindAndName;
    match verb {
        Verb::Claim | Verb::Renew => is_own,
        Verb::Done | Verb::Fail | Verb::Release => is_own || is_person,
        Verb::Cancel => claim.kind != ActorKind::Person || is_person || rule == Rule::NameAlone,
        // The transition table has no way from `in_progress` to these.
        Verb::Retry | Verb::Reopen | Verb::Skip => false,
    }
}

#[derive(Debug, Default)]
struct Counts {
    commands: BTreeMap<&'static str, usize>,
    on_held: usize,
    refused: usize,
    longest: usize,
    /// Refusals that exceed the size.
    wordy: Vec<String>,
    /// Commands on claimed tasks with an outcome other than the rule's.
    wrong: Vec<String>,
    offers: offers::Counts,
    alike: usize,
    /// Commands that one entry point accepts and another refuses.
    unlike: Vec<String>,
}

/// Runs one random sequence. Under the control rule only access to claimed tasks is checked.
fn play(seed: u64, steps: usize, rule: Rule, counts: &mut Counts) {
    let home = Home::new();
    home.apply(&plan());
    let mut random = Random::new(seed);
    let mut world = World::new(&home);
    for step in 0..steps {
        if random.below(20) == 0 {
            home.run(&["run-all-ready", "--quiet", "--actor", "ann"]);
            continue;
        }
        let actor = Actor::draw(&mut random);
        let id = TASKS[random.below(TASKS.len())];
        let before = home.manager().get(id).unwrap();
        let verb = draw_verb(before.status, &mut random);
        if rule == Rule::KindAndName && random.below(8) == 0 {
            refused_alike(&home, step, verb, id, counts);
        }
        let outcome = world.act(&actor, verb, id);
        let place = format!("seed {seed}, step {step}: {verb:?} {id} by {actor:?}, {} before", before.status);
        *counts.commands.entry(actor.way.name()).or_default() += 1;
        if let Some(claim) = before.claim.as_ref().filter(|_| before.status == Status::InProgress) {
            counts.on_held += 1;
            let allowed = is_allowed(rule, verb, &actor, claim);
            if allowed != outcome.is_accepted() {
                counts.wrong.push(format!("{place}, held by {} `{}`: {outcome:?}", claim.kind, claim.actor));
            }
        }
        if let Outcome::Refused(text) = &outcome {
            counts.refused += 1;
            counts.longest = counts.longest.max(text.len());
            if text.len() > MAX_BYTES {
                counts.wordy.push(format!(
                    "{place}: {} bytes: {}…",
                    text.len(),
                    &text[..text.floor_char_boundary(300)]
                ));
            }
        }
        if rule == Rule::KindAndName && random.below(10) == 0 {
            offers::check(&home, &actor.name, id, &mut counts.offers);
        }
    }
    home.assert_sound();
}

/// Returns a random command, more often one that leads to a claimed task.
fn draw_verb(status: Status, random: &mut Random) -> Verb {
    let leads_there = random.chance(50);
    if leads_there && status == Status::Todo {
        Verb::Claim
    } else if leads_there && status.is_finished() {
        Verb::Reopen
    } else {
        VERBS[random.below(VERBS.len())]
    }
}

/// Checks that an agent of one name gets the same answer at all entry points.
fn refused_alike(home: &Home, step: usize, verb: Verb, id: &str, counts: &mut Counts) {
    let ways = [Way::Cli, Way::Mcp, Way::Library(ActorKind::Agent)];
    let outcomes: Vec<bool> = ways
        .iter()
        .map(|way| {
            let copy = home.with_copied_store(&format!("copy-{}.db", way.name()));
            let actor = Actor { way: *way, name: "ann".to_owned() };
            World::new(&copy).act(&actor, verb, id).is_accepted()
        })
        .collect();
    counts.alike += 1;
    if outcomes.iter().any(|outcome| *outcome != outcomes[0]) {
        counts.unlike.push(format!("step {step}: {verb:?} {id}: {outcomes:?} by {ways:?}"));
    }
}

#[test]
fn entry_points_agree_on_claims_and_suggest_only_accepted_actions() {
    let mut figures = Figures::of("entry_points_agree_on_claims_and_suggest_only_accepted_actions", seed());
    let (sequences, steps) = (scale(3, 100) as u64, 150);
    let mut counts = Counts::default();
    for number in 0..sequences {
        play(figures.seed.wrapping_add(number), steps, Rule::KindAndName, &mut counts);
    }
    for (mistake, commands) in [
        ("acts on a claimed task", &counts.wrong),
        ("is answered otherwise elsewhere", &counts.unlike),
        ("says too much", &counts.wordy),
        ("is offered and refused", &counts.offers.refused),
    ] {
        eprintln!("{} times a command {mistake}:\n{}", commands.len(), commands.join("\n"));
    }
    figures.add(format!("{:?} commands, {} on held tasks", counts.commands, counts.on_held));
    figures.add(format!("{} refused, at most {} bytes", counts.refused, counts.longest));
    figures.add(format!("{} answered alike", counts.alike));
    figures.add(format!("{} offers accepted, {} ask a person", counts.offers.accepted, counts.offers.asked));
    for found in [&counts.wrong, &counts.unlike, &counts.wordy, &counts.offers.refused] {
        assert!(found.is_empty(), "{found:?}");
    }
}

#[test]
fn faults_in_rules_and_in_offers_are_noticed() {
    let mut figures = Figures::of("faults_in_rules_and_in_offers_are_noticed", seed());
    let mut control = Counts::default();
    play(figures.seed, 150, Rule::NameAlone, &mut control);
    figures.add(format!("{} found where the name alone decides", control.wrong.len()));
    assert!(!control.wrong.is_empty(), "the name alone decides");
    for spoilt in [Spoilt::Actor, Spoilt::Id] {
        let refused = offers::control(spoilt);
        figures.add(format!("{} offers refused with another {spoilt:?}", refused.len()));
        assert!(!refused.is_empty(), "{spoilt:?}");
    }
    let refused = offers::control(Spoilt::Nothing);
    assert!(refused.is_empty(), "{refused:?}");
}

/// Number of tasks of a large plan.
const TASKS_OF_LARGE: usize = 2_000;

/// Time limit of a refusal of such a plan by a debug build on a busy machine.
const MAX_TIME: Duration = Duration::from_mins(2);

/// Returns a plan of many tasks; `task` builds each from its number and id.
fn large(name: &str, task: impl Fn(usize, String) -> Value) -> Value {
    let tasks: Vec<_> = (0..TASKS_OF_LARGE).map(|number| task(number, format!("task-{number:04}"))).collect();
    json!({"name": name, "tasks": tasks})
}

/// The kind of fault that the library finds only when a call starts.
const ARGUMENTS: &str = "arguments that do not fit";

/// Returns plans with one fault in every task, by the kind of fault. The first is a conflict with tasks that ran.
fn faulty_plans() -> Vec<(&'static str, Value)> {
    let log = |message: &str| json!({"log": {"message": message}});
    vec![
        ("changed work that ran", large("ran", |_, id| json!({"id": id, "call": log("after")}))),
        ("one unknown field", large("field", |_, id| json!({"id": id, "titel": "x", "call": log("a")}))),
        (
            "unknown fields",
            large("fields", |number, id| {
                let mut task = json!({"id": id, "call": log("a")});
                task[format!("{}-{number}", "field".repeat(40))] = json!(1);
                task
            }),
        ),
        ("unknown needs", large("needs", |number, id| json!({"id": id, "needs": [format!("no-{number}")]}))),
        (
            "a cycle",
            large("cycle", |number, id| {
                let on = format!("task-{:04}", (number + 1) % TASKS_OF_LARGE);
                json!({"id": id, "needs": [on]})
            }),
        ),
        (ARGUMENTS, large("arguments", |number, id| json!({"id": id, "call": {"log": {"message": number}}}))),
        (
            "unknown parameters",
            large(
                "params",
                |number, id| json!({"id": id, "call": log(&format!("${{{{ params.p{number} }}}}"))}),
            ),
        ),
        (
            "no dependency",
            large("references", |number, id| {
                let other = format!("task-{:04}", (number + 1) % TASKS_OF_LARGE);
                json!({"id": id, "call": log(&format!("${{{{ tasks['{other}'].result }}}}"))})
            }),
        ),
        ("one id", large("ids", |_, _| json!({"id": "task", "call": log("a")}))),
        (
            "wrong values",
            large(
                "values",
                |number, id| json!({"id": id, "priority": "x".repeat(number + 1), "call": log("a")}),
            ),
        ),
    ]
}

#[test]
fn errors_about_a_large_plan_stay_short() {
    let mut figures = Figures::of("errors_about_a_large_plan_stay_short", 0);
    let home = Home::new();
    let log = json!({"log": {"message": "before"}});
    home.apply(&large("ran", |_, id| json!({"id": id, "call": log})).to_string());
    home.run(&["run-all-ready", "--quiet"]).ok();
    let mut client = crate::support::McpClient::start(home.program(&["mcp"]));
    let library = taskpawl::Taskpawl::open(home.store()).unwrap();
    let mut longest = BTreeMap::new();
    for (kind, plan) in faulty_plans() {
        let name = plan["name"].as_str().unwrap().to_owned();
        home.file(&format!("{name}.json"), &plan.to_string());
        let run = home.run(&["apply", &format!("{name}.json")]);
        assert!(matches!(run.code, Some(6 | 7)), "{kind}: {run:?}");
        let run_as_json = home.run(&["apply", &format!("{name}.json"), "--json"]);
        let error = serde_json::from_str::<Value>(&run_as_json.stdout).unwrap()["error"].take();
        let begin = Instant::now();
        let answer = client.call("plan_write", &json!({"plan": plan}));
        assert_eq!(answer["isError"], true, "{kind}");
        // Less than a search of the store for each task takes.
        assert!(begin.elapsed() < MAX_TIME, "{kind}: {:?}", begin.elapsed());
        // The library checks arguments only when a call starts, because tools may be registered until then.
        let refused =
            (kind != ARGUMENTS).then(|| library.blocking().apply_text(&plan.to_string(), &name).unwrap_err());
        for (way, text) in [
            ("the command line", run.stderr),
            ("a message in JSON", error["message"].as_str().unwrap_or_default().to_owned()),
            ("a hint in JSON", error["hint"].as_str().unwrap_or_default().to_owned()),
            ("MCP", answer["structuredContent"]["error"].to_string()),
            ("the library", refused.map(|error| error.to_string()).unwrap_or_default()),
        ] {
            let most = longest.entry(way).or_insert(0);
            *most = text.len().max(*most);
            let start = &text[..text.floor_char_boundary(400)];
            assert!(text.len() <= MAX_BYTES, "{way}, {kind}: {} bytes: {start}…", text.len());
        }
        if kind == "changed work that ran" {
            let problems = error["problems"].as_array().map_or(0, Vec::len);
            assert_eq!(problems, TASKS_OF_LARGE, "all conflicts are in JSON");
        }
    }
    figures.add(format!(
        "{} kinds of faults in {TASKS_OF_LARGE} tasks: {longest:?} bytes",
        faulty_plans().len()
    ));
}
