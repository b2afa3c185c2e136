//! A tool cannot write outside of its project, reach the network, read secrets, signal other processes, or change the store or the
//! policy. A hundred bypass cases are tried, as the superuser and as an ordinary user.

mod worker;
mod world;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use integration_tests::escape::{Control, Promise, Way, ways};
use integration_tests::faults::VARIABLE;
use serde_json::{Value, json};
use taskpawl::Manager;
use taskpawl::store::{Location, open};

use self::worker::Engine;
use self::world::{Around, NOBODY};
use crate::support::{Figures, Run, skip};

#[test]
fn default_sandbox() {
    holds("default_sandbox", "", None);
}

#[test]
fn level_b_namespaces_without_rights() {
    holds("level_b", "NoMounts", Some("B"));
}

#[test]
fn level_c_no_namespaces() {
    holds("level_c", "NoNamespaces", Some("C"));
}

#[test]
fn level_d_landlock_without_the_network() {
    holds("level_d", "NoNamespaces,OldLandlock", Some("D"));
}

/// Tries all cases with parts of the system switched off, and checks that results and `doctor` name the level.
fn holds(name: &'static str, faults: &str, level: Option<&str>) {
    for user in users() {
        let mut figures = Figures::of(name, 0);
        let around = Around::new(user);
        let before = around.untouchable();
        let Some(found) = attempts_without(&around, faults, &[]) else {
            assert_eq!(level, None, "{faults} keeps programs from starting");
            return;
        };
        if let Some(level) = level {
            assert_eq!(found.levels, [level.to_owned()].into(), "the level of each result");
            let doctor = Run::of(around.program(&["doctor"]).env(VARIABLE, faults));
            assert!(doctor.stdout.contains(&format!("a sandbox of level {level}:")), "{doctor:#?}");
        }
        check(&found, &around, &before);
        figures.add(format!("{}: {} ways tried, {}", name_of(user), found.said.len(), found.summary()));
    }
}

/// Checks that the sandbox held what is promised, with the parts that this machine has.
fn check(found: &Found, around: &Around, before: &[(PathBuf, Vec<u8>)]) {
    let (has_mounts, has_processes) = (found.has_mounts, found.has_processes);
    let is_held = |way: &Way| match way.promise {
        Promise::Held => true,
        Promise::HeldByMounts => has_mounts,
        Promise::HeldByProcesses => has_processes,
        Promise::HeldBySignalRules => has_processes || found.has_signal_rules,
        Promise::SeenByHarness | Promise::Open => false,
    };
    assert_eq!(found.out_of(is_held), Vec::<&str>::new(), "they got out: {}", found.listing());
    // Documented gaps really are open; otherwise the documentation would be wrong.
    let is_open = |way: &Way| way.promise == Promise::Open;
    assert_eq!(found.held_of(is_open), Vec::<&str>::new(), "they are said to be open: {}", found.listing());
    assert_eq!(around.heard(), 0, "a listener outside has received a message");
    assert!(!around.has_shared_memory(), "it was written into the memory that all share");
    if has_mounts {
        assert_eq!(around.untouchable(), before);
    }
}

/// The sandbox of a worker holds what that of a run at home holds; without it the cases succeed on a worker, too.
#[test]
#[ignore = "needs a Restate server: scripts/test-restate has one"]
fn on_a_worker() {
    let engine = Engine::from_environment();
    for user in users() {
        let mut figures = Figures::of("on_a_worker", 0);
        let around = Around::new(user);
        let pool = format!("escape-{}", user.unwrap_or_default());
        let worker = engine.start(&around, &pool);
        let before = around.untouchable();
        let found = attempts(&around, &engine.flags(&pool)).expect("the worker has a sandbox");
        check(&found, &around, &before);
        figures.add(format!("{}: {} ways tried, {}", name_of(user), found.said.len(), found.summary()));
        drop(worker);

        let around = Around::new(user);
        around.set_sandbox_off();
        let pool = format!("{pool}-off");
        let _worker = engine.start(&around, &pool);
        let found = attempts(&around, &engine.flags(&pool)).expect("it needs nothing");
        let is_open = |way: &Way| way.control == Control::Everybody;
        assert_eq!(found.held_of(is_open), Vec::<&str>::new(), "{}", found.listing());
        figures.add(format!("the control, {}: {}", name_of(user), found.summary()));
    }
}

