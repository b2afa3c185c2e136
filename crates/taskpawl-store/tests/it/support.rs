//! Short notations for requests.

use std::sync::Arc;

use serde_json::{Value, json};
use taskpawl_model::command::{Answer, Command, Context, NewTask, Refusal, Request};
use taskpawl_model::task::{ActorKind, CallSpec, NewCall, Origin, TaskSpec};
use taskpawl_model::value::TaskId;
use taskpawl_model::value::Timestamp;
use taskpawl_model::view::read_task;
use taskpawl_store::Store;

/// Returns second `n` of the test clock.
pub(crate) fn at(n: i64) -> Timestamp {
    Timestamp::from_timestamp(1_750_000_000 + n, 123_456_789).unwrap()
}

pub(crate) fn request(command: Command) -> Request {
    let context = Context {
        now: at(0),
        actor: "ann@host".into(),
        kind: ActorKind::Program,
        run: None,
        origin: Origin::Cli,
        policy_hook: None,
        redact: None,
    };
    Request { command, context }
}

/// Returns a manual task.
pub(crate) fn task(id: &str) -> NewTask {
    let spec = TaskSpec { name: format!("name of {id}"), ..TaskSpec::default() };
    NewTask { id: TaskId::from(id), spec, ..NewTask::default() }
}

/// Returns a task with a call.
pub(crate) fn task_with_call(id: &str) -> NewTask {
    let spec = CallSpec { tool_name: "log".to_owned(), ..CallSpec::default() };
    NewTask { calls: vec![NewCall { id: None, spec: spec.into() }], ..task(id) }
}

pub(crate) fn create(task: NewTask) -> Request {
    request(Command::Create(Box::new(task)))
}

pub(crate) fn after(id: &str, dependencies: &[&str]) -> NewTask {
    NewTask { dependencies: dependencies.iter().map(|id| (*id).to_owned()).collect(), ..task(id) }
}

pub(crate) fn done(id: &str) -> Request {
    request(Command::Done { ids: vec![id.to_owned()], result: None, note: None, attempt: None })
}

/// Writes one request and expects it to be accepted.
pub(crate) fn accept(store: &Arc<dyn Store>, request: Request) -> Answer {
    one(store, request).unwrap()
}

/// Writes one request.
pub(crate) fn one(store: &Arc<dyn Store>, request: Request) -> Result<Answer, Box<Refusal>> {
    let mut outcomes = store.write(vec![request]).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Returns the whole content of a store.
pub(crate) fn content(store: &Arc<dyn Store>) -> Value {
    let content = store.view(|view| {
        let mut keys = Vec::new();
        view.each_node(&mut |node| keys.push(node.key))?;
        let mut tasks = Vec::new();
        for key in keys {
            tasks.push(json!({"task": read_task(view, key)?, "applied": view.applied(key)?}));
        }
        Ok(json!({
            "tasks": tasks,
            "counts": view.counts()?.into_iter().map(|(status, n)| (status.to_string(), n.into())).collect::<serde_json::Map<_, _>>(),
            "runs": view.runs(0)?,
            "events": view.events(0, None, 0)?,
            "plan": view.plan("golden")?,
            "deleted": view.deleted_id("gone")?,
            "nextKey": view.next_key()?,
        }))
    });
    content.unwrap()
}
