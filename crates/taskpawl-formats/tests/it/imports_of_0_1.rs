//! Tasks that version 0.1 imported, which stored no records: an import of their file finds them again, moved or not.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use taskpawl_formats::{Files, Format, Known, Options, read};
use taskpawl_model::command::BoundRecord;

use crate::support::{ids, options};

/// A file with one record named `A`.
struct File {
    format: Format,
    name: &'static str,
    text: &'static str,
    /// The id of the record, which 0.1 preserved in `id_field` if its task got another one.
    record: &'static str,
    id_field: Option<&'static str>,
    /// The id of the task, without a prefix.
    task: &'static str,
    /// The other preserved fields by which a record is found.
    preserved: Value,
    has_dependencies: bool,
}

impl File {
    fn new(format: Format, name: &'static str, text: &'static str, record: &'static str) -> Self {
        let (id_field, preserved) = (Some("id"), json!({}));
        Self { format, name, text, record, id_field, task: record, preserved, has_dependencies: true }
    }

    /// Returns the task as 0.1 stored it.
    fn bound(&self, prefix: Option<&str>) -> BoundRecord {
        let task = prefix.map_or_else(|| self.task.to_owned(), |prefix| format!("{prefix}.{}", self.task));
        let mut preserved = self.preserved.clone();
        if let Some(field) = self.id_field.filter(|_| task != self.record) {
            preserved[field] = self.record.into();
        }
        let mut values = BTreeMap::from([
            ("name".to_owned(), json!("A")),
            ("status".to_owned(), json!("todo")),
            (format!("metadata.{}", self.format.name()), preserved),
        ]);
        if self.has_dependencies {
            values.insert("dependencies".to_owned(), json!([]));
        }
        let suffix = prefix.map(|prefix| format!(" as {prefix}")).unwrap_or_default();
        let source = format!("{} {}{suffix}", self.format.name(), self.name);
        BoundRecord { task: task.as_str().into(), source, record: None, values }
    }
}

fn files() -> Vec<File> {
    use Format::{Backlog, Beads, Claude, Markdown, Taskmaster, Tasks, Taskwarrior};
    let of_content = |file: File| File { has_dependencies: false, task: "a", ..file };
    vec![
        File::new(Backlog, "tasks/task-1.md", "---\nid: TASK-1\ntitle: A\n---\n", "TASK-1"),
        File::new(Backlog, "tasks/task-1.md", "---\nid: task-1\ntitle: A\n---\n", "task-1"),
        File::new(Beads, "issues.jsonl", r#"{"id":"bd-1","title":"A"}"#, "bd-1"),
        File::new(Claude, "1.json", r#"{"id":"1","subject":"A","status":"pending"}"#, "1"),
        of_content(File::new(Claude, "todos.json", r#"[{"content":"A","status":"pending"}]"#, "a")),
        of_content(File {
            preserved: json!({ "section": "Parser" }),
            ..File::new(Markdown, "TODO.md", "# Parser\n\n- [ ] A\n", "a")
        }),
        File::new(Taskmaster, "tasks.json", r#"{"tasks":[{"id":1,"title":"A"}]}"#, "1"),
        File {
            task: "side.1",
            preserved: json!({ "tag": "side" }),
            ..File::new(Taskmaster, "tasks.json", r#"{"side":{"tasks":[{"id":1,"title":"A"}]}}"#, "1")
        },
        File { id_field: None, ..File::new(Tasks, "tasks.json", r#"[{"id":"a","name":"A"}]"#, "a") },
        File {
            id_field: Some("uuid"),
            ..File::new(Taskwarrior, "export.json", r#"[{"uuid":"u-1","description":"A"}]"#, "u-1")
        },
    ]
}

#[test]
fn an_import_finds_the_tasks_of_version_0_1() {
    for file in files() {
        for prefix in [None, Some("p")] {
            let bound = file.bound(prefix);
            for is_moved in [false, true] {
                let name = if is_moved { "elsewhere" } else { file.name };
                let source = format!("{} {name}", file.format.name());
                let known = Known::of(file.format, &source, std::slice::from_ref(&bound), |_| is_moved);
                let options = Options { known, ..options() };
                let reading = read(file.format, &Files::single(file.name, file.text), &options).unwrap();
                let case = format!("{} {} {prefix:?}, moved: {is_moved}", file.format.name(), file.text);
                assert_eq!(ids(&reading.tasks), [bound.task.as_str()], "{case}");
                assert_eq!((&*reading.is_known, &*reading.ambiguous), (&[true][..], &[][..]), "{case}");
                assert_eq!(reading.from, [is_moved.then(|| bound.source.clone())], "{case}");
            }
        }
    }
}

#[test]
fn ids_that_version_0_1_had_to_change_stay() {
    let text = r#"[{"id":"a b","name":"A"},{"id":"a:b","name":"B"}]"#;
    let files = Files::single("tasks.json", text);
    let first = read(Format::Tasks, &files, &options()).unwrap();
    let bound = first.tasks.iter().map(|task| BoundRecord {
        task: task.id.clone(),
        source: "tasks tasks.json".to_owned(),
        record: None,
        values: BTreeMap::from([("name".to_owned(), json!(task.name))]),
    });
    let known = Known::of(Format::Tasks, "tasks tasks.json", &bound.collect::<Vec<_>>(), |_| false);
    let second = read(Format::Tasks, &files, &Options { known, ..options() }).unwrap();
    assert_eq!(ids(&second.tasks), ids(&first.tasks));
}
