//! Items of a file that changed since its last import: each is still the task that it was.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use serde_json::json;
use taskpawl_formats::{Files, Format, Known, Options, Reading, read};
use taskpawl_model::command::BoundRecord;

use crate::support::{ids, options};

/// Imports a text after others, as the store remembers them.
fn imported(format: Format, before: Option<&Reading>, text: &str) -> Reading {
    let source = format!("{} tasks.md", format.name());
    let bound = |reading: &Reading| -> Vec<BoundRecord> {
        let records = reading.tasks.iter().zip(&reading.records);
        let one = records.map(|(task, record)| BoundRecord {
            task: task.id.clone(),
            source: source.clone(),
            record: Some(record.clone()),
            values: BTreeMap::from([("name".to_owned(), json!(task.name))]),
        });
        one.collect()
    };
    let bound = before.map(bound).unwrap_or_default();
    let known = Known::of(format, &source, &bound, |_| false);
    read(format, &Files::single("tasks.md", text), &Options { known, ..options() }).unwrap()
}

/// Returns the tasks of a text after an import of another one, each with its name.
fn tasks_after(format: Format, before: &str, now: &str) -> Vec<(String, String)> {
    let first = imported(format, None, before);
    let second = imported(format, Some(&first), now);
    second.tasks.iter().map(|task| (task.id.to_string(), task.name.clone())).collect()
}

fn pairs(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs.iter().map(|(id, name)| (id.as_str(), name.as_str())).collect()
}

#[test]
fn ids_of_spec_kit_that_were_assigned_again_follow_their_texts() {
    let before = "- [x] T001 Create project\n- [x] T002 Configure linting\n- [ ] T003 Write the model\n";
    let now = "- [ ] T001 Create project\n- [ ] T002 Add a pipeline\n- [ ] T003 Configure linting\n- [ ] T004 [P] Write the model\n";
    let tasks = tasks_after(Format::SpecKit, before, now);
    assert_eq!(
        [&tasks[0], &tasks[2], &tasks[3]].map(|(id, name)| (id.as_str(), name.as_str())),
        [("T001", "Create project"), ("T002", "Configure linting"), ("T003", "Write the model")]
    );
    assert!(tasks[1].0.starts_with("T002-"), "{tasks:?}");
    // Another text under an id is a rename, if no other item has its text.
    let first = imported(Format::SpecKit, None, before);
    let second = imported(Format::SpecKit, Some(&first), &before.replace("linting", "the linter"));
    assert_eq!(second.tasks[1].id.as_str(), "T002");
    assert_eq!(second.renamed.len(), 1);
    assert_eq!(
        (&*second.renamed[0].from, &*second.renamed[0].to),
        ("Configure linting", "Configure the linter")
    );
}

#[test]
fn an_item_of_spec_kit_may_get_or_lose_its_id() {
    let (with, without) = ("- [ ] T001 A\n- [ ] T002 B\n", "- [ ] A\n- [ ] B\n");
    assert_eq!(pairs(&tasks_after(Format::SpecKit, without, with)), [("a", "A"), ("b", "B")]);
    assert_eq!(pairs(&tasks_after(Format::SpecKit, with, without)), [("T001", "A"), ("T002", "B")]);
}

#[test]
fn a_repeated_id_is_the_same_task_at_each_import() {
    let text = "- [ ] T001 A\n- [ ] T001 B\n- [ ] T001 B\n- [ ] T002 C\n";
    let mut last = imported(Format::SpecKit, None, text);
    for _ in 0..3 {
        let next = imported(Format::SpecKit, Some(&last), text);
        assert_eq!(ids(&next.tasks), ids(&last.tasks));
        last = next;
    }
}

#[test]
fn underlined_headings_tell_equal_texts_apart() {
    let section = |title: &str, line: &str| format!("{title}\n{line}\n\n- [ ] Write tests\n\n");
    let before = section("Parser", "======") + &section("Printer", "-------");
    let now = section("Lexer", "=====") + &before;
    let tasks = tasks_after(Format::Markdown, &before, &now);
    let ids: Vec<&str> = tasks.iter().map(|(id, _)| id.as_str()).collect();
    assert_eq!(ids, ["write-tests-3", "write-tests", "write-tests-2"]);
    // A rule, the end of front matter and a line below text or an item are no headings.
    let plain = "---\ntitle: x\n---\n\n- [ ] a\n---\n\nText\nmore\n---\n- [ ] b\n";
    let read = imported(Format::Markdown, None, plain);
    assert!(read.records.iter().all(|record| record.under.is_empty()), "{:?}", read.records);
}

#[test]
fn thousands_of_repeated_ids_are_paired_in_linear_time() {
    let lines: Vec<String> = (0..8_000).map(|number| format!("- [ ] T001 Item {number}\n")).collect();
    let reversed: String = lines.iter().rev().map(String::as_str).collect();
    let first = imported(Format::SpecKit, None, &lines.concat());
    let start = Instant::now();
    let second = imported(Format::SpecKit, Some(&first), &reversed);
    let third = imported(Format::SpecKit, Some(&first), &lines.concat().replace("Item", "Other"));
    // Comparing each item with each record takes minutes.
    assert!(start.elapsed() < Duration::from_secs(20));
    let before = ids(&first.tasks);
    assert!(ids(&second.tasks).iter().rev().eq(&before));
    assert_eq!((ids(&third.tasks), third.renamed.len()), (before, 8_000));
}

#[test]
fn a_section_between_others_moves_no_item() {
    let section = |number: usize, title: &str, mark: &str| {
        format!("## {number}. {title}\n\n- [{mark}] {number}.1 Write tests\n- [ ] {number}.2 Write docs\n\n")
    };
    let before = section(1, "Setup", "x") + &section(2, "Login", " ");
    let now = section(1, "Setup", "x") + &section(2, "Between", " ") + &section(3, "Login", " ");
    for format in [Format::OpenSpec, Format::Kiro, Format::Markdown] {
        let tasks = tasks_after(format, &before, &now);
        let ids: Vec<&str> = tasks.iter().map(|(id, _)| id.as_str()).collect();
        assert_eq!([ids[0], ids[1]], ["1-1-write-tests", "1-2-write-docs"], "{}", format.name());
        assert_eq!([ids[4], ids[5]], ["2-1-write-tests", "2-2-write-docs"], "{}", format.name());
    }
}