#[test]
fn strict_sandbox() {
    for user in users() {
        let mut figures = Figures::of("strict_sandbox", 0);
        let around = Around::new(user);
        let before = around.untouchable();
        let Some(found) = attempts(&around, &["--sandbox=strict"]) else { return };
        let is_held = |way: &Way| {
            matches!(
                way.promise,
                Promise::Held | Promise::HeldByMounts | Promise::HeldByProcesses | Promise::HeldBySignalRules
            )
        };
        assert_eq!(found.out_of(is_held), Vec::<&str>::new(), "{}", found.listing());
        assert_eq!(around.heard(), 0, "a listener outside has received a message");
        assert!(!around.has_shared_memory(), "it was written into the memory that all share");
        assert_eq!(around.untouchable(), before);
        figures.add(format!("{}: {} ways tried, {}", name_of(user), found.said.len(), found.summary()));
    }
}

/// The control: without the sandbox the same cases succeed.
#[test]
fn without_sandbox() {
    for user in users() {
        let mut figures = Figures::of("without_sandbox", 0);
        let around = Around::new(user);
        let found = attempts(&around, &["--sandbox=off"]).expect("it needs nothing");
        let is_superuser = user.is_none() && rustix::process::geteuid().is_root();
        let is_open = |way: &Way| match way.control {
            Control::Everybody => true,
            Control::Superuser => is_superuser,
            Control::Depends => false,
        };
        assert_eq!(found.held_of(is_open), Vec::<&str>::new(), "{}", found.listing());
        assert!(around.has_shared_memory(), "the control");
        assert!(around.heard() >= 4, "only {} messages were heard", around.heard());
        figures.add(format!(
            "the control, {}: {} ways tried, {}",
            name_of(user),
            found.said.len(),
            found.summary()
        ));
    }
}

/// Chooses ways out.
type Which = fn(&Way) -> bool;

/// The controls of the broker of connections: without it, and if its decision were followed by the program's own call, these cases succeed.
#[test]
fn without_the_broker_late_sockets_are_reached() {
    let late = |way: &Way| way.name.starts_with("late-socket");
    let raced = |way: &Way| way.name.starts_with("late-socket-") && way.name.ends_with("-race");
    let controls: [(&str, Which); 2] = [("NoConnectBroker", late), ("CheckedConnect", raced)];
    for (user, (faults, which)) in users().into_iter().flat_map(|user| controls.map(|of| (user, of))) {
        let around = Around::new(user);
        let tried: Vec<Way> = ways().into_iter().filter(which).collect();
        let Some(found) = attempts_of(&tried, &around, faults, &[]) else { return };
        if !found.has_mounts {
            return skip("mount namespaces", "sandbox_bypass", "programs have no unix sockets");
        }
        assert_eq!(
            found.said.values().filter(|(code, _)| *code == 0).count(),
            tried.len(),
            "{}",
            found.listing()
        );
    }
}

/// Returns the user of the harness, and for the superuser also a user without rights.
fn users() -> Vec<Option<u32>> {
    if let Err(error) = world::probe() {
        skip("sandbox", "sandbox_bypass", error);
        return Vec::new();
    }
    if rustix::process::geteuid().is_root() { vec![None, Some(NOBODY)] } else { vec![None] }
}

fn name_of(user: Option<u32>) -> String {
    match user {
        Some(user) => format!("as user {user}"),
        None => format!("as user {}", rustix::process::geteuid().as_raw()),
    }
}

