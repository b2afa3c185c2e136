//! Checks the expressions of a plan when it is read: their syntax, and the availability of everything they refer to.

use std::collections::{BTreeMap, BTreeSet};

use taskpawl_text::nearest;

use super::linker::Linker;
use super::node::{Content, Node, shortened};
use super::places::Places;
use super::reader::{Reader, push_index, push_key};
use super::site::{Site, Stage};
use super::{PlanError, PlanProblem, PlanTask};
use crate::advice::hint::Hint;
use crate::expr::{self, ExprError, ExprFault, Mention, Name, check_no_expression, text_mentions};
use crate::task::{Approval, CallPart, CallSpec, MERGE_TOOL, Mode, NewCall};
use taskpawl_json::Position;

/// For each draft, the drafts to which the names in its expressions refer.
pub(super) type Names = Vec<BTreeMap<String, usize>>;

/// Checks the expressions of a plan whose tasks are linked.
pub(super) fn check(reader: &mut Reader<'_>, linker: &Linker<'_, '_>) -> Names {
    let mut names = vec![BTreeMap::new(); linker.drafts.len()];
    let sites = std::mem::take(&mut reader.sites);
    let mut found = Found::new(reader.source);
    let params = (!reader.is_part).then_some(reader.params.as_slice());
    // Expressions in the defaults have no draft. They apply to all tasks that do not override them at the same stage.
    let own: BTreeSet<(usize, Stage)> =
        sites.iter().filter_map(|site| Some((site.draft?, site.stage))).collect();
    for site in &sites {
        let before = found.errors.len();
        let mentions = found.mentions(site);
        let tasks: Vec<usize> = match site.draft {
            Some(draft) => vec![draft],
            None => own_drafts(linker).filter(|draft| !own.contains(&(*draft, site.stage))).collect(),
        };
        for number in tasks {
            let scope = Scope::new(&linker.drafts[number].task, site.stage, params);
            found.errors[before..].iter_mut().for_each(|error| scope.say_where(error));
            for mention in &mentions {
                let Name::Task { task, .. } = &mention.name else {
                    found.scoped(mention, &scope);
                    continue;
                };
                match linker.refer(number, task, site.stage) {
                    // Values of `with` are expressions of the included tasks.
                    Ok(Some(_)) if site.stage == Stage::With => {}
                    Ok(Some(other)) => _ = names[number].insert(task.clone(), other),
                    Ok(None) => {}
                    Err((PlanProblem::UnknownTask { .. }, _)) if reader.is_part => {}
                    // The caller may add the missing dependency when the part joins the plan.
                    Err((PlanProblem::NoDependency { .. }, _)) if reader.is_part => {
                        names[number].extend(linker.one(task).map(|other| (task.clone(), other)));
                    }
                    Err((problem, hint)) => found.report(mention, problem, hint),
                }
            }
        }
    }
    reader.errors.append(&mut found.errors);
    names
}

/// Returns the drafts to which the defaults of the plan apply. Included tasks have those of their plan.
fn own_drafts(linker: &Linker<'_, '_>) -> impl Iterator<Item = usize> {
    let is_own = |draft: &usize| !linker.drafts[*draft].is_included();
    (0..linker.drafts.len()).filter(is_own)
}

/// Checks the expressions of a single task. References to other tasks are left to the store.
pub(super) fn check_task(reader: &mut Reader<'_>, task: &PlanTask) {
    check_each(reader, |stage| Some(Scope::new(task, stage, None)));
}

/// Checks only the syntax, for input whose task is unknown.
pub(super) fn check_syntax(reader: &mut Reader<'_>) {
    check_each(reader, |_| None);
}

fn check_each<'t>(reader: &mut Reader<'_>, scope: impl Fn(Stage) -> Option<Scope<'t>>) {
    let sites = std::mem::take(&mut reader.sites);
    let mut found = Found::new(reader.source);
    for site in &sites {
        let before = found.errors.len();
        let mentions = found.mentions(site);
        let Some(scope) = scope(site.stage) else { continue };
        found.errors[before..].iter_mut().for_each(|error| scope.say_where(error));
        for mention in &mentions {
            found.scoped(mention, &scope);
        }
    }
    reader.errors.append(&mut found.errors);
}

