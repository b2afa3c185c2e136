//! Changes of a plan that a planner proposes.

use serde_json::{Map, Value, json};

/// A change of a plan: tasks that are added or replaced, tasks that are skipped, and failed tasks that run again.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Patch {
    /// New tasks.
    pub added: Vec<Value>,
    /// Changed tasks. Fields that they leave out keep their values.
    pub replaced: Vec<Value>,
    /// Ids of tasks that are not needed any more, each with the reason.
    pub skipped: Vec<(String, String)>,
    /// Ids of failed tasks that run again as they are, each with the reason.
    pub retried: Vec<(String, String)>,
}

impl Patch {
    /// The fields of an answer.
    pub(crate) const FIELDS: &[&str] = &["add", "replace", "retry", "skip"];

    /// Reads the answer of a planner.
    ///
    /// # Errors
    /// All its problems.
    pub fn read(answer: &Value) -> Result<Self, Vec<String>> {
        let Some(fields) = answer.as_object() else {
            return Err(vec!["expected an object with `add`, `replace`, `retry` and `skip`".to_owned()]);
        };
        let mut problems: Vec<String> = fields
            .keys()
            .filter(|name| !Self::FIELDS.contains(&name.as_str()))
            .map(|name| format!("`{name}` is not one of `add`, `replace`, `retry` and `skip`"))
            .collect();
        let added = tasks(fields, "add", &mut problems);
        let replaced = tasks(fields, "replace", &mut problems);
        let skipped = reasoned(fields, "skip", &mut problems);
        let retried = reasoned(fields, "retry", &mut problems);
        let patch = Self { added, replaced, skipped, retried };
        if problems.is_empty() && patch == Self::default() {
            problems.push("it changes nothing".to_owned());
        }
        if problems.is_empty() { Ok(patch) } else { Err(problems) }
    }

    /// Returns whether it only runs failed tasks again as they are.
    pub fn only_retries(&self) -> bool {
        self.added.is_empty() && self.replaced.is_empty() && self.skipped.is_empty()
    }

    /// Returns the ids of the changed, skipped and retried tasks.
    pub fn changed_ids(&self) -> impl Iterator<Item = &str> {
        let replaced = self.replaced.iter().filter_map(|task| task["id"].as_str());
        replaced.chain(self.skipped.iter().chain(&self.retried).map(|(id, _)| id.as_str()))
    }

    /// Returns the ids of the new tasks.
    pub fn added_ids(&self) -> impl Iterator<Item = &str> {
        self.added.iter().filter_map(|task| task["id"].as_str())
    }

    /// Returns the tasks as a part of a plan. A skipped task gets a condition that never holds, and a retried one a note, so that one
    /// change of the plan, which can be undone as a whole, does everything: a failed task that changes goes on at its failed call.
    pub fn tasks(&self) -> Vec<Value> {
        let skipped =
            self.skipped.iter().map(|(id, reason)| json!({"id": id, "when": "false", "x-skipped": reason}));
        let retried = self.retried.iter().map(|(id, reason)| json!({"id": id, "x-retried": reason}));
        self.replaced.iter().chain(&self.added).cloned().chain(skipped).chain(retried).collect()
    }
}

fn tasks(fields: &Map<String, Value>, name: &str, problems: &mut Vec<String>) -> Vec<Value> {
    let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Vec::new() };
    let Some(list) = value.as_array() else {
        problems.push(format!("`{name}`: expected a list of tasks"));
        return Vec::new();
    };
    for (index, task) in list.iter().enumerate() {
        if !task["id"].is_string() {
            problems.push(format!("{name}[{index}]: expected a task with an `id`"));
        }
    }
    list.clone()
}

fn reasoned(fields: &Map<String, Value>, name: &str, problems: &mut Vec<String>) -> Vec<(String, String)> {
    let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Vec::new() };
    let Some(list) = value.as_array() else {
        problems.push(format!("`{name}`: expected a list of {{id, reason}}"));
        return Vec::new();
    };
    let mut all = Vec::new();
    for (index, entry) in list.iter().enumerate() {
        match (entry["id"].as_str(), entry["reason"].as_str().filter(|reason| !reason.trim().is_empty())) {
            (Some(id), Some(reason)) => all.push((id.to_owned(), reason.to_owned())),
            _ => problems.push(format!("{name}[{index}]: expected {{id, reason}}")),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_patch_adds_replaces_and_skips() {
        let answer = json!({
            "add": [{"id": "install", "run": "make deps"}],
            "replace": [{"id": "build", "needs": ["install"]}],
            "skip": [{"id": "lint", "reason": "there is no linter"}],
        });
        let patch = Patch::read(&answer).unwrap();
        assert_eq!(patch.changed_ids().collect::<Vec<_>>(), ["build", "lint"]);
        assert_eq!(patch.added_ids().collect::<Vec<_>>(), ["install"]);
        assert_eq!(
            patch.tasks()[2],
            json!({"id": "lint", "when": "false", "x-skipped": "there is no linter"})
        );
    }

    #[test]
    fn all_problems_of_a_patch_are_told() {
        for (answer, count) in [
            (json!([]), 1),
            (json!({}), 1),
            (json!({"add": [], "skip": null}), 1),
            (
                json!({"remove": ["a"], "add": {"id": "a"}, "replace": [{"name": "a"}], "skip": [{"id": "a"}]}),
                4,
            ),
            (json!({"skip": [{"id": "a", "reason": " "}]}), 1),
        ] {
            assert_eq!(Patch::read(&answer).unwrap_err().len(), count, "{answer}");
        }
    }
}