/// The outcomes of the attempts.
struct Found {
    /// Exit code and last line of output, by the name of the case.
    said: BTreeMap<&'static str, (i64, String)>,
    has_mounts: bool,
    has_processes: bool,
    has_signal_rules: bool,
    /// The levels that the results name, if it is not the best.
    levels: BTreeSet<String>,
}

impl Found {
    fn out_of(&self, which: impl Fn(&Way) -> bool) -> Vec<&'static str> {
        self.with_code(0, which)
    }

    fn held_of(&self, which: impl Fn(&Way) -> bool) -> Vec<&'static str> {
        self.with_code(1, which)
    }

    fn with_code(&self, code: i64, which: impl Fn(&Way) -> bool) -> Vec<&'static str> {
        let ways = ways().into_iter().filter(which);
        ways.map(|way| way.name).filter(|name| self.said[name].0 == code).collect()
    }

    fn listing(&self) -> String {
        let lines: Vec<_> = self.said.values().map(|(code, words)| format!("{code} {words}")).collect();
        lines.join("\n")
    }

    fn summary(&self) -> String {
        let count = |code| self.said.values().filter(|(found, _)| *found == code).count();
        format!("{} held, {} out, {} not there on this machine", count(1), count(0), count(2))
    }
}

fn attempts(around: &Around, flags: &[&str]) -> Option<Found> {
    attempts_without(around, "", flags)
}

/// Tries every case. `faults` switch parts of the sandbox off.
fn attempts_without(around: &Around, faults: &str, flags: &[&str]) -> Option<Found> {
    attempts_of(&ways(), around, faults, flags)
}

/// Tries cases in one run, each as a call of a tool.
fn attempts_of(ways: &[Way], around: &Around, faults: &str, flags: &[&str]) -> Option<Found> {
    let program = around.world.project.join("escape");
    let task = |way: &Way| {
        let args = json!({"argv": [&program, "world.json", way.name], "okExitCodes": [0, 1, 2]});
        json!({"id": way.name, "name": way.name, "call": {"exec": args}})
    };
    let tasks: Vec<Value> = ways.iter().map(task).collect();
    let plan = around.world.store.with_file_name("plan.json");
    std::fs::write(&plan, json!({"version": 1, "name": "escape", "tasks": tasks}).to_string()).unwrap();
    let plan = plan.to_str().unwrap();
    let args = [&["run-all-ready", "--jobs", "1", "--plan", plan][..], flags].concat();
    let run = Run::of(around.program(&args).env(VARIABLE, faults));
    assert!(run.code.is_some_and(|code| code < 2), "{run:#?}");
    let found = results(ways, around);
    if found.said.is_empty() {
        skip("sandbox", "sandbox_bypass", run.stderr);
        return None;
    }
    assert_eq!(found.said.len(), ways.len(), "{run:#?}");
    Some(found)
}

fn results(ways: &[Way], around: &Around) -> Found {
    let location = Location::parse(around.world.store.to_str().unwrap(), std::path::Path::new(""));
    let manager = Manager::new(open(&location), "harness");
    let mut found = Found {
        said: BTreeMap::new(),
        has_mounts: true,
        has_processes: true,
        has_signal_rules: true,
        levels: BTreeSet::new(),
    };
    for way in ways {
        let task = manager.get(way.name).unwrap();
        let Some(result) = task.metadata.tool_calls.first().and_then(|call| call.result.clone()) else {
            continue;
        };
        let Some(code) = result["exitCode"].as_i64() else { continue };
        let words = result["stdout"].as_str().unwrap_or_default().trim().to_owned();
        found.said.insert(way.name, (code, words));
        found.levels.extend(result["sandbox"]["isolation"].as_str().map(str::to_owned));
        let gaps = result["sandbox"]["gaps"].as_array().cloned().unwrap_or_default();
        let is_gap = |word: &str| gaps.iter().any(|gap| gap.to_string().contains(word));
        found.has_mounts &= !is_gap("mount");
        found.has_signal_rules &= !is_gap("can receive signals");
        found.has_processes &= !is_gap("end their supervisor");
    }
    found
}
