//! Names that look like the syntax of a format: they stay the same text through any number of exports and imports.

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::json;
use taskpawl_formats::{Files, Format, write};
use taskpawl_model::task::Task;

use crate::support::{over, reading, sample, writable};

/// Words with a meaning in some format.
const WORDS: &[&str] = &[
    "T001",
    "T123:",
    "**T007**",
    "[P]",
    "[US1]",
    "[ ]",
    "[x]",
    "[x]*",
    "*",
    "-",
    "1.",
    "1.2",
    "#",
    "##",
    "\\",
    "\\T001",
    "\\[P]",
    "\\\\+a",
    "\\due:2026-01-01",
    "x",
    "(A)",
    "2026-01-01",
    "due:2026-01-01",
    "due:soon",
    "pri:A",
    "pri:1",
    "+project",
    "@home",
    "@",
    "+",
    "taskpawl:id=a",
    "taskpawl:status=done",
    "<!--",
    "-->",
    "<!-- taskpawl id=a -->",
    "<!-- taskpawl status=done -->",
    "```",
    "---",
    "'",
    "\"",
    ": a",
    "{{ x }}",
    "null",
    "~",
    "🚀",
    "end",
];

fn name() -> impl Strategy<Value = String> {
    vec(prop::sample::select(WORDS), 1..5).prop_map(|words| words.join(" "))
}

fn tasks(names: &[String]) -> Vec<Task> {
    let one = |(number, name): (usize, &String)| {
        let at = "2026-01-01T00:00:00Z";
        let task = json!({
            "id": format!("t{number}-x"), "name": name, "description": "", "status": "todo", "priority": "medium",
            "dependencies": [], "createdAt": at, "updatedAt": at, "metadata": {},
        });
        serde_json::from_value(task).unwrap()
    };
    names.iter().enumerate().map(one).collect()
}

fn names(tasks: &[Task]) -> Vec<(&str, &str)> {
    tasks.iter().map(|task| (task.id.as_str(), task.name.as_str())).collect()
}

/// Returns the files after an export of tasks over them.
fn exported(format: Format, tasks: &[Task], before: &Files) -> Files {
    over(before, &write(format, tasks, Some(before)).files)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn names_of_new_tasks_stay(list in vec(name(), 1..6)) {
        let tasks = tasks(&list);
        for format in writable() {
            let first = write(format, &tasks, None).files;
            let read = reading(format, &first);
            prop_assert_eq!(names(&read.tasks), names(&tasks), "{}: {:?}", format.name(), first);
            prop_assert!(read.tasks.iter().all(|task| task.status.as_str() == "todo" && task.options.is_empty()), "{}: {:?}", format.name(), first);
            let second = exported(format, &read.tasks, &first);
            prop_assert_eq!(&second, &first, "{}", format.name());
            // A new file with the tasks that were read has the same tasks as well.
            let third = write(format, &read.tasks, None).files;
            let read = reading(format, &third);
            prop_assert_eq!(names(&read.tasks), names(&tasks), "{}: {:?}", format.name(), third);
        }
    }

    #[test]
    fn names_of_existing_tasks_stay(list in vec(name(), 3)) {
        for format in writable() {
            let before = sample(format);
            let mut tasks = reading(format, &before).tasks;
            for (task, name) in tasks.iter_mut().zip(&list) {
                task.name.clone_from(name);
            }
            let written = exported(format, &tasks, &before);
            let read = reading(format, &written);
            // Without ids, an item is known by its name: here the order tells.
            let mut now: Vec<&str> = read.tasks.iter().map(|task| task.name.as_str()).collect();
            let mut wanted: Vec<&str> = tasks.iter().map(|task| task.name.as_str()).collect();
            now.sort_unstable();
            wanted.sort_unstable();
            prop_assert_eq!(now, wanted, "{}: {:?}", format.name(), written);
        }
    }
}
