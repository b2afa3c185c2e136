//! Definitions of tasks before a command and now.

use std::collections::BTreeMap;

use serde_json::Value;
use taskpawl_manager::ApplyOptions;
use taskpawl_model::insight::definition_changes;

use crate::support::Fixture;

const FIRST: &str = "
tasks:
- {id: shorter, calls: [{log: {message: a}}, {log: {message: b}}, {log: {message: c}}]}
- {id: longer, calls: [{log: {message: a}}]}
- {id: other, call: {log: {message: a}}}
- {id: needed}
- {id: needs, needs: [needed], description: old}
- {id: parent, subtasks: [{id: child}]}
- {id: same, run: 'true'}
";

const SECOND: &str = "
tasks:
- {id: shorter, calls: [{log: {message: b}}]}
- {id: longer, calls: [{log: {message: x}}, {log: {message: a}}, {log: {message: c}}]}
- {id: other, call: {sleep: {duration: 1s}}, retry: 3}
- {id: needed}
- {id: needs, needs: [other], description: new}
- {id: parent}
- {id: child}
- {id: new, needs: [child]}
- {id: same, run: 'true'}
";

type Definitions = BTreeMap<String, Option<Value>>;

/// Returns the definitions that differ, before the command of a revision and now.
fn changes(fixture: &Fixture, revision: u64) -> (Definitions, Definitions) {
    let read = fixture.manager.read(|view| Ok(definition_changes(view, revision)?));
    let found = read.unwrap().expect("the command has undo data");
    let both = found.into_iter().map(|task| (task.id.to_string(), task.before, task.now));
    both.map(|(id, before, now)| ((id.clone(), before), (id, now))).unzip()
}

fn apply(fixture: &Fixture, plan: &str) -> u64 {
    fixture.try_apply(plan, ApplyOptions::default()).unwrap();
    fixture.revision()
}

#[test]
fn definitions_before_a_command_are_those_after_the_one_before_it() {
    let fixture = Fixture::new();
    let first = apply(&fixture, FIRST);
    let (none, after_first) = changes(&fixture, first);
    assert!(none.values().all(Option::is_none), "the first command created all: {none:?}");
    let second = apply(&fixture, SECOND);
    let (before, now) = changes(&fixture, second);
    for (id, before) in &before {
        assert_eq!(before, after_first.get(id).unwrap_or(&None), "{id}");
    }
    let ids: Vec<&str> = before.keys().map(String::as_str).collect();
    assert_eq!(ids, ["child", "longer", "needs", "new", "other", "shorter"]);
    assert_eq!(now["longer"].as_ref().unwrap()["toolCalls"].as_array().unwrap().len(), 3);
    // Later commands do not change what was before, and count for what is now.
    fixture.accept(fixture.manager.cancel(&["other".to_owned()], None));
    apply(&fixture, &SECOND.replace("description: new", "description: newest"));
    let (again, now) = changes(&fixture, second);
    assert_eq!(again, before);
    assert_eq!(now["needs"].as_ref().unwrap()["description"], "newest");
    let new = now["new"].clone();
    fixture.accept(fixture.manager.delete(&["new".to_owned()]));
    let (before, now) = changes(&fixture, fixture.revision());
    assert_eq!((&before["new"], &now["new"]), (&new, &None));
}

#[test]
fn a_revision_without_undo_data_has_no_changes() {
    let fixture = Fixture::with(&["a"]);
    let read = |revision| fixture.manager.read(|view| Ok(definition_changes(view, revision)?)).unwrap();
    assert_eq!(read(9_999), None);
    fixture.pass(1);
    fixture.done("a");
    assert_eq!(read(fixture.revision()), Some(Vec::new()), "a status is no definition");
}
