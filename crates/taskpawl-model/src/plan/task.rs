//! Tasks of a plan before their references are resolved.

use super::draft::{Draft, Marks, Place, Reference, Subtask};
use super::node::{Entry, Node};
use super::program::ProgramDefaults;
use super::reader::{Reader, Segment};
use super::vocabulary::{ARTIFACTS, INCLUDE, TASK, VERIFY, refused_metadata_field};
use super::{PlanProblem, PlanTask};
use crate::task::fault;
use crate::task::{
    CallPart, CallSpec, Mode, NewCall, Priority, TaskSpec, Trigger, WORKTREE_CALL, WORKTREE_TOOL,
};
use crate::value::Map;
use crate::value::TaskId;
use taskpawl_json::Position;

/// The maximum nesting of task objects.
const MAX_NESTED: usize = 64;

impl<'n> Reader<'n> {
    /// Reads the list of tasks of a plan.
    pub(super) fn tasks(&mut self, node: &'n Node<'n>) {
        let items = node.as_list().unwrap_or_default();
        if node.as_list().is_none() && !node.is_null() {
            self.wrong_type(node, "a list of tasks");
        }
        for (index, item) in items.iter().enumerate() {
            if self.is_full(item) {
                return;
            }
            self.within(Segment::Index(index), |reader| {
                if item.as_str().is_some() {
                    reader.bare_task(item, index);
                } else {
                    reader.task(item, Place::Top(index), 1);
                }
            });
        }
    }

    /// Returns whether the maximum number of tasks has been read, and reports it once. Reading stops there, because a
    /// task takes several times the memory of its text.
    fn is_full(&mut self, node: &Node) -> bool {
        let Some(limit) = self.max_tasks.filter(|limit| self.drafts.len() >= *limit) else { return false };
        let problem = PlanProblem::TooManyTasks { limit };
        if !self.errors.iter().any(|error| error.problem == problem) {
            self.report_with(node.at, problem, "write them in parts");
        }
        true
    }

    /// Reads a text in the list of tasks as the name of a manual task.
    fn bare_task(&mut self, node: &'n Node<'n>, index: usize) {
        let name = self.filled_text(node).unwrap_or_default();
        let mut draft = self.new_draft(node.at, Place::Top(index));
        draft.task.spec.name = name;
        draft.drop_lone_trigger();
        self.drafts.push(draft);
    }

