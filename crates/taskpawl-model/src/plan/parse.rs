//! Entry points: plans, tasks and calls from texts and from JSON values.

use indexmap::IndexMap;
use serde_json::Value;

use super::draft::Place;
use super::included_files::{IncludedPlan, Includes};
use super::node::{Content, Entry, MAX_DEPTH, Node, shortened};
use super::options::{BUDGET, PARAM};
use super::reader::{Reader, Segment};
use super::task::STRUCTURE;
use super::text_rules::Rules;
use super::vocabulary::PLAN;
use super::{
    Budget, Param, ParamType, Plan, PlanError, PlanErrors, PlanFiles, PlanProblem, PlanTask, expressions,
    link, program, text,
};
use crate::task::{NewCall, TaskSpec};
use crate::value::Map;
use crate::value::{TaskId, check_id};
use taskpawl_json::Position;

/// The supported version of the format.
const VERSION: u32 = 1;

/// Parses a plan from JSON or YAML.
///
/// The text is an object with `tasks`, or the list of tasks alone. Short forms are expanded, defaults are merged into
/// the tasks, and references are resolved. References to tasks that are not in the plan are left to the store
/// ([`PlanTask::needs_outside`]).
///
/// # Errors
/// All errors of the plan, with positions. For a text that is neither JSON nor YAML, only the first error.
pub fn parse_plan(text: &str) -> Result<Plan, PlanErrors> {
    plan_of(text, false, None, None)
}

/// Parses a plan like [`parse_plan`], but keeps unknown fields for the step that applies it.
///
/// Applying the plan refuses these fields, unless the store has them unchanged. Version 0.1 accepted unknown fields,
/// and a file that has not changed since then must not be refused.
///
/// # Errors
/// All other errors of the plan.
pub fn read_plan(text: &str) -> Result<Plan, PlanErrors> {
    // If the plan has other errors, unknown fields are reported with them.
    plan_of(text, true, None, None).or_else(|_| plan_of(text, false, None, None))
}

/// Parses a plan like [`read_plan`], with the plans that its tasks include.
///
/// # Errors
/// As for [`read_plan`], and those of the included plans, with the places of both.
pub fn read_plan_file(text: &str, files: &dyn PlanFiles) -> Result<Plan, PlanErrors> {
    plan_of(text, true, None, Some(files)).or_else(|_| plan_of(text, false, None, Some(files)))
}

/// Parses a plan like [`read_plan`] if it has at most `max_tasks` tasks. Further tasks are never held in memory.
///
/// # Errors
/// As for [`read_plan`], and [`TooManyTasks`](PlanProblem::TooManyTasks).
pub fn read_plan_up_to(text: &str, max_tasks: usize) -> Result<Plan, PlanErrors> {
    plan_of(text, true, Some(max_tasks), None).or_else(|_| plan_of(text, false, Some(max_tasks), None))
}

/// The result of reading a plan that may have errors.
#[derive(Debug, Default)]
pub struct Inspected {
    /// The plan as far as it could be read; it must not be applied if there are errors.
    pub plan: Option<Plan>,
    /// All errors.
    pub errors: Vec<PlanError>,
}

/// Parses a plan like [`parse_plan`], and returns what could be read beside the errors, for further checks.
pub fn inspect_plan(text: &str) -> Inspected {
    inspect(text, Includes::default())
}

/// Parses a plan like [`inspect_plan`], with the plans that its tasks include.
pub fn inspect_plan_file(text: &str, files: &dyn PlanFiles) -> Inspected {
    inspect(text, Includes::of(files, parse_included))
}

fn inspect(text: &str, includes: Includes<'_>) -> Inspected {
    let text = text::prepared(text);
    let mut errors = Vec::new();
    let Some(node) = text::parse(&text, Rules::PLAN, &mut errors) else {
        return Inspected { plan: None, errors };
    };
    let mut reader = Reader::default();
    (reader.errors, reader.source, reader.is_inspected) = (errors, &text, true);
    reader.includes = includes;
    let mut plan = reader.plan(&node);
    plan.tasks = link::link(&mut reader);
    let errors = PlanErrors::new(std::mem::take(&mut reader.errors)).errors().to_vec();
    Inspected { plan: Some(plan), errors }
}

