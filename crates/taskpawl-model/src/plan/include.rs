//! The field `include` of a task: the tasks of another plan become its subtasks.
//!
//! An included plan is read and checked on its own. Then its tasks are added to those of the plan, with ids of their own
//! and without parameters, so that everything after the parser sees tasks as any others.

use std::collections::{BTreeSet, HashMap};

use serde_json::Value;

use super::draft::{Draft, Place, Subtask};
use super::expressions::Names;
use super::included_files::{IncludedPlan, Unloaded};
use super::included_tasks::{Bound, IncludedTasks};
use super::linker::{Linker, path_of};
use super::node::{Content, Entry, Node, shortened};
use super::reader::{Reader, Segment, Shape};
use super::site::Stage;
use super::sites::{has_expression, has_secret};
use super::vocabulary::INCLUDE;
use super::{IncludedPlace, Param, ParamType, Plan, PlanError, PlanProblem, PlanTask};
use crate::advice::hint::Hint;
use crate::expr::{
    Name, as_expression, as_literal, fixed_type, lone_expression, lone_name, mentions, typed_expression,
};
use crate::task::{CallSpec, NewCall, RETURN_CALL, RETURN_TOOL};
use crate::value::{Map, TaskId, check_id};
use taskpawl_json::Position;
use taskpawl_text::nearest;

pub(super) const INCLUDE_SHAPE: Shape = Shape {
    what: "`include`",
    expected: "a plan file, or an object with `file`",
    fields: &["file", "with"],
    required: &[("file", "`file`")],
};

/// The most tasks of a plan that includes others.
const MAX_TASKS: usize = 10_000;

/// The fields that cannot be beside `include`, because the work of the task is that of the included plan.
const AGAINST: [&str; 12] = [
    "run",
    "call",
    "calls",
    "toolCalls",
    "subtasks",
    "forEach",
    "repeat",
    "verify",
    "artifacts",
    "rework",
    "worktree",
    "milestone",
];

/// The field as it is written.
pub(super) struct Include<'n> {
    at: Position,
    file: &'n str,
    with: &'n [Entry<'n>],
    /// True if a part of it is invalid.
    is_faulty: bool,
}

/// Adds the names in the expressions of included tasks. Their plans were checked on their own.
pub(super) fn add_names(linker: &Linker<'_, '_>, names: &mut Names) {
    for (number, draft) in linker.drafts.iter().enumerate() {
        let Some(resolved) = &draft.resolved else { continue };
        let given = resolved.given.iter().filter_map(|text| Some((text.clone(), linker.one(text)?)));
        names[number].extend(resolved.names.clone().into_iter().chain(given));
    }
}

/// Returns the place of a task of the plan in `file`, or of one that this plan includes itself.
fn place_of(task: &PlanTask, file: &str) -> IncludedPlace {
    let deeper = task.included.as_deref().cloned();
    deeper.unwrap_or_else(|| IncludedPlace { file: file.to_owned(), at: task.at })
}

impl<'n> Reader<'n> {
    /// Reads the field `include` of a task that is not complete yet.
    pub(super) fn include(&mut self, draft: &Draft<'n>, entries: &'n [Entry<'n>]) -> Option<Include<'n>> {
        let entry = entries.iter().find(|entry| entry.key == INCLUDE && !entry.value.is_null())?;
        self.refuse_beside_include(draft, entries);
        self.within(Segment::Key(INCLUDE), |reader| {
            let mut include = Include { at: entry.key_at, file: "", with: &[], is_faulty: false };
            let errors = reader.errors.len();
            if entry.value.as_str().is_some() {
                include.file = reader.filled(&entry.value)?;
                return Some(include);
            }
            reader.object(&entry.value, &INCLUDE_SHAPE, |reader, key, value| match key {
                "file" => include.file = reader.filled(value).unwrap_or_default(),
                _ => include.with = reader.with(value),
            })?;
            include.is_faulty = reader.errors.len() > errors;
            Some(include).filter(|include| !include.file.is_empty())
        })
    }

    fn refuse_beside_include(&mut self, draft: &Draft<'n>, entries: &'n [Entry<'n>]) {
        let other = entries.iter().find_map(|entry| {
            let is_given = !entry.value.is_null() && entry.value.content != Content::Bool(false);
            let field = AGAINST.into_iter().find(|field| *field == entry.key).filter(|_| is_given)?;
            Some((field, entry.key_at))
        });
        let of_metadata = || (!draft.task.calls.is_empty()).then_some(("toolCalls", draft.task.at));
        if let Some((with, at)) = other.or_else(of_metadata) {
            let hint = "give it to a task of its own: this one stands for the included plan";
            self.report_with(at, PlanProblem::NotWith { field: INCLUDE, with }, hint);
        }
    }

    fn with(&mut self, node: &'n Node<'n>) -> &'n [Entry<'n>] {
        let entries =
            self.entries(node, "an object with the parameters of the included plan").unwrap_or_default();
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| reader.with_site(&entry.value));
        }
        entries
    }

