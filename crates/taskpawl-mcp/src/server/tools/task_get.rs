use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl::model::advice::{Advice, Advised, Hint};
use taskpawl::model::task::{BlockedReason, CallStatus, Status, Task};
use taskpawl::model::value::{CallId, TaskId};

use super::definition::{Definition, READS, number, schema, text};
use crate::server::actions::Action;
use crate::server::answer::Answer;
use crate::server::arguments;
use crate::server::brief;
use crate::server::caller::Caller;
use crate::server::page::{AROUND, Page, borders};
use crate::server::refusal::Refused;
use crate::server::repair::repair;

pub(super) fn definition() -> Definition {
    Definition {
        description: "A task: calls, result, notes, why it does not run, what to do. part pages through a long text; tail: bytes at its end.",
        input: schema(
            json!({
                "id": text(), "part": {"enum": ["result", "description", "stdout", "stderr", "diff"]}, "call": text(),
                "offset": number(), "limit": number(), "tail": number(), "max_bytes": number(),
            }),
            &["id"],
            false,
        ),
        hints: READS,
    }
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Arguments {
    id: String,
    #[serde(default)]
    part: Option<Part>,
    /// The call whose output is read. By default the last one that printed something.
    #[serde(default)]
    call: Option<String>,
    #[serde(default)]
    offset: u64,
    #[serde(default)]
    limit: Option<usize>,
    /// Number of bytes at the end of the text that are read, instead of a page at an offset.
    #[serde(default)]
    tail: Option<usize>,
}

impl Arguments {
    /// Refuses arguments without effect.
    fn check(&self) -> Result<(), Refused> {
        let of_part = [
            ("call", self.call.is_some()),
            ("offset", self.offset > 0),
            ("limit", self.limit.is_some()),
            ("tail", self.tail.is_some()),
        ];
        let useless = of_part.into_iter().find(|(_, is_given)| *is_given && self.part.is_none());
        if let Some((name, _)) = useless {
            return Err(Refused::argument(name, "it goes with `part`"));
        }
        if self.tail.is_some() && (self.offset > 0 || self.limit.is_some()) {
            return Err(Refused::argument(
                "tail",
                "it is the length of the end: leave out `offset` and `limit`",
            ));
        }
        Ok(())
    }

    /// Returns the place of the text. Without a length there is room for other fields.
    fn place(&self, max_bytes: usize) -> TextPlace {
        match self.tail {
            Some(tail) => TextPlace::End(tail.clamp(1, max_bytes)),
            None => TextPlace::At(
                self.offset,
                self.limit.unwrap_or(max_bytes - max_bytes / 4).clamp(1, max_bytes),
            ),
        }
    }
}

/// The part of a text that is read, in bytes.
#[derive(Debug, Clone, Copy)]
enum TextPlace {
    /// A page at an offset, and its length.
    At(u64, usize),
    /// The end, with this length.
    End(usize),
}

impl TextPlace {
    /// Returns the offset and the length in a text of `total` bytes.
    fn within(self, total: u64) -> (u64, usize) {
        match self {
            Self::At(offset, limit) => (offset.min(total), limit),
            Self::End(limit) => (total.saturating_sub(limit as u64), limit),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Part {
    Result,
    Description,
    Stdout,
    Stderr,
    /// The changes of the task in its worktree.
    Diff,
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Description => "description",
            Self::Stdout => "stdout",
            Self::Stderr => "stderr",
            Self::Diff => "diff",
        }
    }
}

/// Checks the arguments of a call.
pub(super) fn check_arguments(given: Map<String, Value>) -> Result<(), Refused> {
    arguments::read::<Arguments>(given).map(drop)
}

pub(super) fn call(caller: &Caller, arguments: Map<String, Value>) -> Result<Answer, Refused> {
    let arguments: Arguments = arguments::read(arguments)?;
    arguments.check()?;
    let task = caller.reads().get(&arguments.id)?;
    match arguments.part {
        Some(part) => page(caller, &task, part, &arguments),
        None => Ok(show(caller, &task)?),
    }
}

/// Returns a task, with the reason why it does not run.
pub(in crate::server) fn show(caller: &Caller, task: &Task) -> Result<Answer, taskpawl::Error> {
    let id = task.id.as_str();
    let part = |part: Part| Action::call("task_get", json!({"id": id, "part": part.name()}));
    let mut answer = Answer::new(json!({"task": brief::whole(task, caller.max_bytes)}))
        .part("/task/description", &json!(task.description), part(Part::Description))
        .part("/task/result", task.result.as_ref().unwrap_or(&Value::Null), part(Part::Result));
    let mut actions = Vec::new();
    if !matches!(task.status, Status::Done | Status::Skipped | Status::Cancelled) {
        let why = caller.reads().explain(id, &caller.means)?;
        let chain: Vec<String> =
            why.chain.iter().map(|link| format!("{}: {}", link.task, link.text)).collect();
        // A failed task has its error already.
        let is_itself = task.status == Status::Failed && why.chain.len() == 1;
        if !is_itself {
            answer = answer.with("why", json!(chain));
        }
        actions = Action::of_all(why.next_actions.iter().map(Advised::advice));
    }
    if let Some(repair) = repair(task) {
        actions.retain(|action| !action.is_restart_of(id));
        actions.insert(0, repair);
    }
    // This answer is the task itself. Only its output is left to read.
    actions.retain(|action| *action != Action::call("task_get", json!({"id": id})));
    // The step is offered only if there is output to read.
    let printed = has_printed(caller, task, Part::Stderr);
    let is_interrupted = matches!(task.blocked_reason, Some(BlockedReason::Interrupted { .. }));
    if printed && (task.status == Status::Failed || is_interrupted) {
        actions.push(Action::call("task_get", json!({"id": id, "part": "stderr"})));
    }
    Ok(answer.next(actions))
}

/// Returns a page of one long text of a task.
fn page(caller: &Caller, task: &Task, part: Part, arguments: &Arguments) -> Result<Answer, Refused> {
    let place = arguments.place(caller.max_bytes);
    let Piece { offset, bytes, total } = match part {
        Part::Result => piece_of(&brief::result_text(task), place),
        Part::Description => piece_of(&task.description, place),
        Part::Diff => piece_of(&diff(caller, task)?, place),
        Part::Stdout | Part::Stderr => piece_of_output(caller, task, part, arguments, place)?,
    };
    let goes_on = offset + (bytes.len() as u64) < total;
    let mut same = json!({"id": task.id, "part": part.name()});
    if let Some(call) = &arguments.call {
        same["call"] = json!(call);
    }
    let answer = Answer::new(json!({"id": task.id, "totalBytes": total}));
    if arguments.tail.is_some() {
        let before = Action::call("task_get", same);
        return Ok(answer.page(Page::of_end("text", offset, &bytes)).next([before]));
    }
    let text = Page::of_text("text", offset, &bytes, goes_on).then(Action::call("task_get", same));
    Ok(answer.page(text))
}

/// Returns what a task has changed in its worktree.
fn diff(caller: &Caller, task: &Task) -> Result<String, Refused> {
    let diff = caller.plans.engine().worktree_diff(task.id.as_str());
    diff.map(|diff| diff.patch).map_err(|what| Refused::NotHere { what, hint: Some(shows_calls(&task.id)) })
}

/// A part of a longer text. It begins and ends between characters.
struct Piece {
    offset: u64,
    bytes: Vec<u8>,
    total: u64,
}

fn piece_of(text: &str, place: TextPlace) -> Piece {
    let (offset, limit) = place.within(text.len() as u64);
    let start = usize::try_from(offset).unwrap_or(usize::MAX);
    let (start, end) = borders(text.as_bytes(), start, start.saturating_add(limit));
    Piece { offset: start as u64, bytes: text.as_bytes()[start..end].to_vec(), total: text.len() as u64 }
}

/// Reads a part of a file, with a few bytes around it for finding the borders of characters.
fn piece_of_file(path: &Path, place: TextPlace) -> std::io::Result<Piece> {
    let mut file = File::open(path)?;
    let total = file.metadata()?.len();
    let (offset, limit) = place.within(total);
    let before = offset.min(AROUND as u64);
    file.seek(SeekFrom::Start(offset - before))?;
    let mut bytes = Vec::new();
    file.take(before + (limit + AROUND) as u64).read_to_end(&mut bytes)?;
    let from = usize::try_from(before).unwrap_or(AROUND);
    let (start, end) = borders(&bytes, from, from + limit);
    Ok(Piece { offset: offset - before + start as u64, bytes: bytes[start..end].to_vec(), total })
}

/// Returns a part of the output of a call's last start.
fn piece_of_output(
    caller: &Caller,
    task: &Task,
    part: Part,
    arguments: &Arguments,
    place: TextPlace,
) -> Result<Piece, Refused> {
    let stream = part.name();
    let output = caller.plans.engine().output();
    let calls = task.metadata.tool_calls.iter().rev();
    let calls =
        calls.filter(|call| arguments.call.as_ref().is_none_or(|id| call.id == CallId::from(id.as_str())));
    for call in calls.filter(|call| call.attempts > 0) {
        let mut parts = output.parts(&task.id, &call.id, call.attempts).into_iter();
        if let Some(found) = parts.find(|part| part.start == call.attempts && part.stream == stream) {
            return piece_of_file(&found.path, place).map_err(|error| {
                let what = format!("its output cannot be read: {error}");
                Refused::NotHere { what, hint: Some(shows_calls(&task.id)) }
            });
        }
        // The call is running, or its run was killed. The output of an earlier call must not be shown as its output.
        if matches!(call.status, CallStatus::Running | CallStatus::Interrupted) {
            return Ok(Piece { offset: 0, bytes: Vec::new(), total: 0 });
        }
    }
    let what = format!("no call of task `{}` has printed to its {stream}", task.id);
    Err(Refused::NotHere { what, hint: Some(shows_calls(&task.id)) })
}

/// Returns whether [`piece_of_output`] finds output of the last start of a call.
fn has_printed(caller: &Caller, task: &Task, part: Part) -> bool {
    let output = caller.plans.engine().output();
    let started = task.metadata.tool_calls.iter().filter(|call| call.attempts > 0);
    started.into_iter().any(|call| {
        let mut parts = output.parts(&task.id, &call.id, call.attempts).into_iter();
        parts.any(|found| found.start == call.attempts && found.stream == part.name())
    })
}

fn shows_calls(id: &TaskId) -> Hint {
    Hint::from(Advice::show(id)).text(" shows its calls and their results")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_of_a_file_divide_no_character() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("printed");
        let text = "é€😀".repeat(1_500);
        std::fs::write(&path, &text).unwrap();
        for limit in [1, 5, 2_000] {
            let (mut read, mut offset) = (String::new(), 0);
            while offset < text.len() as u64 {
                let piece = piece_of_file(&path, TextPlace::At(offset, limit)).unwrap();
                assert_eq!((piece.offset, piece.total), (offset, text.len() as u64));
                read.push_str(std::str::from_utf8(&piece.bytes).unwrap());
                offset += piece.bytes.len() as u64;
            }
            assert_eq!(read, text, "{limit}");
        }
        // An offset within a character moves to its beginning.
        assert_eq!(piece_of_file(&path, TextPlace::At(1, 1)).unwrap().offset, 0);
        assert!(piece_of_file(&path, TextPlace::At(u64::MAX, 1)).unwrap().bytes.is_empty());
        // The end begins at a character too.
        let end = piece_of_file(&path, TextPlace::End(5)).unwrap();
        assert_eq!((end.offset + end.bytes.len() as u64, &*end.bytes), (end.total, "€😀".as_bytes()));
        assert_eq!(piece_of_file(&path, TextPlace::End(1 << 20)).unwrap().offset, 0);
    }
}
