//! Tool calls and their short forms.
//!
//! The long form is `{toolName: exec, args: {…}}`. The short forms are `{run: "cargo test"}` for the tool `shell`,
//! `{run: [cargo, test]}` for `exec`, and `{TOOL: args}`. All three accept the other options of a call.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::PlanProblem;
use super::draft::Draft;
use super::node::{Entry, Node, shortened};
use super::program::ProgramDefaults;
use super::reader::{Reader, Segment};
use super::site::Stage;
use super::vocabulary::{CALL, SETUP, VERIFY, is_own_field};
use crate::task::fault;
use crate::task::{CallPart, CallSpec, NewCall, PlanAccess};
use crate::value::Map;
use crate::value::{CallId, Shared};
use taskpawl_json::Position;

const EXPECTED: &str = "a tool call such as `{run: \"cargo test\"}` or `{TOOL: args}`";

#[derive(Clone, Copy, PartialEq)]
enum Form {
    Long,
    Run,
    Tool,
}

impl<'n> Reader<'n> {
    /// Reads one call or a list of calls.
    pub(super) fn calls(&mut self, node: &'n Node<'n>) -> Vec<NewCall> {
        self.calls_after(node, 0)
    }

    /// Reads calls that follow `before` others of the task.
    fn calls_after(&mut self, node: &'n Node<'n>, before: usize) -> Vec<NewCall> {
        let mut ids: HashMap<&'n str, Position> = HashMap::new();
        let mut number = before;
        self.one_or_many(node, |reader, item| {
            reader.check_call_id(&mut ids, item);
            number += 1;
            reader.numbered_call(item, number - 1)
        })
    }