/// Parses a plan that another one includes, with the plans that it includes itself.
fn parse_included(text: &str, includes: Includes<'_>) -> Result<IncludedPlan, PlanErrors> {
    from_text_with(text, includes, |reader, node| {
        let mut plan = reader.plan(node);
        reader.check_included();
        plan.tasks = link::link(reader);
        Some(IncludedPlan { plan, height: reader.includes.height() })
    })
}

fn plan_of(
    text: &str,
    keeps_unknown: bool,
    max_tasks: Option<usize>,
    files: Option<&dyn PlanFiles>,
) -> Result<Plan, PlanErrors> {
    let includes = files.map_or_else(Includes::default, |files| Includes::of(files, parse_included));
    from_text_with(text, includes, |reader, node| {
        reader.keeps_unknown = keeps_unknown;
        reader.max_tasks = max_tasks;
        let mut plan = reader.plan(node);
        plan.tasks = link::link(reader);
        Some(plan)
    })
}

/// Parses any JSON or YAML text to a value, for callers that change it before it is read as a plan.
///
/// # Errors
/// Syntax errors, with positions.
pub fn plan_value(text: &str) -> Result<Value, PlanErrors> {
    from_text(text, |reader, node| {
        let value = node.to_json(MAX_DEPTH);
        if value.is_none() {
            reader.report(node.at, PlanProblem::TooDeep { limit: MAX_DEPTH });
        }
        value
    })
}

/// Returns the value of a YAML text that belongs to another program, or nothing if the text is empty.
///
/// A plain scalar is a number only if it is written the same way again: the version `1.10` stays text.
///
/// # Errors
/// The text is not YAML, nests more than `max_depth` levels deep, gives a key twice, or has anchors, aliases or a second document.
#[cfg(feature = "yaml")]
pub fn yaml_value(text: &str, max_depth: usize) -> Result<Option<Value>, PlanErrors> {
    let mut errors = Vec::new();
    let rules = Rules { max_depth, resolve: super::scalar::resolve_verbatim };
    let node = text::parse(text, rules, &mut errors);
    if let [PlanError { problem: PlanProblem::Empty, .. }] = errors[..] {
        return Ok(None);
    }
    if !errors.is_empty() {
        return Err(PlanErrors::new(errors));
    }
    Ok(node.and_then(|node| node.to_json(max_depth)))
}

/// Converts a JSON value to a plan like [`parse_plan`], as a part of an existing plan. Its expressions may refer to
/// that plan.
///
/// # Errors
/// All errors, without positions.
pub fn plan_from_json(value: &Value) -> Result<Plan, PlanErrors> {
    from_json(value, |reader, node| {
        reader.is_part = true;
        let mut plan = reader.plan(node);
        plan.tasks = link::link(reader);
        Some(plan)
    })
}

/// Parses a task from JSON or YAML, by the rules of [`parse_plan`]. It has no subtasks, and all its dependencies are
/// outside.
///
/// # Errors
/// All errors.
pub fn parse_task(text: &str) -> Result<PlanTask, PlanErrors> {
    from_text(text, |reader, node| reader.lone_task(node))
}

/// Parses a tool call from JSON or YAML, by the rules of [`parse_plan`].
///
/// # Errors
/// All errors.
pub fn parse_call(text: &str) -> Result<NewCall, PlanErrors> {
    from_text(text, |reader, node| reader.lone_call(node))
}

/// Converts a JSON value to a task, by the rules of [`parse_task`].
///
/// # Errors
/// All errors, without positions.
pub fn task_from_json(value: &Value) -> Result<PlanTask, PlanErrors> {
    from_json(value, |reader, node| reader.lone_task(node))
}

/// Converts a JSON value to a tool call, by the rules of [`parse_call`].
///
/// # Errors
/// All errors, without positions.
pub fn call_from_json(value: &Value) -> Result<NewCall, PlanErrors> {
    from_json(value, |reader, node| reader.lone_call(node))
}