    pub(super) fn new_draft(&self, at: Position, place: Place) -> Draft<'n> {
        let task = PlanTask { spec: self.defaults.spec.clone().into(), at, ..PlanTask::default() };
        Draft {
            task,
            place,
            needs: Vec::new(),
            subtasks: Vec::new(),
            marks: Marks::default(),
            program: ProgramDefaults::default(),
            resolved: None,
            is_incomplete: false,
        }
    }

    /// Reads a task object and those nested in it. Returns the index of its draft.
    pub(super) fn task(&mut self, node: &'n Node<'n>, place: Place, depth: usize) -> Option<usize> {
        let entries = self.entries(node, "a task as an object, or text with its name")?;
        if depth > MAX_NESTED {
            let problem = PlanProblem::Nested { limit: MAX_NESTED };
            self.report_with(node.at, problem, "list deeper subtasks by id, and define them under `tasks`");
            return None;
        }
        let number = self.drafts.len();
        let mut draft = self.new_draft(node.at, place);
        let before = self.unknown.len();
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| reader.task_field(&mut draft, entry));
        }
        let include = self.include(&draft, entries);
        draft.task.unknown = self.unknown.split_off(before);
        self.verifications(&mut draft.task.calls, entries);
        self.artifacts(&mut draft, entries);
        self.setups(&mut draft, entries);
        self.fill_calls(&mut draft, entries);
        self.share_session(&mut draft);
        self.check(&mut draft);
        self.end_in_worktree(&mut draft);
        self.drafts.push(draft);
        self.nested(entries, number, depth);
        if let Some(include) = include {
            self.within(Segment::Key(INCLUDE), |reader| reader.included(number, &include));
        }
        Some(number)
    }

    /// Writes the defaults of the task and the plan into the calls. A field that is `null` keeps the plan's default away.
    fn fill_calls(&self, draft: &mut Draft<'n>, entries: &'n [Entry<'n>]) {
        let nulls: Vec<&str> =
            entries.iter().filter(|entry| entry.value.is_null()).map(|entry| &*entry.key).collect();
        let defaults = std::mem::take(&mut draft.program).or(&self.defaults.program, &nulls);
        for call in &mut draft.task.calls {
            defaults.fill(&mut call.spec);
            call.spec.fill_interpreter();
        }
    }

    fn task_field(&mut self, draft: &mut Draft<'n>, entry: &'n Entry<'n>) {
        let (key, node) = (&*entry.key, &entry.value);
        match key {
            "id" => {
                draft.marks.named |= !node.is_null();
                draft.task.id = self.option(node, Self::id).map(TaskId::from);
            }
            "needs" | "dependencies" => self.needs(draft, entry),
            // Nested tasks are read when this one is complete, because drafts are ordered by parent.
            "subtasks" => {
                let is_given = node.as_list().is_none_or(|list| !list.is_empty()) && !node.is_null();
                draft.marks.subtasks = is_given.then_some(node.at);
            }
            "run" | "call" | "calls" | "toolCalls" => self.task_calls(draft, key, entry),
            // Read when the other calls are complete.
            VERIFY | ARTIFACTS | INCLUDE => {}
            "context" => self.context(draft, key, entry),
            "metadata" => self.metadata(draft, node),
            _ if self.program_field(&mut draft.program, entry, 0) => {}
            _ => {
                draft.marks.note(key, node);
                self.spec_field(&mut draft.task.spec, entry);
            }
        }
    }

    /// Reads a field of the task's specification. `null` means the default.
    pub(super) fn spec_field(&mut self, spec: &mut TaskSpec, entry: &'n Entry<'n>) {
        let node = &entry.value;
        match &*entry.key {
            "name" => spec.name = self.option(node, Self::filled_text).unwrap_or_default(),
            "description" => spec.description = self.option(node, Self::text).unwrap_or_default(),
            "links" => spec.links = self.option(node, Self::links),
            "forEach" => spec.for_each = self.option(node, Self::for_each),
            "repeat" => spec.repeat = self.option(node, Self::repeat),
            "rework" => spec.rework = self.option(node, Self::count),
            "milestone" => spec.milestone = self.option(node, Self::flag).unwrap_or_default(),
            _ => self.option_field(spec, entry),
        }
    }

    /// Reads a field that is also allowed in the defaults.
    fn option_field(&mut self, spec: &mut TaskSpec, entry: &'n Entry<'n>) {
        let (key, node) = (&*entry.key, &entry.value);
        match key {
            "priority" => spec.priority = self.option(node, Self::priority).unwrap_or_default(),
            "dueDate" => spec.due_date = self.option(node, Self::date),
            "notBefore" => spec.not_before = self.option(node, Self::date),
            "assignee" => spec.assignee = self.option(node, Self::filled_text),
            "labels" => spec.labels = self.texts(node),
            "trigger" => spec.trigger = self.option(node, Self::trigger),
            "when" => spec.when = self.option(node, Self::when),
            "mode" => spec.mode = self.option(node, Self::mode),
            "retry" => spec.retry = self.option(node, Self::retry),
            "timeout" => spec.timeout = self.option(node, Self::period),
            "resources" => spec.resources = self.resources(node),
            "writes" => spec.writes = self.checked_texts(node, fault::check_path),
            "worktree" => spec.worktree = self.option(node, Self::worktree).map(Box::new),
            "runsOn" => spec.runs_on = self.checked_texts(node, fault::check_worker_label),
            "sends" => spec.sends = self.checked_texts(node, fault::check_pattern),
            "sandbox" => spec.sandbox = self.option(node, Self::sandbox),
            "trustInputs" => spec.trust_inputs = self.texts(node),
            "approval" => spec.approval = self.option(node, Self::approval),
            "cache" => spec.cache = self.option(node, Self::cache),
            "estimate" => spec.estimate = self.option(node, Self::period),
            _ => self.unknown(&mut spec.extra, &TASK, (key, entry.key_at), node),
        }
    }

    fn priority(&mut self, node: &'n Node<'n>) -> Option<Priority> {
        self.word(node, "priority", Priority::ALL, Priority::from_word)
    }

    fn trigger(&mut self, node: &'n Node<'n>) -> Option<Trigger> {
        self.word(node, "trigger", Trigger::ALL, Trigger::from_word)
    }

    fn mode(&mut self, node: &'n Node<'n>) -> Option<Mode> {
        self.word(node, "mode", Mode::ALL, Mode::from_word)
    }

    fn needs(&mut self, draft: &mut Draft<'n>, entry: &'n Entry<'n>) {
        if self.once(&mut draft.marks.needs, &entry.key, entry.key_at) {
            draft.needs = self.references(&entry.key, &entry.value);
        }
    }

    fn references(&mut self, field: &'n str, node: &'n Node<'n>) -> Vec<Reference<'n>> {
        let in_list = node.as_list().is_some();
        let mut index = 0;
        self.one_or_many(node, |reader, item| {
            let place = in_list.then_some(index);
            index += 1;
            reader.filled(item).map(|text| Reference { text, at: item.at, field, index: place })
        })
    }

    fn task_calls(&mut self, draft: &mut Draft<'n>, field: &'n str, entry: &'n Entry<'n>) {
        if !self.once(&mut draft.marks.calls, field, entry.key_at) {
            return;
        }
        if field == "run" {
            let mut spec = CallSpec::default();
            self.run(&mut spec, &entry.value);
            self.args_site(&spec.tool_name, &entry.value, 0);
            self.tool_place(0, entry.value.at);
            draft.task.calls = vec![NewCall { id: None, spec: spec.into() }];
        } else {
            draft.task.calls = self.calls(&entry.value);
        }
    }

    fn context(&mut self, draft: &mut Draft<'n>, field: &'n str, entry: &'n Entry<'n>) {
        if self.once(&mut draft.marks.context, field, entry.key_at) {
            draft.task.context = self.map(&entry.value);
        }
    }

    fn metadata(&mut self, draft: &mut Draft<'n>, node: &'n Node<'n>) {
        let entries = self.option(node, |reader, node| reader.entries(node, "an object")).unwrap_or_default();
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| match &*entry.key {
                "toolCalls" => reader.task_calls(draft, "metadata.toolCalls", entry),
                "context" => reader.context(draft, "metadata.context", entry),
                _ => reader.own_metadata(&mut draft.task.spec.metadata, entry),
            });
        }
    }

    /// Reads a metadata field of the author's own. Names that resemble `toolCalls` or `context` are refused.
    pub(super) fn own_metadata(&mut self, metadata: &mut Map, entry: &'n Entry<'n>) {
        if let Some((problem, hint)) = refused_metadata_field(&entry.key) {
            self.report_with(entry.key_at, problem, hint);
        }
        let value = self.json(&entry.value);
        metadata.insert(entry.key.to_string(), value);
    }

    /// Records which field gave a value that several fields can give. Every further one is refused.
    fn once(&mut self, given: &mut Option<&'n str>, field: &'n str, at: Position) -> bool {
        if let Some(first) = given {
            let problem = PlanProblem::Both { first: (*first).to_owned(), second: field.to_owned() };
            self.report_with(at, problem, "they mean the same; keep one");
            return false;
        }
        *given = Some(field);
        true
    }

    fn nested(&mut self, entries: &'n [Entry<'n>], parent: usize, depth: usize) {
        let Some(entry) = entries.iter().find(|entry| entry.key == "subtasks") else { return };
        self.within(Segment::Key("subtasks"), |reader| {
            let in_list = entry.value.as_list().is_some();
            let mut index = 0;
            let subtasks = reader.one_or_many(&entry.value, |reader, item| {
                index += 1;
                let place = Place::Nested { parent, index: index - 1 };
                let named = |text| Reference {
                    text,
                    at: item.at,
                    field: "subtasks",
                    index: in_list.then_some(index - 1),
                };
                if item.as_str().is_some() {
                    reader.filled(item).map(|text| Subtask::Named(named(text)))
                } else if reader.is_full(item) {
                    None
                } else {
                    reader.task(item, place, depth + 1).map(Subtask::Nested)
                }
            });
            reader.drafts[parent].subtasks = subtasks;
        });
    }

    fn check(&mut self, draft: &mut Draft<'n>) {
        self.check_named(draft);
        if draft.task.spec.repeat.is_some() && draft.task.calls.is_empty() {
            let problem = PlanProblem::Missing { field: "calls", of: "a task with `repeat`" };
            self.report_with(draft.task.at, problem, "give it `run` or `call`: `repeat` repeats its calls");
        }
        if let Some((field, hint)) =
            fault::rework(&draft.task.spec, draft.task.calls.iter().map(|call| &*call.spec))
        {
            let problem = PlanProblem::Missing { field, of: "a task with `rework`" };
            self.within(Segment::Key("rework"), |reader| reader.report_with(draft.task.at, problem, hint));
        }
        self.check_approval_after(draft);
        draft.drop_lone_trigger();
        let (spec, marks) = (&draft.task.spec, &draft.marks);
        if let (Some(at), Some(trigger)) = (marks.trigger, spec.trigger)
            && needs_dependencies(trigger)
            && draft.needs.is_empty()
        {
            let problem = PlanProblem::TriggerAlone { trigger: trigger.to_string() };
            self.within(Segment::Key("trigger"), |reader| reader.report(at, problem));
        }
        if let (Some(at), true, [_, ..]) = (marks.milestone, spec.milestone, draft.task.calls.as_slice()) {
            let hint = "leave out `milestone`; a task with calls ends with them";
            let problem = PlanProblem::MilestoneWithCalls;
            self.within(Segment::Key("milestone"), |reader| reader.report_with(at, problem, hint));
        }
        if let (Some(at), Some(_)) = (marks.subtasks, &spec.for_each) {
            let problem = PlanProblem::NotWith { field: "subtasks", with: "forEach" };
            let hint = "give the calls to the task itself: they run once for each item";
            self.within(Segment::Key("subtasks"), |reader| reader.report_with(at, problem, hint));
        }
        if let Some(at) = marks.resources {
            self.within(Segment::Key("resources"), |reader| reader.check_capacity(at, &spec.resources));
        }
    }

    /// Checks a question about the result of a task. One of the defaults is for tasks that have a result to ask about.
    fn check_approval_after(&mut self, draft: &mut Draft<'n>) {
        let calls = draft.task.calls.iter().map(|call| &*call.spec);
        let Some((with, hint)) = fault::against_approval_after(&draft.task.spec, calls) else { return };
        match draft.marks.approval {
            Some(at) => {
                let problem = PlanProblem::NotWith { field: "approval: {after: true}", with };
                self.within(Segment::Key("approval"), |reader| reader.report_with(at, problem, hint));
            }
            None => draft.task.spec.approval = None,
        }
    }

    /// Gives a task with a worktree the call that commits its work. A worktree of the defaults is for tasks whose calls can run in one.
    fn end_in_worktree(&mut self, draft: &mut Draft<'n>) {
        let Some(worktree) = draft.task.spec.worktree.take() else { return };
        let calls = &draft.task.calls;
        let against = fault::against_worktree(&draft.task.spec, calls.iter().map(|call| &*call.spec));
        match (draft.marks.worktree, against) {
            (None, Some(_)) => {
                draft.task.calls.retain(|call| call.spec.part() != CallPart::Setup);
                return;
            }
            (Some(at), Some((with, hint))) => {
                let problem = PlanProblem::NotWith { field: "worktree", with };
                self.within(Segment::Key("worktree"), |reader| reader.report_with(at, problem, hint));
                return;
            }
            (_, None) => {}
        }
        draft.task.spec.worktree = Some(worktree);
        if draft.task.calls.iter().all(|call| call.spec.part() != CallPart::Commit) {
            let spec = CallSpec { tool_name: WORKTREE_TOOL.to_owned(), ..CallSpec::default() };
            draft.task.calls.push(NewCall { id: Some(WORKTREE_CALL.into()), spec: spec.into() });
        }
    }

    /// Checks that a task has an id or a name. A task with only an id uses it as its name.
    fn check_named(&mut self, draft: &mut Draft<'n>) {
        if !draft.task.spec.name.is_empty() {
            return;
        }
        match &draft.task.id {
            Some(id) => id.as_str().clone_into(&mut draft.task.spec.name),
            // The given id or name was invalid and reported.
            None if draft.marks.named => {}
            None => {
                self.report(draft.task.at, PlanProblem::Missing { field: "`id` or `name`", of: TASK.what() });
            }
        }
    }

    /// Reads the defaults of a plan.
    pub(super) fn defaults(&mut self, node: &'n Node<'n>) {
        let (mut spec, mut program) = (TaskSpec::default(), ProgramDefaults::default());
        let entries = self.option(node, |reader, node| reader.entries(node, "an object")).unwrap_or_default();
        self.in_defaults = true;
        for entry in entries {
            self.within(Segment::Key(&entry.key), |reader| {
                if !reader.program_field(&mut program, entry, 0) {
                    reader.default_field(&mut spec, entry);
                }
            });
        }
        self.in_defaults = false;
        // The defaults are stored in their normal form, but a field that is not part of it stays as written.
        let written = super::expand::spec_fields(&spec);
        for entry in entries {
            let value = written.get(&*entry.key).cloned().unwrap_or_else(|| self.json(&entry.value));
            // The calls that prepare a worktree are no part of the normal form.
            let has_calls =
                entry.key == "worktree" && !spec.worktree.as_ref().is_none_or(|tree| tree.setup.is_empty());
            let value = if has_calls { self.json(&entry.value) } else { value };
            self.defaults.given.insert(entry.key.to_string(), value);
        }
        (self.defaults.spec, self.defaults.program) = (spec, program);
    }

    fn default_field(&mut self, spec: &mut TaskSpec, entry: &'n Entry<'n>) {
        if NO_DEFAULTS.iter().chain(&STRUCTURE).any(|field| *field == entry.key) {
            let problem = PlanProblem::NotHere { field: entry.key.to_string(), of: "the defaults of a plan" };
            return self.report_with(entry.key_at, problem, "set it on each task that needs it");
        }
        self.option_field(spec, entry);
        if entry.key == "resources" {
            self.check_capacity(entry.value.at, &spec.resources);
        }
    }
}

