use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Value, json};

use super::exec::{Options, program_spec, run};
use super::words::plain_words;
use crate::builtin::common::parse;
use crate::context::CallContext;
use crate::error::ToolError;
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
            "description": "A command line for `/bin/sh`.",
        });
        Self(program_spec("shell", "Runs a shell command.", "command", command))
    }
}

#[derive(Deserialize)]
struct Args {
    command: String,
    #[serde(flatten)]
    options: Options,
}

#[async_trait]
impl Tool for Shell {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let Args { command, options } = parse("shell", args)?;
        let name = one_line(&command);
        let words =
            plain_words(&command).unwrap_or_else(|| vec!["/bin/sh".to_owned(), "-c".to_owned(), command]);
        run(&cx, &name, words, options).await
    }
}
