use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Map, Value, json};
use taskpawl_agent::{AgentDefinition, AgentHost, AgentTool};
use taskpawl_tools::{
    Ask, CallContext, CallQuestions, Decision, Programs, Progress, Registry, StepJournal, Supervision,
    ToolError, call_guarded,
};
use tokio::time::Instant;

/// A project with one agent, `scripted`.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) journal: Arc<Journal>,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    pub(crate) usage: Arc<Mutex<Vec<Value>>>,
    pub(crate) decision: Decision,
    pub(crate) timeout: Duration,
    pub(crate) output_bytes: u64,
}

impl Bench {
    pub(crate) fn new(scenario: &Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        std::fs::write(dir.path().join("agent.py"), include_str!("../agent.py")).unwrap();
        let bench = Self {
            dir,
            journal: Arc::default(),
            said: Arc::default(),
            usage: Arc::default(),
            decision: Decision::Allow,
            timeout: Duration::from_mins(1),
            output_bytes: 64 << 20,
        };
        bench.script(scenario);
        bench
    }

    /// Bench whose agent has these turns.
    pub(crate) fn with_turns(turns: &Value) -> Self {
        Self::new(&json!({"turns": turns}))
    }

    pub(crate) fn script(&self, scenario: &Value) {
        std::fs::write(self.dir.path().join("scenario.json"), scenario.to_string()).unwrap();
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join("project").join(name)
    }

    pub(crate) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("output/call.stdout")).unwrap()
    }

    fn cx(&self) -> CallContext {
        let mut cx = CallContext::new(self.path(""), self.dir.path().join("output/call"));
        cx.programs = Programs::new(Supervision::Off);
        cx.deadline = Some(Instant::now() + self.timeout);
        cx.limits.output_bytes = self.output_bytes;
        cx.journal = Some(Arc::clone(&self.journal) as Arc<dyn StepJournal>);
        cx.questions = Some(Arc::clone(&self.journal) as Arc<dyn CallQuestions>);
        let said = Arc::clone(&self.said);
        cx.progress = Some(Arc::new(move |progress| {
            let (Progress::Message(text) | Progress::Warning(text) | Progress::Part { message: text, .. }) =
                progress
            else {
                return;
            };
            said.lock().unwrap().push(text);
        }));
        let usage = Arc::clone(&self.usage);
        cx.usage = Some(Arc::new(move |more| usage.lock().unwrap().push(more)));
        cx
    }

    pub(crate) async fn call(&self, args: Value) -> Result<Value, ToolError> {
        let host = Host { argv: self.argv(), decision: self.decision };
        let mut registry = Registry::new();
        registry.register(Arc::new(AgentTool::new(Arc::new(host)))).unwrap();
        call_guarded(registry.get("agent").unwrap().clone(), self.cx(), args).await
    }

    /// Returns the answer to the prompt "go".
    pub(crate) async fn text(&self) -> String {
        self.call(json!({"prompt": "go"})).await.unwrap()["text"].as_str().unwrap().to_owned()
    }

    /// Returns class and message of the failure.
    pub(crate) async fn failure(&self, args: Value) -> String {
        let error = self.call(args).await.unwrap_err();
        format!("{}: {error}", error.class())
    }

    fn argv(&self) -> Vec<String> {
        let path = |name: &str| self.dir.path().join(name).display().to_string();
        vec!["python3".to_owned(), path("agent.py"), path("scenario.json")]
    }
}

#[derive(Debug)]
struct Host {
    argv: Vec<String>,
    decision: Decision,
}

impl AgentHost for Host {
    fn agent(&self, name: Option<&str>) -> Result<AgentDefinition, String> {
        match name {
            None | Some("scripted") => Ok(AgentDefinition {
                name: "scripted".to_owned(),
                argv: self.argv.clone(),
                env: BTreeMap::from([("AGENT_COLOR".to_owned(), "green".to_owned())]),
                ..AgentDefinition::default()
            }),
            Some(other) => Err(format!("no agent `{other}`")),
        }
    }

    fn decide(&self, tool: &str, _: &Map<String, Value>, _: bool) -> (Decision, Option<String>) {
        // Files are asked about as well; the tests of questions are about programs.
        let decision = if tool == "read_file" { Decision::Allow } else { self.decision };
        (decision, Some("the policy says so".to_owned()))
    }
}

/// A journal and answers in memory.
#[derive(Debug, Default)]
pub(crate) struct Journal {
    steps: Mutex<BTreeMap<String, Value>>,
    details: Mutex<Option<Value>>,
    pub(crate) answers: Mutex<BTreeMap<String, String>>,
    pub(crate) asked: Mutex<Vec<String>>,
}

impl StepJournal for Journal {
    fn result(&self, step: &str) -> std::io::Result<Option<Value>> {
        Ok(self.steps.lock().unwrap().get(step).cloned())
    }

    fn record(&self, step: &str, result: Value) -> std::io::Result<()> {
        self.steps.lock().unwrap().insert(step.to_owned(), result);
        Ok(())
    }

    fn details(&self) -> std::io::Result<Option<Value>> {
        Ok(self.details.lock().unwrap().clone())
    }

    fn replace_details(&self, details: Value) -> std::io::Result<()> {
        *self.details.lock().unwrap() = Some(details);
        Ok(())
    }
}

impl CallQuestions for Journal {
    fn ask(&self, ask: &Ask) -> Result<Option<String>, ToolError> {
        self.asked.lock().unwrap().push(ask.text().to_owned());
        Ok(self.answers.lock().unwrap().get(ask.text()).cloned())
    }

    fn note_step(&self) {}
}