/// A name in an expression, with its position in the file.
pub(super) struct Placed {
    at: Position,
    path: String,
    pub(super) name: Name,
}

/// The results of checking expressions.
pub(super) struct Found<'n> {
    source: &'n str,
    /// Created on first use: it indexes the lines of the whole file, and most plans have no errors to locate.
    places: Option<Places<'n>>,
    pub(super) errors: Vec<PlanError>,
}

impl<'n> Found<'n> {
    pub(super) fn new(source: &'n str) -> Self {
        Self { source, places: None, errors: Vec::new() }
    }

    pub(super) fn report(&mut self, mention: &Placed, problem: PlanProblem, hint: Option<String>) {
        let hint = hint.map(Hint::from);
        self.errors.push(PlanError { at: mention.at, path: mention.path.clone(), problem, hint });
    }

    pub(super) fn scoped(&mut self, mention: &Placed, scope: &Scope) {
        if let Some((problem, hint)) = scope.problem(&mention.name) {
            self.report(mention, problem, hint);
        }
    }

    fn position_of(&mut self, at: Position, text: &str, offset: usize) -> Position {
        if self.source.is_empty() {
            return at;
        }
        self.places.get_or_insert_with(|| Places::new(self.source)).within(at, text, offset)
    }

    /// Returns the names in the expressions of a site, and reports syntax errors.
    pub(super) fn mentions(&mut self, site: &Site<'_>) -> Vec<Placed> {
        let mut placed = Vec::new();
        if site.bare {
            let text = site.node.as_str().unwrap_or_default();
            self.text(site.node, text, &site.path, expr::condition_mentions(text), &mut placed);
        } else {
            let is_shell = ["shell", MERGE_TOOL].contains(&site.tool.as_str());
            self.walk(site.node, &mut site.path.clone(), (is_shell, 0), &mut placed);
        }
        placed
    }

    /// Walks a value. The command of a shell call is the value itself, or the field `command` of its arguments.
    fn walk(
        &mut self,
        node: &Node,
        path: &mut String,
        (shell, level): (bool, usize),
        placed: &mut Vec<Placed>,
    ) {
        let length = path.len();
        match &node.content {
            Content::Null | Content::Bool(_) | Content::Number(_) => {}
            Content::Text(text) => {
                let is_command = shell && (level == 0 || level == 1);
                self.text(node, text, path, text_mentions(text, is_command), placed);
            }
            Content::List(items) => {
                for (index, item) in items.iter().enumerate() {
                    push_index(path, index);
                    self.walk(item, path, (false, level + 1), placed);
                    path.truncate(length);
                }
            }
            Content::Object(entries) => {
                for entry in entries {
                    push_key(path, &entry.key);
                    if let Err(error) = check_no_expression(&entry.key) {
                        self.errors.push(PlanError {
                            at: entry.key_at,
                            path: path.clone(),
                            hint: error.hint.map(Hint::from),
                            problem: error.fault.into(),
                        });
                    }
                    self.walk(
                        &entry.value,
                        path,
                        (shell && level == 0 && ["command", "check"].contains(&&*entry.key), level + 1),
                        placed,
                    );
                    path.truncate(length);
                }
            }
        }
    }

    fn text(
        &mut self,
        node: &Node,
        text: &str,
        path: &str,
        read: Result<Vec<Mention>, ExprError>,
        placed: &mut Vec<Placed>,
    ) {
        match read {
            Ok(mentions) => {
                for Mention { offset, name, .. } in mentions {
                    let at = self.position_of(node.at, text, offset);
                    placed.push(Placed { at, path: path.to_owned(), name });
                }
            }
            Err(error) => {
                let at = self.position_of(node.at, text, error.offset);
                let (problem, hint) = (error.fault.into(), error.hint.map(Hint::from));
                self.errors.push(PlanError { at, path: path.to_owned(), problem, hint });
            }
        }
    }
}

