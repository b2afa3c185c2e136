//! Process that executes commands through the library, one after the other, and reports the acknowledged ones.
//!
//! `library-worker STORE ACTOR` reads commands from standard input, one per line. `library-worker STORE ACTOR SCRIPT STEP` reads
//! them from a file, from line STEP on. Each is answered by one line on standard output: the number of the step, and `ok`,
//! `refused` or `failed` with details. A killed worker is started again at the first step without an answer. That step may or may
//! not be done, so the worker checks before it repeats it.

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::command::{NewTask, Refusal};
use taskpawl::model::plan::parse_plan;
use taskpawl::model::task::{ActorKind, Status, Task, TaskSpec};
use taskpawl::model::value::Map;
use taskpawl::model::value::TaskId;
use taskpawl::model::view::Query;
use taskpawl::store::{Location, open};
use taskpawl::{ApplyOptions, Ending, Error, Manager};

const LEASE: Duration = Duration::from_mins(30);

/// Executes commands until there are no more lines.
///
/// # Panics
/// The arguments are wrong, or a line is unknown.
pub fn main() {
    let args: Vec<String> = std::env::args().collect();
    let [_, store, actor, script @ ..] = args.as_slice() else { panic!("usage: STORE ACTOR [SCRIPT STEP]") };
    let worker = Worker::new(store, actor);
    match script {
        [path, step] => {
            let text = std::fs::read_to_string(path).expect("a script that can be read");
            let first = step.parse().expect("the number of a step");
            for (step, line) in text.lines().enumerate().skip(first) {
                worker.answer(step, line, step == first);
            }
        }
        _ => {
            for (step, line) in std::io::stdin().lock().lines().enumerate() {
                worker.answer(step, &line.expect("a line"), false);
            }
        }
    }
}

struct Worker {
    manager: Manager,
    actor: String,
}

impl Worker {
    fn new(store: &str, actor: &str) -> Self {
        let location = Location::parse(store, Path::new(""));
        // `taskpawl done --actor NAME` acts as an agent, and only the same kind may finish a claim of the worker.
        let manager = Manager::new(open(&location), actor).with_kind(ActorKind::Agent);
        Self { manager, actor: actor.to_owned() }
    }

    /// Writes the answer in one piece, so that a kill cannot leave half a line.
    fn answer(&self, step: usize, line: &str, is_in_doubt: bool) {
        let words: Vec<&str> = line.split(' ').collect();
        let done = is_in_doubt.then(|| self.was_done(step, &words)).transpose();
        let outcome = match done {
            Ok(Some(Some(answer))) => Ok(answer),
            Ok(_) => self.perform(step, &words),
            Err(error) => Err(error),
        };
        let text = match outcome {
            Ok(answer) => format!("{step} ok {answer}\n"),
            Err(Error::Refused(refusal)) => format!("{step} refused {refusal}\n"),
            Err(error) => format!("{step} failed {}\n", chain(&error)),
        };
        let mut stdout = std::io::stdout().lock();
        // The harness may have closed its end of the pipe already.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    fn perform(&self, step: usize, words: &[&str]) -> Result<String, Error> {
        let manager = &self.manager;
        match *words {
            ["create", id] => Ok(manager.create(named(id))?.to_string()),
            ["note", id, text] => Ok(manager.note(id, text)?.to_string()),
            ["claim", id] => Ok(manager.claim(id, LEASE)?.to_string()),
            ["claim-next"] => Ok(manager.claim_next(LEASE)?.to_string()),
            ["done", id] => Ok(manager.done(&[id.to_owned()], Ending::default())?[0].to_string()),
            ["increment", id] => self.increment(step, id),
            ["take"] => {
                let id = manager.claim_next(LEASE)?.to_string();
                self.end(step, &id)
            }
            ["apply", name, count] => self.apply(name, count.parse().expect("a number")),
            _ => panic!("no operation {words:?}"),
        }
    }

    /// Reads a number and writes the next one, and repeats that until no other process wrote in between.
    fn increment(&self, step: usize, id: &str) -> Result<String, Error> {
        loop {
            let task = self.manager.get(id)?;
            let count = task.metadata.context.get("count").and_then(Value::as_u64).unwrap_or(0) + 1;
            let context = json!({"count": count, self.actor.as_str(): step});
            let fields = Map::from_iter([("context".to_owned(), context)]);
            match self.manager.update(id, fields, Some(task.version)) {
                Err(Error::Refused(refusal)) if matches!(*refusal, Refusal::VersionMismatch { .. }) => {}
                result => return result.map(|_| count.to_string()),
            }
        }
    }

    fn end(&self, step: usize, id: &str) -> Result<String, Error> {
        let result = Some(json!({"by": self.actor, "step": step}));
        self.manager.done(&[id.to_owned()], Ending { result, ..Ending::default() })?;
        Ok(id.to_owned())
    }

    fn apply(&self, name: &str, count: usize) -> Result<String, Error> {
        let task = |number| format!("{{\"id\": \"{name}-{number}\"}}");
        let tasks: Vec<String> = (0..count).map(task).collect();
        let plan = parse_plan(&format!("{{\"version\": 1, \"tasks\": [{}]}}", tasks.join(",")))?;
        self.manager.apply(plan, name, ApplyOptions::default())?;
        Ok(name.to_owned())
    }

    /// Returns the answer of a step that was done before its process was killed.
    fn was_done(&self, step: usize, words: &[&str]) -> Result<Option<String>, Error> {
        let found = |is_done: &dyn Fn(&Task) -> bool, id: &str| match self.manager.get(id) {
            Ok(task) => Ok(is_done(&task).then(|| id.to_owned())),
            Err(Error::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        };
        match *words {
            ["create", id] => found(&|task| task.id.as_str() == id, id),
            ["note", id, text] => found(&|task| task.notes.iter().any(|note| note.text == text), id),
            ["increment", id] => {
                let is_mine = |task: &Task| task.metadata.context.get(&self.actor) == Some(&json!(step));
                found(&is_mine, id)
            }
            ["take"] => self.was_taken(step),
            _ => Ok(None),
        }
    }

    /// Checks a take, which is two commits: the end may be stored, or only the claim.
    fn was_taken(&self, step: usize) -> Result<Option<String>, Error> {
        let mine = json!({"by": self.actor, "step": step});
        let find = |status, is_it: &dyn Fn(&Task) -> bool| {
            let page = self.manager.list(&Query { status: vec![status], ..Query::default() })?;
            Ok::<_, Error>(page.tasks.into_iter().find(is_it).map(|task| task.id.to_string()))
        };
        if let Some(id) = find(Status::Done, &|task| task.result.as_ref() == Some(&mine))? {
            return Ok(Some(id));
        }
        let claimed = find(Status::InProgress, &|task| holder(task) == Some(&self.actor))?;
        claimed.map(|id| self.end(step, &id)).transpose()
    }
}

fn named(id: &str) -> NewTask {
    let spec = TaskSpec { name: id.to_owned(), ..TaskSpec::default() };
    NewTask { id: TaskId::from(id.to_owned()), spec, ..NewTask::default() }
}

fn holder(task: &Task) -> Option<&str> {
    task.claim.as_ref().map(|claim| claim.actor.as_str())
}

fn chain(error: &dyn std::error::Error) -> String {
    taskpawl_text::error_chain(error).replace('\n', " ")
}