    /// Adds the tasks of an included plan below the task.
    pub(super) fn included(&mut self, number: usize, include: &Include<'n>) {
        self.drafts[number].is_incomplete = true;
        let Some(id) = self.drafts[number].task.id.clone() else {
            let problem = PlanProblem::Missing { field: "`id`", of: "a task with `include`" };
            return self.report_with(include.at, problem, "the ids of the included tasks begin with it");
        };
        let (file, included) = match self.includes.load(include.file) {
            Ok(loaded) => loaded,
            Err(Unloaded::Problem(problem, hint)) => {
                let path = self.path();
                return self.errors.push(PlanError { at: include.at, path, problem, hint });
            }
            Err(Unloaded::Faulty(file, errors)) => {
                for PlanError { at, path, problem, hint } in errors.errors().iter().cloned() {
                    let place = IncludedPlace { file: file.clone(), at };
                    self.report_included(include.at, place, (path, problem), hint);
                }
                return;
            }
        };
        let errors = self.errors.len();
        let bound = self.bind(include, &file, &included.plan);
        self.check_room(include.at, &file, &included);
        if let Some(bound) = bound.filter(|_| self.errors.len() == errors) {
            self.drafts[number].is_incomplete = false;
            self.add_included(number, (&id, include.at, &file), &included.plan, &bound);
        }
    }

    fn report_included(
        &mut self,
        at: Position,
        place: IncludedPlace,
        (path, problem): (String, PlanProblem),
        hint: Option<Hint>,
    ) {
        let place = Box::new(place);
        let problem = PlanProblem::Included { place, path, problem: Box::new(problem) };
        let path = self.path();
        self.errors.push(PlanError { at, path, problem, hint });
    }

    /// Checks that there is room for the tasks, and that the run has the capacities that they expect.
    fn check_room(&mut self, at: Position, file: &str, included: &IncludedPlan) {
        let limit = self.max_tasks.unwrap_or(MAX_TASKS).min(MAX_TASKS);
        if self.drafts.len() + included.plan.tasks.len() > limit {
            return self.report(at, PlanProblem::IncludedTasks { limit });
        }
        for (resource, capacity) in &included.plan.resources {
            if !self.capacities.contains_key(resource) {
                let (resource, file) = (resource.clone(), file.to_owned());
                let hint =
                    format!("write `resources: {{{resource}: {capacity}}}`: all tasks of a run share it");
                self.report_with(at, PlanProblem::IncludedCapacity { resource, file }, hint);
            }
        }
        for task in &included.plan.tasks {
            let before = self.errors.len();
            self.check_capacity(at, &task.spec.resources);
            for PlanError { problem, hint, .. } in self.errors.split_off(before) {
                self.report_included(at, place_of(task, file), (String::new(), problem), hint);
            }
        }
    }

