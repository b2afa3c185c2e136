use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exec::{Options, program_spec, run};
use super::silent::no_match_hint;
use super::words::plain_words;
use crate::builtin::common::parse;
use crate::context::CallContext;
use crate::error::ToolError;
use crate::foresee::{Foreseen, missing_program};
use crate::text::one_line;
use crate::tool::{Tool, ToolSpec};

/// Tool that runs a command line. Starting a shell costs as much as a small program, so that it is only used if the
/// command needs one.
#[derive(Debug)]
pub(super) struct Shell(ToolSpec);

impl Shell {
    pub(super) fn new() -> Self {
        let command = json!({
            "type": "string",
            "minLength": 1,
            "description": "A command line, or a script of several.",
        });
        let shell = json!({
            "anyOf": [{"enum": ["sh", "bash"]}, {"type": "array", "items": {"type": "string"}, "minItems": 1}],
            "description": "Interpreter of the command: `sh` stops at the first failing command, `bash` also at a failing part of a pipe; a list is a program with arguments, and the command its last one.",
        });
        let arguments = [("command", command), ("shell", shell)];
        Self(program_spec("shell", "Runs a shell command.", arguments))
    }
}

#[derive(Deserialize)]
struct Args {
    command: String,
    shell: Option<Interpreter>,
    #[serde(flatten)]
    options: Options,
}

/// The program that reads a command.
#[derive(Deserialize)]
#[serde(untagged)]
enum Interpreter {
    Known(Known),
    Own(Vec<String>),
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Known {
    Sh,
    Bash,
}

/// Returns the program and its arguments for a command. Without an interpreter, the call was stored by version 0.1.
fn words(interpreter: Option<Interpreter>, command: String) -> Vec<String> {
    if let Some(Interpreter::Own(mut argv)) = interpreter {
        argv.push(command);
        return argv;
    }
    // Without a shell, a single program ends with the same exit code.
    if let Some(words) = plain_words(&command) {
        return words;
    }
    let fixed = match interpreter {
        Some(Interpreter::Own(argv)) => return argv,
        None => &["/bin/sh", "-c"][..],
        Some(Interpreter::Known(Known::Sh)) => &["/bin/sh", "-e", "-c"],
        Some(Interpreter::Known(Known::Bash)) => &["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c"],
    };
    fixed.iter().map(|word| (*word).to_owned()).chain([command]).collect()
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        // Of a script it is not known what runs; a shell says itself what it misses.
        let words = args.get("command").and_then(Value::as_str).and_then(plain_words);
        let program = words.and_then(|words| missing_program(words.first()?, "command"));
        program.filter(|_| args.get("shell").is_none_or(|shell| !shell.is_array())).into_iter().collect()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let Args { command, shell, options } = parse("shell", args)?;
        let name = one_line(&command);
        let silent = no_match_hint(&command);
        let ended = run(&cx, &name, words(shell, command), options).await;
        ended.map_err(|error| error.with_hint_if_silent(silent))
    }
}
