//! Secrets from a source of the host program: requested once, passed to the tool, and stored nowhere.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use async_trait::async_trait;
use serde_json::{Value, json};
use taskpawl_engine::{Engine, RunOptions, RunVariables};
use taskpawl_manager::Manager;
use taskpawl_tools::{CallContext, Registry, SecretError, SecretSource, Tool, ToolError, ToolSpec};

use crate::support::Lab;

/// A source with one valid secret that counts its requests.
#[derive(Debug, Default)]
struct Source(AtomicU32);

impl SecretSource for Source {
    fn secret(&self, name: &str) -> Result<String, SecretError> {
        self.0.fetch_add(1, Ordering::SeqCst);
        match name {
            "TOKEN" => Ok("value-of-token-1".to_owned()),
            "SHORT" => Ok("short".to_owned()),
            _ => Err(SecretError::Unknown { name: name.to_owned(), looked: "ask somebody else".to_owned() }),
        }
    }
}

/// A tool that returns its arguments.
#[derive(Debug)]
struct Echo(ToolSpec);

impl Echo {
    fn new() -> Self {
        let args = json!({"type": "object", "properties": {"text": {"type": "string", "maxLength": 20}}});
        Self(ToolSpec::new("echo", "Gives back its arguments.", args))
    }
}

#[async_trait]
impl Tool for Echo {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        cx.report(format!("called with {args}"));
        cx.report_usage(json!({"with": args}));
        if args["fails"] == true {
            return Err(ToolError::failed(format!("cannot use {args}")));
        }
        let length = args["text"].as_str().map_or(0, str::len);
        Ok(json!({"length": length, "args": args}))
    }
}

#[tokio::test]
async fn a_source_is_asked_once_and_nothing_is_kept() {
    let lab = Lab::new(
        "tasks:
- {id: a, call: {echo: {text: '${secret:TOKEN}', more: ['x ${secret:TOKEN}', '$${secret:TOKEN}']}}}
- {id: b, needs: a, call: {echo: {text: '${secret:TOKEN}', fails: true}}}
- {id: c, call: {echo: {text: '${secret:NONE}'}}}
- {id: d, call: {echo: {text: '${secret:SHORT}'}}}
- {id: e, call: {echo: {text: 'too long ${secret:TOKEN}'}}}
- {id: f, needs: a, call: {echo: {text: '${{ tasks.a.result.args.more[1] }}'}}}
",
    );
    let source = Arc::new(Source::default());
    let mut tools = Registry::new();
    tools.register(Arc::new(Echo::new())).unwrap();
    let project = lab.engine.project().clone();
    let manager = Manager::new(Arc::clone(lab.manager.store()), "host");
    let engine = Engine::new(manager, Arc::new(tools), project).with_secrets(Arc::clone(&source) as _);
    engine.run_all_ready(RunOptions::default()).await.unwrap();
    let mut table = Vec::new();
    for id in ["a", "b", "c", "d", "e", "f"] {
        let task = lab.task(id);
        let call = &task.metadata.tool_calls[0];
        let said = json!({"result": call.result, "error": call.error, "usage": call.usage, "with": call.evaluated_args});
        table.push(format!("{id}: {said}"));
    }
    let table = table.join("\n");
    assert!(!table.contains("value-of-token-1"), "{table}");
    insta::assert_snapshot!(table);
    // One request for the valid secret, and one for each of the two that are not available.
    assert_eq!(source.0.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn variables_of_a_run_reach_programs_and_secret_ones_are_redacted() {
    let lab = Lab::new(
        "tasks:
- {id: a, run: 'echo $MODE $API_KEY $PIN'}
- {id: b, call: {exec: {argv: [sh, -c, 'echo $MODE $API_KEY'], env: {MODE: own}}}}
- {id: c, run: 'echo $API_KEY >&2; exit 1'}
",
    );
    let mut variables = RunVariables::default();
    variables.set("MODE", "fast").unwrap();
    variables.set_secret("API_KEY", "value-of-key-1").unwrap();
    variables.set_secret("PIN", "12345").unwrap();
    lab.run_with(RunOptions { variables, ..RunOptions::default() }).await;
    let output = |id: &str, name: &str| {
        let task = lab.task(id);
        task.metadata.tool_calls[0].result.as_ref().unwrap()[name].as_str().unwrap().to_owned()
    };
    assert_eq!(output("a", "stdout"), "fast [redacted:env.API_KEY] 12345\n");
    assert_eq!(output("b", "stdout"), "own [redacted:env.API_KEY]\n");
    assert_eq!(output("c", "stderr"), "[redacted:env.API_KEY]\n");
    let files = lab.engine.project().files.clone();
    assert!(!has_text(&files, "value-of-key-1"), "an output file contains the value");
    // The next run has no variables.
    lab.manager.reopen(&["a".to_owned()], false).unwrap();
    lab.run_with(RunOptions::default()).await;
    assert_eq!(output("a", "stdout"), "\n");
}

/// Returns whether a file below a directory contains a text.
fn has_text(directory: &std::path::Path, text: &str) -> bool {
    std::fs::read_dir(directory).unwrap().any(|entry| {
        let path = entry.unwrap().path();
        if path.is_dir() {
            has_text(&path, text)
        } else {
            String::from_utf8_lossy(&std::fs::read(path).unwrap()).contains(text)
        }
    })
}