    fn add_included(
        &mut self,
        number: usize,
        (id, at, file): (&TaskId, Position, &str),
        plan: &Plan,
        bound: &HashMap<String, Bound>,
    ) {
        let first = self.drafts.len();
        let tasks = IncludedTasks { plan, prefix: id, first, bound };
        let mut roots = Vec::new();
        for (index, task) in plan.tasks.iter().enumerate() {
            let place = place_of(task, file);
            let mut draft = self.new_draft(at, Place::Included { by: number });
            match tasks.task(index) {
                Ok((task, resolved)) => {
                    if let Err(error) = check_id(task.id.as_ref().map_or("", TaskId::as_str)) {
                        self.report_included(at, place.clone(), (String::new(), error.into()), None);
                    }
                    (draft.task, draft.resolved) = (task, Some(resolved.into()));
                    (draft.task.at, draft.task.included) = (at, Some(place.into()));
                }
                Err(error) => {
                    let hint = error.hint.map(Hint::from);
                    self.report_included(at, place, (String::new(), error.fault.into()), hint);
                }
            }
            self.drafts.push(draft);
            let child = Subtask::Nested(first + index);
            match task.parent {
                Some(parent) => self.drafts[first + parent].subtasks.push(child),
                None => roots.push(child),
            }
        }
        self.drafts[number].subtasks = roots;
        self.add_returns(number, at, &tasks);
        let wanted = &mut self.wanted;
        wanted.at = at;
        wanted.tools.extend(plan.tools.iter().cloned());
        wanted.variables.extend(plan.requires.env.iter().cloned());
    }

    /// Gives the task the call that returns its result, after all of its subtasks.
    fn add_returns(&mut self, number: usize, at: Position, tasks: &IncludedTasks<'_>) {
        let Some(returns) = &tasks.plan.returns else { return };
        let (value, resolved) = match tasks.value(returns) {
            Ok(renamed) => renamed,
            Err(error) => return self.report(at, error.fault.into()),
        };
        let args = Map::from_iter([("value".to_owned(), value)]);
        let spec = CallSpec { tool_name: RETURN_TOOL.to_owned(), args, ..CallSpec::default() };
        let draft = &mut self.drafts[number];
        draft.task.calls = vec![NewCall { id: Some(RETURN_CALL.into()), spec: spec.into() }];
        draft.resolved = Some(resolved.into());
    }

    /// Returns the expressions in place of the parameters of an included plan; `None` if one is invalid.
    fn bind(&mut self, include: &Include<'n>, file: &str, plan: &Plan) -> Option<HashMap<String, Bound>> {
        let (mut bound, mut misspelt) = (HashMap::new(), BTreeSet::new());
        let errors = self.errors.len();
        self.within(Segment::Key("with"), |reader| {
            for entry in include.with {
                reader.within(Segment::Key(&entry.key), |reader| {
                    let Some(param) = plan.params.get(&*entry.key) else {
                        let (name, file) = (shortened(&entry.key), file.to_owned());
                        let problem = PlanProblem::UnknownParamOf { name, file };
                        let hint = plan.unknown_param(&entry.key).hint;
                        misspelt.extend(nearest(&entry.key, plan.params.keys().map(String::as_str)));
                        let path = reader.path();
                        return reader.errors.push(PlanError { at: entry.key_at, path, problem, hint });
                    };
                    bound.extend(reader.bound(entry, param).map(|text| (entry.key.to_string(), text)));
                });
            }
        });
        let is_given = |name: &str| include.with.iter().any(|entry| entry.key == name);
        for (name, param) in plan.params.iter().filter(|(name, _)| !is_given(name)) {
            let Some(default) = &param.default else {
                // One mistake leads to one error.
                if misspelt.contains(name.as_str()) || include.is_faulty {
                    continue;
                }
                let problem = PlanProblem::ParamNotGiven { name: name.clone(), file: file.to_owned() };
                self.report_with(include.at, problem, format!("give it: `with: {{{name}: …}}`"));
                continue;
            };
            bound.insert(name.clone(), Bound { text: as_literal(default), tasks: BTreeSet::new() });
        }
        // The syntax of the other expressions is reported with all of the plan.
        (self.errors.len() == errors && bound.len() == plan.params.len()).then_some(bound)
    }

