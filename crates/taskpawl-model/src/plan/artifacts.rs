//! The field `artifacts`: the files that a task has to leave.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::PlanProblem;
use super::draft::Draft;
use super::node::{Entry, Node, shortened};
use super::reader::{Reader, Segment, Shape};
use super::vocabulary::ARTIFACTS;
use crate::task::asked::stem;
use crate::task::{ARTIFACTS_CALL, ARTIFACTS_TOOL, CallSpec, LOCAL_LABEL, NewCall, TaskSpec, fault};
use crate::value::Map;
use taskpawl_json::Position;

pub(super) const ARTIFACT: Shape = Shape {
    what: "an artifact",
    expected: "a path such as `plan.md`, or an object with `path`",
    fields: &["path", "name", "type"],
    required: &[("path", "`path`")],
};

impl<'n> Reader<'n> {
    /// Reads the artifacts of a task into the call that records them.
    pub(super) fn artifacts(&mut self, draft: &mut Draft<'n>, entries: &'n [Entry<'n>]) {
        let Some(entry) = entries.iter().find(|entry| entry.key == ARTIFACTS && !entry.value.is_null())
        else {
            return;
        };
        let (spec, calls) = (&draft.task.spec, &mut draft.task.calls);
        self.within(Segment::Key(ARTIFACTS), |reader| {
            if let Some((with, hint)) = against(spec) {
                reader.report_with(entry.key_at, PlanProblem::NotWith { field: ARTIFACTS, with }, hint);
            }
            if calls.is_empty() {
                let problem = PlanProblem::Missing { field: "calls", of: "a task with `artifacts`" };
                reader.report_with(entry.key_at, problem, "give it `run` or `call`, which make the files");
            }
            let id = ARTIFACTS_CALL.into();
            if calls.iter().any(|call| call.id.as_ref() == Some(&id)) {
                let problem = PlanProblem::DuplicateId { id: ARTIFACTS_CALL.to_owned(), first: entry.key_at };
                reader.report(entry.key_at, problem);
            }
            let mut names = HashMap::new();
            let files = reader.one_or_many(&entry.value, |reader, item| reader.file(item, &mut names));
            if files.is_empty() {
                return;
            }
            reader.args_site(ARTIFACTS_TOOL, &entry.value, calls.len());
            reader.tool_place(calls.len(), entry.value.at);
            let args = Map::from_iter([("files".to_owned(), Value::Array(files))]);
            let spec =
                CallSpec { tool_name: ARTIFACTS_TOOL.to_owned(), args, verify: true, ..CallSpec::default() };
            calls.push(NewCall { id: Some(id), spec: spec.into() });
        });
    }

    /// Reads one artifact into an argument of the call.
    fn file(&mut self, node: &'n Node<'n>, names: &mut HashMap<String, Position>) -> Option<Value> {
        let (mut path, mut name, mut media_type) = (None, None, None);
        if node.as_str().is_some() {
            path = self.artifact_path(node);
        } else {
            self.object(node, &ARTIFACT, |reader, key, value| match key {
                "path" => path = reader.artifact_path(value),
                "name" => name = reader.filled_text(value),
                _ => {
                    let text = reader.filled_text(value);
                    media_type = text.filter(|text| reader.checked(value, fault::check_media_type(text)));
                }
            })?;
        }
        let path = path?;
        let name = match name {
            Some(name) => name,
            None if path.contains("${{") => {
                let problem =
                    PlanProblem::Missing { field: "`name`", of: "an artifact whose path is an expression" };
                self.report_with(node.at, problem, "expressions of other tasks read it by its name");
                return None;
            }
            None => stem(&path).to_owned(),
        };
        if let Some(first) = names.insert(name.clone(), node.at) {
            self.report(node.at, PlanProblem::DuplicateId { id: shortened(&name), first });
        }
        let mut file = json!({"name": name, "path": path});
        if let Some(media_type) = media_type {
            file["type"] = media_type.into();
        }
        Some(file)
    }

    fn artifact_path(&mut self, node: &'n Node<'n>) -> Option<String> {
        let path = self.filled_text(node)?;
        self.checked(node, fault::check_artifact_path(&path)).then_some(path)
    }
}

/// Returns what stands against artifacts of a task, and a hint.
fn against(spec: &TaskSpec) -> Option<(&'static str, &'static str)> {
    if spec.cache.is_some() {
        return Some((
            "cache",
            "leave out `cache`: a cached result has no files in the directory of the run",
        ));
    }
    let is_local = spec.runs_on.is_empty() || spec.runs_on.iter().any(|label| label == LOCAL_LABEL);
    (!is_local).then_some(("runsOn", "leave out `runsOn`: the directory is on the machine of the store"))
}
