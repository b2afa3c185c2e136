//! Tasks that got another parent: the file says so after an export, or the export lists them.

use proptest::collection::vec;
use proptest::prelude::*;
use taskpawl_formats::{Files, Format, read_back, write};
use taskpawl_model::task::Task;

use crate::support::{options, over, reading, sample, task, writable};

const CHECKLISTS: [Format; 4] = [Format::Markdown, Format::SpecKit, Format::OpenSpec, Format::Kiro];

/// Returns the text after a task got another parent.
fn moved(format: Format, text: &str, name: &str, parent: Option<&str>) -> String {
    let before = Files::single("tasks.md", text);
    let mut tasks = reading(format, &before).tasks;
    let id_of = |tasks: &[Task], name: &str| tasks.iter().find(|task| task.name == name).unwrap().id.clone();
    let parent = parent.map(|parent| id_of(&tasks, parent));
    let id = id_of(&tasks, name);
    for task in &mut tasks {
        if task.id == id {
            task.parent.clone_from(&parent);
        }
    }
    let written = write(format, &tasks, Some(&before));
    assert_eq!(written.left_out, [], "{written:?}");
    let again = read_back(format, &written.files, &written, &options()).unwrap();
    assert_eq!(task(&again, id.as_str()).parent, parent);
    written.files.get("tasks.md").unwrap().to_owned()
}

#[test]
fn a_moved_item_takes_along_what_stands_below_it() {
    let text = "# List\n\n- [ ] a\n  - [x] b\n    Note of b.\n    - [/] c\n      ```\n      - [ ] code\n      ```\n  - [ ] d\n1. [ ] e\n\nText.\n";
    for format in CHECKLISTS {
        assert_eq!(
            moved(format, text, "b", Some("e")),
            "# List\n\n- [ ] a\n  - [ ] d\n1. [ ] e\n   - [x] b\n     Note of b.\n     - [/] c\n       ```\n       - [ ] code\n       ```\n\nText.\n",
            "{}",
            format.name()
        );
        assert_eq!(
            moved(format, text, "d", Some("c")),
            text.replace("  - [ ] d\n", "").replace("      ```\n1.", "      ```\n      - [ ] d\n1.")
        );
        let top = moved(format, text, "c", None);
        assert!(top.contains("\n2. [/] c\n   ```\n   - [ ] code\n   ```\n"), "{top}");
    }
}

#[test]
fn an_item_below_a_task_elsewhere_stays_and_is_listed() {
    let before = Files::single("tasks.md", "- [ ] a\n  - [ ] b\n");
    for format in CHECKLISTS {
        let mut tasks = reading(format, &before).tasks;
        tasks[1].parent = Some("elsewhere".into());
        let written = write(format, &tasks, Some(&before));
        assert_eq!(written.files, before);
        let listed: Vec<String> =
            written.left_out.iter().map(|left| format!("{}: {}", left.what, left.why)).collect();
        assert_eq!(listed, ["b: parent: `elsewhere` is not exported"]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_parent_is_written_or_listed(moves in vec((0_usize..30, prop::option::of(0_usize..30)), 1..4)) {
        for format in writable() {
            let before = sample(format);
            let mut tasks = reading(format, &before).tasks;
            for (place, parent) in &moves {
                let (place, parent) = (place % tasks.len(), parent.map(|parent| parent % tasks.len()));
                let parent = parent.map(|parent| tasks[parent].id.clone());
                if !is_below(&tasks, parent.as_ref(), &tasks[place]) {
                    tasks[place].parent = parent;
                }
            }
            let written = write(format, &tasks, Some(&before));
            let files = over(&before, &written.files);
            let again = read_back(format, &files, &written, &options());
            let again = again.unwrap_or_else(|error| panic!("{}: {error}", format.name()));
            prop_assert_eq!(again.tasks.len(), tasks.len());
            for task in &tasks {
                let now = crate::support::task(&again, task.id.as_str());
                let is_listed = written.left_out.iter().any(|left| left.what == format!("{}: parent", task.id));
                prop_assert_eq!(&now.name, &task.name);
                prop_assert_eq!(now.status, task.status, "{}: {:?}", format.name(), files);
                prop_assert!(now.parent == task.parent || is_listed, "{}: {}: {:?}", format.name(), task.id, files);
            }
        }
    }
}

/// Returns true if `parent` is the task or one below it.
fn is_below(tasks: &[Task], parent: Option<&taskpawl_model::value::TaskId>, task: &Task) -> bool {
    let mut at = parent;
    while let Some(id) = at {
        if *id == task.id {
            return true;
        }
        at = tasks.iter().find(|other| other.id == *id).and_then(|other| other.parent.as_ref());
    }
    false
}