    /// Returns the expression in place of a parameter.
    fn bound(&mut self, entry: &'n Entry<'n>, param: &Param) -> Option<Bound> {
        let node = &entry.value;
        if has_secret(node) {
            let problem = PlanProblem::NotHere { field: "${secret:…}".to_owned(), of: "`with`" };
            self.report_with(node.at, problem, "name the secret in the included plan");
            return None;
        }
        let value = self.json(node);
        let is_known = match self.misfit(node, &value, param.kind) {
            Ok(is_known) => is_known,
            Err((found, hint)) => {
                let (name, expected) = (entry.key.to_string(), param.kind.expected());
                let problem = PlanProblem::ParamType { name, expected, found };
                let (at, path, hint) = (node.at, self.path(), hint.map(Hint::from));
                self.errors.push(PlanError { at, path, problem, hint });
                return None;
            }
        };
        let mut tasks = BTreeSet::new();
        for mention in mentions(&value).ok()? {
            if let Name::Task { task, .. } = mention.name {
                tasks.insert(task);
            }
        }
        let text = as_expression(&value).ok()?;
        let text = if is_known { text } else { typed_expression(&text, param.kind, &entry.key) };
        Some(Bound { text, tasks })
    }

    /// Returns whether the type of a value is known to be this one. Otherwise it is checked when the value is read.
    ///
    /// # Errors
    /// The value cannot be of this type. Returns its description, and a hint.
    fn misfit(
        &self,
        node: &Node<'n>,
        value: &Value,
        kind: ParamType,
    ) -> Result<bool, (String, Option<&'static str>)> {
        let known = |fits: bool| if fits { Ok(true) } else { Err((node.describe(), None)) };
        let Some(text) = value.as_str().filter(|_| has_expression(node)) else {
            return known(kind.fits(value));
        };
        let Some(source) = lone_expression(text) else { return known(kind == ParamType::String) };
        let own = match lone_name(text) {
            Some(Name::Param(name)) => self.declared_type(&name),
            Some(_) | None => fixed_type(source),
        };
        let Some(own) = own else { return Ok(false) };
        // A number may be whole.
        if kind.includes(own) || own.includes(kind) {
            return Ok(kind.includes(own));
        }
        let found = format!("`{}`, which is {}", shortened(source), own.expected());
        Err((found, kind.conversion_of(own)))
    }

    /// Returns the type of a parameter of the plan itself, which is read after its tasks.
    fn declared_type(&self, name: &str) -> Option<ParamType> {
        let param = self.declared.iter().find(|entry| entry.key == name)?;
        let kind = param.value.as_object()?.iter().find(|entry| entry.key == "type")?;
        ParamType::from_word(kind.value.as_str()?)
    }

    /// Checks a plan that is included by another one, beside what is checked in every plan.
    pub(super) fn check_included(&mut self) {
        if !self.includes.is_included() {
            return;
        }
        if self.drafts.is_empty() && self.errors.is_empty() {
            let problem = PlanProblem::Missing { field: "tasks", of: "a plan that is included" };
            self.report(Position { line: 1, column: 1 }, problem);
        }
        for (number, draft) in self.drafts.iter().enumerate() {
            if draft.task.id.is_none() && !draft.task.spec.name.is_empty() {
                let problem = PlanProblem::Missing { field: "`id`", of: "a task of a plan that is included" };
                let path = path_of(&self.drafts, self.listed, number);
                let hint = Some("its id in the whole plan is made from it".into());
                self.errors.push(PlanError { at: draft.task.at, path, problem, hint });
            }
        }
    }

    /// Refuses a field for a run, in a plan whose tasks become a part of another one. Returns whether it is refused.
    pub(super) fn is_for_runs(&mut self, entry: &Entry<'n>) -> bool {
        const OF_RUNS: [&str; 4] = ["timeout", "budget", "maxFailures", "notify"];
        let is_refused =
            self.includes.is_included() && OF_RUNS.contains(&&*entry.key) && !entry.value.is_null();
        if is_refused {
            let problem =
                PlanProblem::NotHere { field: entry.key.to_string(), of: "a plan that is included" };
            self.report_with(
                entry.key_at,
                problem,
                "write it in the plan that is run: it holds for the whole run",
            );
        }
        is_refused
    }

    /// Records a value of `with`, if it has expressions.
    fn with_site(&mut self, node: &'n Node<'n>) {
        if has_expression(node) {
            self.site(Stage::With, node, false, "");
        }
    }
}
