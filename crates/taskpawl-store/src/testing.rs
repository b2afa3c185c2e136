//! Short notations for requests in tests.

use taskpawl_model::command::{Command, Context, NewTask, Request};
use taskpawl_model::task::{ActorKind, Origin, TaskSpec};
use taskpawl_model::value::Timestamp;

/// Returns a request of the program `ann`.
pub(crate) fn request(command: Command) -> Request {
    let context = Context {
        now: Timestamp::from_timestamp(0, 5).unwrap(),
        actor: "ann".into(),
        kind: ActorKind::Program,
        run: None,
        origin: Origin::Cli,
        policy_hook: None,
        redact: None,
    };
    Request { command, context }
}

/// Returns a request for a manual task.
pub(crate) fn create(id: &str, dependencies: &[&str]) -> Request {
    let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
    let dependencies = dependencies.iter().map(|id| (*id).to_owned()).collect();
    let task = NewTask { id: id.into(), spec, dependencies, ..NewTask::default() };
    request(Command::Create(Box::new(task)))
}
