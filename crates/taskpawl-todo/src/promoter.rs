//! `todo_promote`: the tool by which models turn items of their lists into tasks of the plan, if a host offers both. It
//! belongs to no dialect, so its arguments and answers are our own.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use serde_json::{Map, Value, json};
use taskpawl_manager::Manager;
use taskpawl_model::task::ActorKind;
use taskpawl_tools::{CallContext, Tool, ToolError, ToolSpec};

use crate::answer::Answer;
use crate::args::Args;
use crate::dialect::Dialect;
use crate::list::Item;
use crate::lists::{ListError, Lists};
use crate::promote::{Promoted, Promotion, choose};
use crate::prompt::plain_title;
use crate::vocabulary::{Kind, PROMOTE};
use crate::{conversation, session};

/// Largest number of tasks in an answer.
const MAX_LISTED: usize = 10;

/// Longest item name in an answer, in characters.
const MAX_CHARS: usize = 60;

/// Longest name of an agent, in characters.
const MAX_ACTOR: usize = 128;

/// Name of the argument for the agent of a queue.
const AGENT_ID: &str = "agent_id";

#[derive(Debug)]
struct Promoter {
    spec: ToolSpec,
    work: Arc<Work>,
}

#[derive(Debug)]
struct Work {
    lists: Lists,
    dialects: Vec<Dialect>,
    manager: Manager,
    /// Held during a promotion, so that two calls for the same item do not race. Correctness does not depend on it:
    /// other processes can promote as well.
    turn: Mutex<()>,
}

impl Lists {
    /// Returns the tool `todo_promote`, by which models turn items of lists of these dialects into tasks of the plan of
    /// `manager`. It can also read the lists in memory.
    pub fn promoter(&self, dialects: &[Dialect], manager: &Manager) -> Arc<dyn Tool> {
        let (lists, dialects, manager) = (self.clone(), dialects.to_vec(), manager.clone());
        let properties = json!({
            "tasks": {"type": "array"}, "made": {"type": "integer"}, "before": {"type": "integer"}, "leftOut": {"type": "integer"},
        });
        let spec = PROMOTE.spec(self.rule().is_by_argument());
        let spec = spec.with_result(json!({"type": "object", "properties": properties}));
        Arc::new(Promoter { spec, work: Arc::new(Work { lists, dialects, manager, turn: Mutex::default() }) })
    }
}

#[async_trait]
impl Tool for Promoter {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        cx.check()?;
        // The store and the files of lists block, so the work runs on a blocking thread.
        let work = Arc::clone(&self.work);
        let promote = move || check(&args).and_then(|()| work.promote(&cx, Args::of(&args)));
        let done = tokio::task::spawn_blocking(promote);
        match done.await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(refused)) => Answer::error(refused).into_result(),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime shut down before the work started.
                Err(_) => Err(ToolError::Cancelled { result: None }),
            },
        }
    }

    /// As in the tools of the dialects: some clients send every argument, and `null` for those that they do not use.
    fn policy_args(&self) -> Option<Vec<&str>> {
        Some(PROMOTE.all_params(true).map(|param| param.name).collect())
    }
}

/// Refuses unknown arguments and wrong types. A misspelled `items` must not promote everything.
fn check(args: &Value) -> Result<(), String> {
    let Some(args) = args.as_object() else {
        return if args.is_null() { Ok(()) } else { Err("expected an object with arguments".to_owned()) };
    };
    for (name, value) in args.iter().filter(|(_, value)| !value.is_null()) {
        let Some(param) = PROMOTE.all_params(true).find(|param| param.name == name) else {
            let known: Vec<&str> = PROMOTE.all_params(true).map(|param| param.name).collect();
            return Err(format!("{}: unknown argument; the arguments are {}", cut(name), known.join(", ")));
        };
        let (fits, expected) = match param.kind {
            Kind::Flag => (value.is_boolean(), "true or false"),
            Kind::Names => {
                (value.as_array().is_some_and(|names| names.iter().all(is_name)), "a list of ids or titles")
            }
            Kind::Text | Kind::Number | Kind::Word(_) | Kind::List(_) => (value.is_string(), "text"),
        };
        if !fits {
            return Err(format!("{name}: expected {expected}"));
        }
    }
    Ok(())
}

/// Returns whether the value can name an item.
fn is_name(name: &Value) -> bool {
    name.is_string() || name.is_number()
}

impl Work {
    fn promote(&self, cx: &CallContext, args: Args<'_>) -> Result<Value, String> {
        let dialect = self.dialect(args)?;
        let scope = self.scope(dialect, cx, args)?;
        let manager = self.manager.clone().with_actor(actor(cx, args)?).with_kind(ActorKind::Agent);
        let _turn = self.turn.lock().unwrap_or_else(PoisonError::into_inner);
        let items = self.lists.items(dialect, &scope).map_err(|error| unread(&error))?;
        let names = names(args)?;
        let chosen = choose(&items, &names).map_err(|name| unknown(&name, &items))?;
        if chosen.is_empty() {
            return Ok(json!({"tasks": [], "made": 0, "before": 0, "message": "no item is unfinished"}));
        }
        let (items, chosen, plan) = (&items, &chosen, args.filled("plan"));
        let promotion = Promotion { dialect, scope: &scope, items, chosen, plan };
        if args.get("dry_run") == Some(&Value::Bool(true)) {
            let before = promotion.preview(&manager).map_err(|error| error.to_string())?;
            return Ok(answer(tasks_of(&promotion, before), json!({"dryRun": true})));
        }
        let promoted = promotion
            .make(&manager)
            .map_err(|error| format!("{error}; tasks created before the error remain"))?;
        let made = promoted.iter().filter(|task| task.is_new).count();
        let tasks = tasks_of(&promotion, promoted.iter().cloned().map(Some));
        Ok(answer(tasks, json!({"made": made, "before": promoted.len() - made})))
    }