    /// Reads the calls that verify a task whose other calls are read already: expressions name calls by their order.
    pub(super) fn verifications(&mut self, calls: &mut Vec<NewCall>, entries: &'n [Entry<'n>]) {
        let Some(entry) = entries.iter().find(|entry| entry.key == VERIFY && !entry.value.is_null()) else {
            return;
        };
        self.within(Segment::Key(VERIFY), |reader| {
            if calls.is_empty() {
                let problem = PlanProblem::Missing { field: "calls", of: "a task with `verify`" };
                let hint =
                    "give it `run` or `call`: `verify` runs after them; a check alone is a task of its own";
                reader.report_with(entry.key_at, problem, hint);
            }
            for mut call in reader.calls_after(&entry.value, calls.len()) {
                call.spec.verify = true;
                if let Some(id) =
                    call.id.as_ref().filter(|id| calls.iter().any(|own| own.id.as_ref() == Some(id)))
                {
                    let problem =
                        PlanProblem::DuplicateId { id: shortened(id.as_str()), first: entry.key_at };
                    reader.report(entry.key_at, problem);
                }
                calls.push(call);
            }
        });
    }

    /// Reads the calls that prepare a worktree, after `before` others of the task. Their ids do not depend on the number of others, so that
    /// they do not run again when the work changes.
    pub(super) fn setup_calls(&mut self, node: &'n Node<'n>, before: usize) -> Vec<NewCall> {
        let mut calls = self.calls_after(node, before);
        for (number, call) in calls.iter_mut().enumerate() {
            call.spec.setup = true;
            let id = || if number == 0 { SETUP.to_owned() } else { format!("{SETUP}{}", number + 1) };
            call.id.get_or_insert_with(|| CallId::from(id()));
        }
        calls
    }

    /// Adds the calls that prepare the worktree of a task: its own, or those of the defaults.
    pub(super) fn setups(&mut self, draft: &mut Draft<'n>, entries: &'n [Entry<'n>]) {
        let calls = &mut draft.task.calls;
        let of_defaults = draft.task.spec.worktree.as_mut().map(|tree| std::mem::take(&mut tree.setup));
        if !calls.iter().any(|call| call.spec.part() == CallPart::Work) {
            return;
        }
        calls.extend(of_defaults.into_iter().flatten());
        let worktree = entries.iter().find(|entry| entry.key == "worktree");
        let fields = worktree.and_then(|entry| entry.value.as_object()).unwrap_or_default();
        let Some(setup) = fields.iter().find(|entry| entry.key == SETUP && !entry.value.is_null()) else {
            return;
        };
        self.within(Segment::Key("worktree"), |reader| {
            reader.within(Segment::Key(SETUP), |reader| {
                for call in reader.setup_calls(&setup.value, calls.len()) {
                    if calls.iter().any(|own| own.id == call.id) {
                        let id = call.id.as_ref().map_or("", CallId::as_str);
                        let problem = PlanProblem::DuplicateId { id: shortened(id), first: setup.key_at };
                        reader.report(setup.key_at, problem);
                    }
                    calls.push(call);
                }
            });
        });
    }

    fn check_call_id(&mut self, ids: &mut HashMap<&'n str, Position>, node: &'n Node<'n>) {
        let entry = node.as_object().and_then(|entries| entries.iter().find(|entry| entry.key == "id"));
        let Some((entry, id)) = entry.and_then(|entry| Some((entry, entry.value.as_str()?))) else { return };
        if let Some(first) = ids.insert(id, entry.value.at) {
            let problem = PlanProblem::DuplicateId { id: shortened(id), first };
            self.within(Segment::Key("id"), |reader| reader.report(entry.value.at, problem));
        }
    }

    /// Reads a single call that is not part of a list.
    pub(super) fn call(&mut self, node: &'n Node<'n>) -> Option<NewCall> {
        self.numbered_call(node, 0)
    }

    /// Reads the call at index `number` of its task.
    fn numbered_call(&mut self, node: &'n Node<'n>, number: usize) -> Option<NewCall> {
        let entries = self.entries(node, EXPECTED)?;
        let form = form_of(entries);
        let mut call = NewCall { id: None, spec: Shared::default() };
        let mut own = ProgramDefaults::default();
        let mut tools: Vec<&'n Entry<'n>> = Vec::new();
        let errors = self.errors.len();
        // A tool name may look like a field of the author's own, such as `x-tool`. Beside another tool it is such a
        // field.
        let has_tool = entries.iter().any(|entry| Self::names_tool(entry) && !is_own_field(&entry.key));
        let is_tool = |entry: &Entry| Self::names_tool(entry) && !(has_tool && is_own_field(&entry.key));
        for entry in entries {
            if form == Form::Tool && is_tool(entry) {
                tools.push(entry);
            } else {
                self.within(Segment::Key(&entry.key), |reader| {
                    if form != Form::Run || !reader.program_field(&mut own, entry, number) {
                        reader.call_field(&mut call, form, entry);
                    }
                });
            }
        }
        match (form, tools.as_slice()) {
            (Form::Tool, [tool]) => self.short_call(&mut call.spec, tool),
            // A field that resembles the tool was refused already, with a better hint.
            (Form::Tool, []) if self.errors.len() > errors => {}
            (Form::Tool, tools) => self.refuse_tools(node, tools),
            (Form::Long, _)
                if entries.iter().any(|entry| entry.key == "toolName" && entry.value.is_null()) =>
            {
                // An empty `toolName` was reported when it was read. `null` counts as absent there and is reported
                // here.
                self.report(node.at, PlanProblem::Missing { field: "`toolName`", of: CALL.what() });
            }
            _ => {}
        }
        self.call_sites(&call.spec.tool_name, entries, &tools, number);
        own.fill(&mut call.spec);
        Some(call)
    }

    /// Records the expressions of a call. This comes last, because their syntax depends on the tool.
    fn call_sites(&mut self, tool: &str, entries: &'n [Entry<'n>], tools: &[&'n Entry<'n>], number: usize) {
        let args = |entry: &&Entry| matches!(&*entry.key, "args" | "run");
        for entry in entries.iter().filter(args).chain(tools.iter().copied()) {
            self.within(Segment::Key(&entry.key), |reader| reader.args_site(tool, &entry.value, number));
        }
        let named = entries.iter().find(|entry| matches!(&*entry.key, "toolName" | "run"));
        let named = named.map(|entry| (entry, entry.value.at));
        if let Some((entry, at)) = named.or_else(|| tools.first().map(|tool| (*tool, tool.key_at))) {
            self.within(Segment::Key(&entry.key), |reader| reader.tool_place(number, at));
        }
        for entry in entries.iter().filter(|entry| entry.key == "when" && !entry.value.is_null()) {
            self.within(Segment::Key("when"), |reader| {
                reader.expression_site(Stage::CallWhen(number), &entry.value);
            });
        }
    }

    /// Returns whether a field of the form `{TOOL: args}` is the tool. A value that is neither an object nor null
    /// cannot be arguments; the field may then be a misspelled option.
    fn names_tool(entry: &Entry) -> bool {
        let args = entry.value.as_object().is_some() || entry.value.is_null();
        !CALL.is_known(&entry.key) && !CALL.is_state(&entry.key) && (args || !CALL.resembles(&entry.key))
    }

    fn refuse_tools(&mut self, node: &Node, tools: &[&Entry]) {
        let tools = tools.iter().map(|entry| shortened(&entry.key)).collect();
        let hint = "write `{toolName: TOOL, args: {…}}`, or one `TOOL: {…}` for the tool and its arguments";
        self.report_with(node.at, PlanProblem::Tools { tools }, hint);
    }

    fn short_call(&mut self, spec: &mut CallSpec, entry: &'n Entry<'n>) {
        entry.key.trim().clone_into(&mut spec.tool_name);
        if spec.tool_name.is_empty() {
            self.report(entry.key_at, PlanProblem::Blank);
        }
        spec.args = self.within(Segment::Key(&entry.key), |reader| reader.map(&entry.value));
    }

    fn call_field(&mut self, call: &mut NewCall, form: Form, entry: &'n Entry<'n>) {
        let (key, node) = (&*entry.key, &entry.value);
        let spec = &mut call.spec;
        match key {
            "id" => call.id = self.option(node, Self::id).map(CallId::from),
            "toolName" => spec.tool_name = self.option(node, Self::filled_text).unwrap_or_default(),
            "run" | "args" if key != own_field(form) => self.both(entry, form),
            "run" => self.run(spec, node),
            "args" => spec.args = self.map(node),
            "when" => spec.when = self.option(node, Self::filled_text),
            "saveAs" => spec.save_as = self.option(node, Self::identifier),
            "keep" => spec.keep = self.option(node, Self::keep),
            "retry" => spec.retry = self.option(node, Self::retry),
            "timeout" => spec.timeout = self.option(node, Self::period),
            "sandbox" => spec.sandbox = self.option(node, Self::sandbox),
            "trustInputs" => spec.trust_inputs = self.texts(node),
            "approval" => {
                let approval = self.option(node, Self::approval);
                let fits = approval
                    .as_ref()
                    .is_none_or(|approval| self.checked(node, fault::check_approval_of_call(Some(approval))));
                spec.approval = approval.filter(|_| fits);
            }
            "emit" => spec.emit = self.option(node, Self::flag).unwrap_or_default(),
            "verify" => spec.verify = self.option(node, Self::flag).unwrap_or_default(),
            "setup" => spec.setup = self.option(node, Self::flag).unwrap_or_default(),
            "planAccess" => spec.plan_access = self.option(node, Self::plan_access),
            "idempotent" => spec.idempotent = self.option(node, Self::flag),
            _ => self.unknown(&mut spec.extra, &CALL, (key, entry.key_at), node),
        }
    }

    fn both(&mut self, entry: &Entry, form: Form) {
        let first = match form {
            Form::Long => "toolName",
            Form::Run => "run",
            Form::Tool => "TOOL: args",
        };
        let problem = PlanProblem::Both { first: first.to_owned(), second: entry.key.clone().into_owned() };
        let hint = match form {
            Form::Tool => "write `toolName: TOOL` with `args`, or `TOOL: {…}` alone",
            Form::Long | Form::Run => "`run` is short for `toolName` and `args`; keep one of them",
        };
        self.report_with(entry.key_at, problem, hint);
    }

    fn plan_access(&mut self, node: &'n Node<'n>) -> Option<PlanAccess> {
        self.word(node, "access to the plan", PlanAccess::ALL, PlanAccess::from_word)
    }

    /// Reads `run`: a text is a command for the tool `shell`, a list is a program with arguments for `exec`.
    pub(super) fn run(&mut self, spec: &mut CallSpec, node: &'n Node<'n>) {
        let (tool, arg, value): (_, _, Value) = if let Some(words) = node.as_list() {
            if words.is_empty() {
                self.report(node.at, PlanProblem::Blank);
            }
            let argv = self.one_or_many(node, Self::text);
            if argv.first().is_some_and(|program| program.contains(char::is_whitespace)) {
                let hint = "a list is one program with its arguments; write a command line as text, and several as `calls`";
                self.report_with(words[0].at, PlanProblem::CommandAsProgram, hint);
            }
            ("exec", "argv", json!(argv))
        } else if node.as_str().is_some() {
            ("shell", "command", self.filled_text(node).into())
        } else {
            return self.wrong_type(node, "text with a command, or a list with a program and its arguments");
        };
        tool.clone_into(&mut spec.tool_name);
        spec.args = Map::from_iter([(arg.to_owned(), value)]);
    }
}

fn form_of(entries: &[Entry]) -> Form {
    let has = |field: &str| entries.iter().any(|entry| entry.key == field);
    if has("toolName") {
        Form::Long
    } else if has("run") {
        Form::Run
    } else {
        Form::Tool
    }
}

/// Returns the field of `run` and `args` that belongs to a form.
fn own_field(form: Form) -> &'static str {
    match form {
        Form::Long => "args",
        Form::Run => "run",
        Form::Tool => "",
    }
}
