//! Cycles are refused before they are created, and the error names their path.

use serde_json::json;

use crate::support::{Fixture, fields};

#[test]
fn cycles_over_dependencies_are_named() {
    let fixture = Fixture::with(&["a", "b needs=a", "c needs=b"]);
    insta::assert_snapshot!(fixture.refuse(|m| m.add_dependency("a", "a")), @"
    this would close a cycle: `a` → `a`
      hint: a task cannot wait for itself, directly or through others
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.add_dependency("a", "b")), @"
    this would close a cycle: `a` → `b` → `a`
      hint: a task cannot wait for itself, directly or through others
    ");
    insta::assert_snapshot!(fixture.refuse(|m| m.add_dependency("a", "c")), @"
    this would close a cycle: `a` → `b` → `c` → `a`
      hint: a task cannot wait for itself, directly or through others
    ");
    let all = fields(json!({"name": "other", "dependencies": ["c"]}));
    insta::assert_snapshot!(fixture.refuse(|m| m.update("a", all, None)), @"
    this would close a cycle: `a` → `b` → `c` → `a`
      hint: a task cannot wait for itself, directly or through others
    ");
}

fn first_line(text: &str) -> &str {
    text.lines().next().unwrap().trim_start_matches("this would close a cycle: ")
}

#[test]
fn cycles_over_parents_and_subtasks_are_named() {
    let fixture = Fixture::with(&["p", "s in=p", "deep in=s", "x", "y needs=p", "z needs=x", "q", "t in=q"]);
    let depend = |id: &str, on: &str| first_line(&fixture.refuse(|m| m.add_dependency(id, on))).to_owned();
    assert_eq!(depend("s", "p"), "`s` → `p` → `s`", "a subtask cannot wait for its parent");
    assert_eq!(depend("deep", "p"), "`deep` → `s` → `p` → `deep`");
    assert_eq!(depend("p", "s"), "`p` → `s` → `p`", "nor can the parent wait for its subtask");
    assert_eq!(depend("p", "deep"), "`p` → `s` → `deep` → `p`");
    assert_eq!(depend("s", "y"), "`s` → `p` → `y` → `s`", "nor through a third task");
    assert_eq!(depend("deep", "y"), "`deep` → `s` → `p` → `y` → `deep`");
    let put =
        |id: &str, under: &str| first_line(&fixture.refuse(|m| m.move_task(id, Some(under)))).to_owned();
    assert_eq!(put("p", "p"), "`p` → `p`");
    assert_eq!(put("p", "deep"), "`p` → `s` → `deep` → `p`");
    assert_eq!(put("y", "p"), "`p` → `y` → `p`", "the parent would end before its subtask begins");
    assert_eq!(put("y", "s"), "`s` → `p` → `y` → `s`");
    assert_eq!(put("x", "z"), "`x` → `z` → `x`");
    let new = fixture.try_create("new in=p needs=y").unwrap_err().to_string();
    assert_eq!(first_line(&new), "`new` → `p` → `y` → `new`");
    let new = fixture.try_create("new in=p needs=p").unwrap_err().to_string();
    assert_eq!(first_line(&new), "`new` → `p` → `new`");
}

#[test]
fn acyclic_graphs_that_resemble_cycles_are_allowed() {
    let fixture = Fixture::with(&["p", "s in=p", "s2 in=p", "q", "t in=q"]);
    fixture.accept(fixture.manager.add_dependency("s2", "s"));
    fixture.accept(fixture.manager.add_dependency("t", "s"));
    fixture.accept(fixture.manager.add_dependency("s2", "t"));
    let refused = fixture.refuse(|m| m.add_dependency("q", "p"));
    assert_eq!(first_line(&refused), "`q` → `t` → `s2` → `p` → `q`");
}

#[test]
fn the_old_parent_of_a_moved_task_is_not_part_of_a_cycle() {
    let fixture = Fixture::with(&["new", "mid needs=new", "old needs=mid", "x in=old"]);
    fixture.accept(fixture.manager.move_task("x", Some("new")));
}