/// The data available to an expression, apart from other tasks.
pub(crate) struct Scope<'t> {
    context: BTreeSet<String>,
    has_item: bool,
    /// The parameters, if they are known.
    params: Option<&'t [String]>,
    stage: Stage,
    is_parallel: bool,
}

impl<'t> Scope<'t> {
    pub(crate) fn new(task: &PlanTask, stage: Stage, params: Option<&'t [String]>) -> Self {
        let mut context: BTreeSet<String> = task.context.keys().cloned().collect();
        let earlier = match stage {
            Stage::Until => task.calls.len(),
            Stage::CallWhen(call) | Stage::Args(call) if task.spec.mode != Some(Mode::Parallel) => call,
            Stage::When
            | Stage::List
            | Stage::Key
            | Stage::CallWhen(_)
            | Stage::Args(_)
            | Stage::With
            | Stage::Returns => 0,
        };
        let is_setup =
            |call: usize| task.calls.get(call).is_some_and(|call| call.spec.part() == CallPart::Setup);
        // Calls that prepare a worktree come after the others in the list, and run before them.
        let is_first = matches!(stage, Stage::CallWhen(call) | Stage::Args(call) if is_setup(call));
        let earlier = if is_first { 0 } else { earlier };
        context.extend(call_names(&task.calls).into_iter().take(earlier));
        if asks_before(task, stage, earlier) {
            context.insert("approval".to_owned());
        }
        let has_item = task.spec.for_each.is_some() && !matches!(stage, Stage::When | Stage::List);
        let is_parallel = task.spec.mode == Some(Mode::Parallel);
        Self { context, has_item, params, stage, is_parallel }
    }

    /// Marks the task as an item of a `forEach`.
    pub(crate) fn with_item(self, is_item: bool) -> Self {
        Self { has_item: self.has_item || is_item, ..self }
    }

    /// Improves the hint for a bare name that is a parameter or a context value: it needs `params.` or `context.`
    /// before it.
    fn say_where(&self, error: &mut PlanError) {
        let PlanProblem::Expression(ExprFault::UnknownName { name }) = &error.problem else { return };
        let root = if self.params.is_some_and(|params| params.contains(name)) {
            "params"
        } else if self.context.contains(name) {
            "context"
        } else {
            return;
        };
        error.hint = Some(format!("did you mean `{root}.{name}`? Put text in quotes").into());
    }

    /// Returns the problem with a name that is not available here.
    pub(crate) fn problem(&self, name: &Name) -> Option<(PlanProblem, Option<String>)> {
        if let Some(problem) = problem_outside_tasks(self.stage, name) {
            return Some(problem);
        }
        match name {
            Name::Param(name) => {
                let known = self.params?;
                let is_known = known.iter().any(|other| other == name);
                (!is_known).then(|| unknown_param(name, known))
            }
            Name::Context(name) if !self.context.contains(name) => Some(self.unknown_context(name)),
            Name::Item | Name::Index if !self.has_item => Some(self.no_item(name)),
            Name::Variable(name) if !matches!(self.stage, Stage::Args(_)) => {
                let problem = ExprFault::VariableElsewhere { name: shortened(name) };
                let hint = "declare a parameter and pass it to the run: `--param NAME=VALUE`";
                Some((problem.into(), Some(hint.to_owned())))
            }
            Name::Variable(_)
            | Name::Context(_)
            | Name::Item
            | Name::Index
            | Name::Attempt
            | Name::Task { .. } => None,
        }
    }

    fn unknown_context(&self, name: &str) -> (PlanProblem, Option<String>) {
        let problem = PlanProblem::UnknownContext { name: shortened(name) };
        let known: Vec<String> = self.context.iter().take(8).map(|name| format!("`{name}`")).collect();
        let hint = match nearest(name, self.context.iter().map(String::as_str)) {
            Some(near) if near.contains('-') => format!("did you mean `context['{near}']`?"),
            Some(near) => format!("did you mean `{near}`?"),
            None if matches!(self.stage, Stage::When | Stage::List | Stage::Key) => {
                "before the calls it contains only the task's own `context`".to_owned()
            }
            None if self.is_parallel => {
                "calls with `mode: parallel` do not see each other's results".to_owned()
            }
            None if known.is_empty() => {
                "it contains the task's `context` and the results of earlier calls, by `saveAs` or `id`"
                    .to_owned()
            }
            None => format!("the known names are {}", crate::value::bounded::list(known, ", ")),
        };
        (problem, Some(hint))
    }

