//! Plans of the largest sizes that people and programs write.

use std::fmt::Write as _;

use super::{errors, plan};

#[test]
fn a_hundred_thousand_tasks() {
    let mut text = String::from("tasks:\n");
    for i in 0..100_000 {
        writeln!(text, "- {{id: t{i}, run: 'true', needs: [t{}]}}", if i == 0 { 99_999 } else { 0 }).unwrap();
    }
    let report = errors(&text);
    assert!(report.contains("tasks wait for each other: `t0 → t99999 → t0`"), "{report}");
    let plan = plan(&text.replacen("t99999", "outside", 1));
    assert_eq!(plan.tasks.len(), 100_000);
    assert_eq!(plan.tasks[99_999].needs, [0]);
}

#[test]
fn a_join_of_a_hundred_thousand_dependencies() {
    let ids: Vec<String> = (0..100_000).map(|i| format!("\"t{i}\"")).collect();
    let tasks: Vec<String> = ids.iter().map(|id| format!("{{\"id\": {id}}}")).collect();
    let text = format!("[{}, {{\"id\": \"join\", \"needs\": [{}]}}]", tasks.join(","), ids.join(","));
    assert_eq!(plan(&text).tasks[100_000].needs.len(), 100_000);
}

#[test]
fn a_chain_of_five_thousand_dependencies() {
    let chain = |end: &str| {
        let link = |i: usize| if i == 4_999 { end.to_owned() } else { format!("t{}", i + 1) };
        (0..5_000).map(|i| format!("- {{id: t{i}, needs: [{}]}}\n", link(i))).collect::<Vec<_>>().concat()
    };
    assert_eq!(plan(&chain("outside")).tasks[0].needs, [1]);
    assert!(errors(&chain("t0")).contains("… 4996 more … → t0`"), "{}", errors(&chain("t0")));
}

#[test]
fn five_thousand_nested_subtasks() {
    let chain = |end: &str| {
        let link = |i: usize| if i == 0 { end.to_owned() } else { format!("[t{}]", i - 1) };
        (0..5_000).map(|i| format!("- {{id: t{i}, subtasks: {}}}\n", link(i))).collect::<Vec<_>>().concat()
    };
    let plan = plan(&chain("[]"));
    assert_eq!(plan.tasks[4_999].parent, Some(4_998));
    assert_eq!(plan.tasks[0].id.as_ref().map(taskpawl_model::value::TaskId::as_str), Some("t4999"));
    assert!(errors(&chain("[t4999]")).contains("tasks wait for each other"));
}

#[test]
fn objects_nest_sixty_four_deep() {
    let nested = |depth: usize| {
        let open = (1..depth).map(|i| format!("{{id: t{i}, subtasks: [")).collect::<Vec<_>>().concat();
        format!("[{open}{{id: t{depth}}}{}]", "]}".repeat(depth - 1))
    };
    assert_eq!(plan(&nested(64)).tasks.len(), 64);
    let report = errors(&nested(65));
    assert!(
        report.contains("subtasks are nested more than 64 deep\n  hint: list deeper subtasks by id"),
        "{report}"
    );
}