/// Converts the work of a task (`run`, `call`, `calls`, with `env`, `cwd`, `shell` and `idempotent`) to its calls. The
/// `defaults` of its plan apply to them.
pub(crate) fn work_from_json(task: &Value, defaults: Option<&Value>) -> Result<Vec<NewCall>, PlanErrors> {
    let defaults = defaults.and_then(|defaults| Node::from_json(defaults, 0));
    let Some(node) = Node::from_json(task, 0) else { return Err(too_deep()) };
    let mut reader = Reader::default();
    if let Some(defaults) = &defaults {
        reader.defaults(defaults);
    }
    let task = reader.lone_task(&node);
    finish(std::mem::take(&mut reader.errors), task.map(|task| task.calls))
}

/// Returns the specification of a task with the given fields replaced; `null` resets a field to its default.
///
/// The field `metadata` replaces all metadata. Dependencies, subtasks, calls and the context have commands of their own
/// and are refused here.
///
/// # Errors
/// All errors, without positions.
pub fn change_spec(spec: &TaskSpec, fields: &Map) -> Result<TaskSpec, PlanErrors> {
    let Some(entries) = Node::entries_of(fields, 1) else { return Err(too_deep()) };
    let mut reader = Reader::default();
    let mut changed = spec.clone();
    for entry in &entries {
        reader.within(Segment::Key(&entry.key), |reader| reader.changed_field(&mut changed, entry));
    }
    if changed.name.is_empty() && reader.errors.is_empty() {
        reader.within(Segment::Key("name"), |reader| reader.report(Position::default(), PlanProblem::Blank));
    }
    expressions::check_syntax(&mut reader);
    finish(reader.errors, Some(changed))
}

fn from_text<T>(
    text: &str,
    read: impl for<'n> FnOnce(&mut Reader<'n>, &'n Node<'n>) -> Option<T>,
) -> Result<T, PlanErrors> {
    from_text_with(text, Includes::default(), read)
}

fn from_text_with<T>(
    text: &str,
    includes: Includes<'_>,
    read: impl for<'n> FnOnce(&mut Reader<'n>, &'n Node<'n>) -> Option<T>,
) -> Result<T, PlanErrors> {
    let text = text::prepared(text);
    let mut errors = Vec::new();
    let Some(node) = text::parse(&text, Rules::PLAN, &mut errors) else {
        return Err(PlanErrors::new(errors));
    };
    let mut reader = Reader::default();
    (reader.errors, reader.source) = (errors, &text);
    reader.includes = includes;
    let value = read(&mut reader, &node);
    finish(std::mem::take(&mut reader.errors), value)
}

fn from_json<T>(
    value: &Value,
    read: impl for<'n> FnOnce(&mut Reader<'n>, &'n Node<'n>) -> Option<T>,
) -> Result<T, PlanErrors> {
    let Some(node) = Node::from_json(value, 0) else { return Err(too_deep()) };
    let mut reader = Reader::default();
    let value = read(&mut reader, &node);
    finish(std::mem::take(&mut reader.errors), value)
}

fn finish<T>(errors: Vec<PlanError>, value: Option<T>) -> Result<T, PlanErrors> {
    match value {
        Some(value) if errors.is_empty() => Ok(value),
        _ => Err(PlanErrors::new(errors)),
    }
}

fn too_deep() -> PlanErrors {
    let problem = PlanProblem::TooDeep { limit: MAX_DEPTH };
    PlanErrors::new(vec![PlanError { at: Position::default(), path: String::new(), problem, hint: None }])
}

impl<'n> Reader<'n> {
    /// Reads a plan into the drafts of the reader. Other fields are read before the tasks, because they affect them.
    pub(super) fn plan(&mut self, node: &'n Node<'n>) -> Plan {
        let mut plan = Plan { version: VERSION, ..Plan::default() };
        self.listed = node.as_list().is_some();
        if self.listed {
            self.tasks(node);
        } else if let Some(entries) = self.entries(node, "a plan: an object with `tasks`, or a list of tasks")
        {
            self.plan_fields(&mut plan, node, entries);
        }
        plan.unknown = std::mem::take(&mut self.unknown);
        plan.defaults = std::mem::take(&mut self.defaults.given);
        plan.resources = std::mem::take(&mut self.capacities);
        std::mem::take(&mut self.wanted).add_to(&mut plan);
        plan
    }