    fn no_item(&self, name: &Name) -> (PlanProblem, Option<String>) {
        let name = if *name == Name::Item { "item" } else { "index" };
        let hint = match self.stage {
            Stage::List | Stage::When | Stage::With | Stage::Returns => {
                "this is evaluated once, before the items exist"
            }
            Stage::Key | Stage::CallWhen(_) | Stage::Args(_) | Stage::Until => {
                "give the task `forEach: {in: …}`"
            }
        };
        (PlanProblem::NoItem { name }, Some(hint.to_owned()))
    }
}

/// Returns the problem with a name in a field that belongs to no task.
fn problem_outside_tasks(stage: Stage, name: &Name) -> Option<(PlanProblem, Option<String>)> {
    let of = match stage {
        Stage::With => "`with`",
        Stage::Returns => "`returns`",
        Stage::When | Stage::List | Stage::Key | Stage::CallWhen(_) | Stage::Args(_) | Stage::Until => {
            return None;
        }
    };
    let field = match name {
        Name::Param(_) | Name::Task { .. } => return None,
        Name::Context(_) => "context",
        Name::Variable(_) => "env",
        Name::Item => "item",
        Name::Index => "index",
        Name::Attempt => "attempt",
    };
    let problem = PlanProblem::NotHere { field: field.to_owned(), of };
    Some((problem, Some("it may read `params` and `tasks` of its plan".to_owned())))
}

/// Returns the error for an unknown parameter.
pub(crate) fn unknown_param(name: &str, known: &[String]) -> (PlanProblem, Option<String>) {
    let hint = near_param(name, known)
        .unwrap_or_else(|| format!("declare it: `params: {{{name}: {{type: string}}}}`"));
    (PlanProblem::UnknownParam { name: shortened(name) }, Some(hint))
}

/// Suggests the parameter with the most similar name.
pub(super) fn near_param(name: &str, known: &[String]) -> Option<String> {
    nearest(name, known.iter().map(String::as_str)).map(|near| format!("did you mean `{near}`?"))
}

/// Returns whether an approval was decided before this stage, so that `context.approval` exists.
fn asks_before(task: &PlanTask, stage: Stage, earlier: usize) -> bool {
    let asks = |approval: &Option<Approval>| approval.is_some();
    let at_all = matches!(stage, Stage::CallWhen(_) | Stage::Args(_) | Stage::Until);
    at_all
        && (task.spec.approval_before().is_some()
            || task.calls.iter().take(earlier).any(|call| asks(&call.spec.approval))
            || asks_itself(task, stage))
}

/// Returns whether these are the arguments of a call with a question: they are evaluated after the answer.
fn asks_itself(task: &PlanTask, stage: Stage) -> bool {
    let Stage::Args(call) = stage else { return false };
    let approval = task.calls.get(call).and_then(|call| call.spec.approval.as_ref());
    approval.is_some_and(|approval| approval.question().is_some())
}

/// Returns the names of the calls' results, in order. Missing ids are generated as in the store.
pub(super) fn call_names(calls: &[NewCall]) -> Vec<String> {
    let taken: BTreeSet<&str> =
        calls.iter().filter_map(|call| call.id.as_ref()).map(crate::value::CallId::as_str).collect();
    let mut number = 0;
    let mut next = || {
        loop {
            number += 1;
            let id = format!("c{number}");
            if !taken.contains(id.as_str()) {
                return id;
            }
        }
    };
    let name = |call: &NewCall| {
        let id = call.id.as_ref().map_or_else(&mut next, ToString::to_string);
        saved_as(&call.spec).unwrap_or(id)
    };
    calls.iter().map(name).collect()
}

fn saved_as(call: &CallSpec) -> Option<String> {
    call.save_as.clone()
}