    /// Returns the requested dialect.
    fn dialect(&self, args: Args<'_>) -> Result<Dialect, String> {
        let served = || self.dialects.iter().map(|dialect| dialect.as_str()).collect::<Vec<_>>().join(", ");
        match (args.filled("dialect"), self.dialects.as_slice()) {
            (Some(word), dialects) => {
                let found = dialects.iter().find(|dialect| dialect.as_str() == word);
                found
                    .copied()
                    .ok_or_else(|| format!("dialect: `{word}` is not available: use one of {}", served()))
            }
            (None, [only]) => Ok(*only),
            (None, _) => {
                Err(format!("dialect is required, because several are available: use one of {}", served()))
            }
        }
    }

    /// Returns the requested scope.
    fn scope(&self, dialect: Dialect, cx: &CallContext, args: Args<'_>) -> Result<String, String> {
        let (rule, missing) = (self.lists.rule(), |name: &str| format!("{name} is required"));
        match dialect {
            Dialect::Conversation => {
                rule.named(cx, args, conversation::ARGUMENT).ok_or_else(|| missing(conversation::ARGUMENT))
            }
            Dialect::Checklist | Dialect::TodoList | Dialect::Session => rule
                .any(cx, args, session::ARGUMENT, self.lists.own_scope())
                .ok_or_else(|| missing(session::ARGUMENT)),
            Dialect::Queue => args.filled(AGENT_ID).map(str::to_owned).ok_or_else(|| missing(AGENT_ID)),
        }
    }
}

/// Returns the actor that creates the tasks.
fn actor(cx: &CallContext, args: Args<'_>) -> Result<String, String> {
    let Some(agent) = args.get("agent") else { return Ok(cx.actor.clone()) };
    let is_name =
        |name: &&str| (1..=MAX_ACTOR).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    let agent = agent.as_str().filter(is_name).map(str::to_owned);
    agent.ok_or_else(|| {
        format!("agent: expected text of 1 to {MAX_ACTOR} characters without control characters")
    })
}

/// Returns the names of the requested items; empty means all unfinished items.
fn names(args: Args<'_>) -> Result<Vec<String>, String> {
    let Some(items) = args.get("items").and_then(Value::as_array) else { return Ok(Vec::new()) };
    if items.is_empty() {
        return Err("items: expected at least one; leave it out for all unfinished items".to_owned());
    }
    // Numeric ids are compared by their text.
    let name = |item: &Value| item.as_str().map_or_else(|| item.to_string(), str::to_owned);
    Ok(items.iter().map(name).collect())
}

fn unread(error: &ListError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}

fn unknown(name: &str, items: &[Item]) -> String {
    let known: Vec<String> = items.iter().take(MAX_LISTED).map(|item| cut(&item.line())).collect();
    let more = if items.len() > known.len() {
        format!(" and {} more", items.len() - known.len())
    } else {
        String::new()
    };
    let known =
        if known.is_empty() { "is empty".to_owned() } else { format!("has: {}{more}", known.join("; ")) };
    format!("items: the list has no item `{}`; it {known}", cut(name))
}

fn shown(item: &Item) -> Value {
    json!({"item": cut(&item.id.to_string()), "name": cut(&plain_title(&item.title))})
}

/// Returns the chosen items together with their tasks.
fn tasks_of(promotion: &Promotion<'_>, tasks: impl IntoIterator<Item = Option<Promoted>>) -> Vec<Value> {
    let chosen = promotion.chosen.iter().map(|place| shown(&promotion.items[*place]));
    chosen.zip(tasks).map(|(shown, task)| with_task(shown, task.as_ref())).collect()
}

fn with_task(mut shown: Value, task: Option<&Promoted>) -> Value {
    if let Some(task) = task {
        shown["task"] = json!(task.id);
        shown["isNew"] = json!(task.is_new);
    }
    shown
}

/// Returns an answer with at most ten tasks; the others are counted in `leftOut`.
fn answer(mut tasks: Vec<Value>, fields: Value) -> Value {
    let left_out = tasks.len().saturating_sub(MAX_LISTED);
    tasks.truncate(MAX_LISTED);
    let mut answer = Map::from_iter([("tasks".to_owned(), Value::from(tasks))]);
    if let Value::Object(fields) = fields {
        answer.extend(fields);
    }
    if left_out > 0 {
        answer.insert("leftOut".to_owned(), left_out.into());
    }
    Value::Object(answer)
}

fn cut(text: &str) -> String {
    if text.chars().count() <= MAX_CHARS {
        return text.to_owned();
    }
    text.chars().take(MAX_CHARS).chain(['…']).collect()
}
