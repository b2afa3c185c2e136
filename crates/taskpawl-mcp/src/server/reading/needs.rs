//! Dependencies of the tasks of a plan, written in another way than by id or name.

use std::cell::OnceCell;
use std::collections::HashSet;

use serde_json::{Value, json};
use taskpawl::model::value::id_from_name;

use super::Reading;
use super::ids::{MAX_NAMED, Meant};
use crate::server::refusal::Refused;

/// The tasks of the plan that is being read.
#[derive(Default)]
struct Listed {
    /// All ids and names.
    exact: HashSet<String>,
    /// The id and the name of each task. The plan itself refers to a task by its id, or by its name if it has none.
    tasks: Vec<(Option<String>, String)>,
    folded: OnceCell<Folded>,
}

/// Other texts that can mean a task of the plan, in lower case.
struct Folded {
    ids: Lookup,
    names: Lookup,
    /// Ids that tasks without one get, unless they are taken.
    made_ids: Lookup,
    /// The id of each task, or its name if it has none.
    beginnings: Lookup,
}

/// Sorted texts with the positions of their tasks.
struct Lookup(Vec<(String, usize)>);

impl Reading<'_> {
    /// Reads the dependencies of all tasks of a plan. These tasks come before those of the store.
    pub(super) fn needs_of_plan(&mut self, tasks: &mut Value) -> Result<(), Refused> {
        let mut listed = Listed::default();
        listed.add_all(tasks);
        self.needs_in(tasks, &listed)
    }

    fn needs_in(&mut self, tasks: &mut Value, listed: &Listed) -> Result<(), Refused> {
        for task in tasks.as_array_mut().into_iter().flatten().filter_map(Value::as_object_mut) {
            for field in ["needs", "dependencies"] {
                match task.get_mut(field) {
                    Some(Value::Array(needs)) => {
                        needs.iter_mut().try_for_each(|need| self.need(need, listed))?;
                    }
                    Some(need) => self.need(need, listed)?,
                    None => {}
                }
            }
            if let Some(subtasks) = task.get_mut("subtasks") {
                self.needs_in(subtasks, listed)?;
            }
        }
        Ok(())
    }

    fn need(&mut self, need: &mut Value, listed: &Listed) -> Result<(), Refused> {
        let Some(given) = need.as_str() else { return Ok(()) };
        if given.is_empty() || listed.exact.contains(given) {
            return Ok(());
        }
        let stored = self.meant(given)?;
        let found = match (&stored, listed.meant(given)) {
            (Meant::Id, _) => return Ok(()),
            (_, found) if !found.is_empty() => found,
            (Meant::Case(id) | Meant::Other(id), _) => vec![id.clone()],
            (Meant::Several(ids), _) => ids.clone(),
            // The check of the plan reports it, with all its other problems.
            (Meant::Nothing, _) => return Ok(()),
        };
        if let [one] = &found[..] {
            let read = json!(one);
            self.replace("needs", need, read);
            return Ok(());
        }
        let problem = format!("`{given}` can mean several tasks: {}", found.join(", "));
        Err(Refused::argument("plan.needs", problem))
    }
}

impl Listed {
    fn add_all(&mut self, tasks: &Value) {
        for task in tasks.as_array().into_iter().flatten() {
            let text = |field: &str| task.get(field).and_then(Value::as_str).map(str::to_owned);
            let name = task.as_str().map(str::to_owned).or_else(|| text("name"));
            let id = text("id");
            if id.is_some() || name.is_some() {
                self.exact.extend(id.iter().chain(&name).cloned());
                self.tasks.push((id, name.unwrap_or_default()));
            }
            if let Some(subtasks) = task.get("subtasks") {
                self.add_all(subtasks);
            }
        }
    }

    /// Returns the references to the tasks that a text means which is neither an id nor a name.
    fn meant(&self, given: &str) -> Vec<String> {
        let wanted = given.trim().trim_start_matches('#').to_lowercase();
        if wanted.is_empty() {
            return Vec::new();
        }
        let folded = self.folded.get_or_init(|| Folded::of(&self.tasks));
        let equal = [&folded.ids, &folded.names, &folded.made_ids].map(|lookup| lookup.equal(&wanted));
        let begin = || folded.beginnings.begin_with(&wanted);
        let found = equal.into_iter().find(|found| !found.is_empty()).unwrap_or_else(begin);
        let reference = |at: &usize| {
            let (id, name) = &self.tasks[*at];
            id.as_ref().unwrap_or(name).clone()
        };
        found.iter().map(reference).collect()
    }
}

impl Folded {
    fn of(tasks: &[(Option<String>, String)]) -> Self {
        let lower = |text: &String| Some(text.to_lowercase());
        Self {
            ids: Lookup::of(tasks, |(id, _)| lower(id.as_ref()?)),
            names: Lookup::of(tasks, |(_, name)| lower(name)),
            made_ids: Lookup::of(tasks, |(id, name)| id.is_none().then(|| id_from_name(name))),
            beginnings: Lookup::of(tasks, |(id, name)| lower(id.as_ref().unwrap_or(name))),
        }
    }
}

impl Lookup {
    fn of<T>(tasks: &[T], text: impl Fn(&T) -> Option<String>) -> Self {
        let texts = tasks.iter().enumerate().filter_map(|(at, task)| Some((text(task)?, at)));
        let mut texts: Vec<_> = texts.collect();
        texts.sort_unstable();
        Self(texts)
    }

    /// Returns the positions of the first tasks with this text.
    fn equal(&self, wanted: &str) -> Vec<usize> {
        self.first(wanted, |text| text == wanted)
    }

    /// Returns the positions of the first tasks whose text begins like this.
    fn begin_with(&self, wanted: &str) -> Vec<usize> {
        self.first(wanted, |text| text.starts_with(wanted))
    }

    fn first(&self, wanted: &str, is_meant: impl Fn(&str) -> bool) -> Vec<usize> {
        let begin = self.0.partition_point(|(text, _)| text.as_str() < wanted);
        let found = self.0[begin..].iter().take_while(|(text, _)| is_meant(text));
        found.map(|(_, at)| *at).take(MAX_NAMED).collect()
    }
}