    fn plan_fields(&mut self, plan: &mut Plan, node: &'n Node<'n>, entries: &'n [Entry<'n>]) {
        let params = entries.iter().find(|entry| entry.key == "params");
        self.declared = params.and_then(|entry| entry.value.as_object()).unwrap_or_default();
        // Defaults are checked against the capacities, and tasks against both, in any order of the file.
        for order in [&["resources"][..], &["defaults"], &["tasks"]] {
            for entry in entries.iter().filter(|entry| order.contains(&&*entry.key)) {
                self.within(Segment::Key(&entry.key), |reader| reader.plan_part(&entry.key, &entry.value));
            }
        }
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| reader.plan_field(plan, entry));
        }
        if !entries.iter().any(|entry| entry.key == "tasks") {
            let problem = PlanProblem::Missing { field: "`tasks`", of: PLAN.what() };
            self.report_with(node.at, problem, "`tasks: []` is a plan without tasks");
        }
    }

    fn plan_part(&mut self, key: &str, node: &'n Node<'n>) {
        match key {
            "resources" if !node.is_null() => self.capacities = self.counts(node),
            "defaults" => self.defaults(node),
            "tasks" => self.tasks(node),
            _ => {}
        }
    }

    fn plan_field(&mut self, plan: &mut Plan, entry: &'n Entry<'n>) {
        let (key, node) = (&*entry.key, &entry.value);
        match key {
            "resources" | "defaults" | "tasks" => {}
            _ if self.is_for_runs(entry) => {}
            "version" => self.version(node),
            "name" => plan.name = self.option(node, Self::id).map(str::to_owned),
            "params" => {
                plan.params = self.params(node);
                // A parameter with an invalid declaration still counts as declared, so that its uses are not reported
                // as well.
                let declared = node.as_object().unwrap_or_default();
                self.params = declared.iter().map(|entry| entry.key.to_string()).collect();
            }
            "timeout" => plan.timeout = self.option(node, Self::period),
            "budget" => plan.budget = self.option(node, Self::budget),
            "maxFailures" => plan.max_failures = self.option(node, Self::count),
            "schedule" => plan.schedule = self.option(node, Self::schedule),
            "tools" => plan.tools = self.texts(node),
            "requires" => plan.requires = self.option(node, Self::requires).unwrap_or_default(),
            "returns" => {
                self.returns = Some(node).filter(|node| !node.is_null());
                plan.returns = self.option(node, |reader, node| Some(reader.json(node)));
            }
            "notify" => plan.notify = self.option(node, Self::argv).unwrap_or_default(),
            "description" => {
                let description = self.option(node, Self::text);
                plan.extra.extend(description.map(|text| (key.to_owned(), text.into())));
            }
            _ => self.unknown(&mut plan.extra, &PLAN, (key, entry.key_at), node),
        }
    }

    fn version(&mut self, node: &'n Node<'n>) {
        match node.as_number() {
            None if node.is_null() => {}
            None => self.wrong_type(node, "a whole number"),
            Some(number) if number.as_u64() == Some(u64::from(VERSION)) => {}
            Some(number) => {
                let problem = PlanProblem::Version { found: number.to_string(), known: VERSION };
                self.report_with(node.at, problem, format!("write `version: {VERSION}`"));
            }
        }
    }

    fn params(&mut self, node: &'n Node<'n>) -> IndexMap<String, Param> {
        let expected = "an object such as `{NAME: {type: string}}`";
        let entries = self.option(node, |reader, node| reader.entries(node, expected)).unwrap_or_default();
        let param = |entry: &'n Entry<'n>| {
            self.within(Segment::Key(&entry.key), |reader| {
                reader.check_identifier(&entry.key, entry.key_at);
                Some((entry.key.to_string(), reader.param(&entry.value)?))
            })
        };
        entries.iter().filter_map(param).collect()
    }

    fn param(&mut self, node: &'n Node<'n>) -> Option<Param> {
        let mut param = Param { kind: ParamType::String, default: None };
        let mut default = None;
        let errors = self.errors.len();
        self.object(node, &PARAM, |reader, key, value| match key {
            "type" => {
                let kind = reader.word(value, "type", ParamType::ALL, ParamType::from_word);
                param.kind = kind.unwrap_or(param.kind);
            }
            _ => default = Some(value),
        })?;
        // A default value is only checked if the declaration is valid: the type is unknown otherwise.
        let default = default.filter(|_| self.errors.len() == errors);
        param.default =
            default.map(|value| self.within(Segment::Key("default"), |r| r.default_of(param.kind, value)));
        Some(param)
    }

    fn default_of(&mut self, kind: ParamType, node: &'n Node<'n>) -> Value {
        let (fits, expected) = match (kind, &node.content) {
            (ParamType::String, content) => (matches!(content, Content::Text(_)), "text"),
            (ParamType::Integer, content) => {
                (matches!(content, Content::Number(number) if !number.is_f64()), "a whole number")
            }
            (ParamType::Number, content) => (matches!(content, Content::Number(_)), "a number"),
            (ParamType::Boolean, content) => (matches!(content, Content::Bool(_)), "`true` or `false`"),
            (ParamType::Array, content) => (matches!(content, Content::List(_)), "a list"),
            (ParamType::Object, content) => (matches!(content, Content::Object(_)), "an object"),
        };
        if !fits {
            self.wrong_type(node, expected);
        }
        self.json(node)
    }

    /// Reads a program with its arguments.
    fn argv(&mut self, node: &'n Node<'n>) -> Option<Vec<String>> {
        if node.as_list().is_none() {
            self.wrong_type(node, "a list with a program and its arguments");
            return None;
        }
        let words = self.one_or_many(node, Self::text);
        if words.first().is_none_or(|program| program.trim().is_empty()) {
            self.report(node.at, PlanProblem::Blank);
        }
        Some(words)
    }

    fn budget(&mut self, node: &'n Node<'n>) -> Option<Budget> {
        let mut budget = Budget::default();
        self.object(node, &BUDGET, |reader, key, value| match key {
            "calls" => budget.calls = reader.big_count(value),
            "duration" => budget.duration = reader.period(value),
            _ => budget.cost = reader.number(value, 0.0, "at least 0"),
        })?;
        Some(budget)
    }

    fn lone_call(&mut self, node: &'n Node<'n>) -> Option<NewCall> {
        let mut call = self.call(node);
        if let Some(call) = &mut call {
            call.spec.fill_interpreter();
        }
        expressions::check_syntax(self);
        call
    }

    fn lone_task(&mut self, node: &'n Node<'n>) -> Option<PlanTask> {
        self.task(node, Place::Alone, 1)?;
        let draft = self.drafts.swap_remove(0);
        if !draft.subtasks.is_empty() {
            let problem = PlanProblem::NotHere { field: "subtasks".to_owned(), of: "a task alone" };
            self.report_with(node.at, problem, "add them one by one, or apply a plan");
        }
        let mut task = draft.task;
        expressions::check_task(self, &task);
        for reference in draft.needs {
            let id = TaskId::from(reference.text);
            match check_id(reference.text) {
                Ok(()) if !task.needs_outside.contains(&id) => task.needs_outside.push(id),
                Ok(()) => {}
                Err(error) => {
                    self.within(Segment::Key(reference.field), |r| r.report(reference.at, error.into()));
                }
            }
        }
        Some(task)
    }

    fn changed_field(&mut self, spec: &mut TaskSpec, entry: &'n Entry<'n>) {
        if STRUCTURE.contains(&&*entry.key) || program::FIELDS.contains(&&*entry.key) {
            let problem =
                PlanProblem::NotHere { field: shortened(&entry.key), of: "a change of a task's fields" };
            return self.report_with(entry.key_at, problem, "there is a command for it");
        }
        if entry.key != "metadata" {
            return self.spec_field(spec, entry);
        }
        spec.metadata.clear();
        let fields =
            self.option(&entry.value, |reader, node| reader.entries(node, "an object")).unwrap_or_default();
        for field in fields {
            self.within(Segment::Key(&field.key), |reader| match &*field.key {
                "toolCalls" | "context" => reader.changed_structure(field),
                _ => reader.own_metadata(&mut spec.metadata, field),
            });
        }
    }

    fn changed_structure(&mut self, entry: &'n Entry<'n>) {
        let problem =
            PlanProblem::NotHere { field: entry.key.to_string(), of: "a change of a task's fields" };
        self.report_with(entry.key_at, problem, "there is a command for it");
    }
}