/// The fields that describe a single task and cannot be defaults, beside those of [`STRUCTURE`].
const NO_DEFAULTS: [&str; 8] =
    ["name", "description", "links", "forEach", "repeat", "rework", "milestone", "metadata"];

/// The fields that are not allowed in a change of one task's own fields.
pub(super) const STRUCTURE: [&str; 12] = [
    "id",
    "dependencies",
    "needs",
    "subtasks",
    "run",
    "call",
    "calls",
    "toolCalls",
    VERIFY,
    ARTIFACTS,
    INCLUDE,
    "context",
];

fn needs_dependencies(trigger: Trigger) -> bool {
    match trigger {
        Trigger::AnyDone | Trigger::AnyFailed => true,
        Trigger::AllDone | Trigger::AllFinished => false,
    }
}

impl Marks<'_> {
    fn note(&mut self, field: &str, node: &Node) {
        let mark = match field {
            "name" => {
                self.named |= !node.is_null();
                return;
            }
            "milestone" => &mut self.milestone,
            "trigger" => &mut self.trigger,
            "resources" => &mut self.resources,
            "worktree" => &mut self.worktree,
            "approval" => &mut self.approval,
            _ => return,
        };
        *mark = Some(node.at);
    }
}

impl Draft<'_> {
    /// Removes a trigger from the defaults on a task without dependencies, which it would block forever.
    fn drop_lone_trigger(&mut self) {
        let trigger = &mut self.task.spec.trigger;
        if self.needs.is_empty() && self.marks.trigger.is_none() && trigger.is_some_and(needs_dependencies) {
            *trigger = None;
        }
    }

    /// Returns the id, or the name without one, for messages.
    pub(super) fn label(&self) -> &str {
        self.task.id.as_ref().map_or(&self.task.spec.name, TaskId::as_str)
    }
}
