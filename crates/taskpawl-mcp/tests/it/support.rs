use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use taskpawl::tools::{
    CallContext, ConfiguredSecrets, Programs, Progress, Registry, SecretFrom, Supervision, ToolError, Vault,
    call_guarded,
};
use taskpawl_mcp::{Servers, ServersOptions, server_of};

/// A project with one server, `s`.
pub(crate) struct Bench {
    dir: tempfile::TempDir,
    pub(crate) programs: Programs,
    /// The secrets of one run.
    vault: Vault,
    pub(crate) said: Arc<Mutex<Vec<String>>>,
    server: Value,
    servers: Servers,
    calls: Mutex<u32>,
}

/// Returns the configuration of the test server, in one of its modes.
pub(crate) fn test_server(mode: &str) -> Value {
    json!({"command": env!("CARGO_BIN_EXE_taskpawl-mcp-test-server"), "args": [mode]})
}

impl Bench {
    pub(crate) fn new(mode: &str) -> Self {
        Self::of(test_server(mode))
    }

    pub(crate) fn of(server: Value) -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("project")).unwrap();
        let programs = programs();
        let servers = servers(&server, dir.path());
        let vault = Vault::open(Arc::new(secrets()));
        Self { dir, programs, vault, said: Arc::default(), server, servers, calls: Mutex::new(0) }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join("project").join(name)
    }

    pub(crate) fn cache(&self) -> PathBuf {
        self.dir.path().join("cache")
    }

    pub(crate) fn servers(&self) -> &Servers {
        &self.servers
    }

    /// Drops the state in memory, as if another command had been started.
    pub(crate) fn reload(&mut self) {
        self.servers = servers(&self.server, self.dir.path());
    }

    /// Begins another run.
    pub(crate) async fn next_run(&mut self) {
        self.programs.close().await;
        self.programs = programs();
        self.vault = Vault::open(Arc::new(secrets()));
    }

    pub(crate) fn cx(&self) -> CallContext {
        let mut calls = self.calls.lock().unwrap();
        *calls += 1;
        let output = self.dir.path().join(format!("output/call-{calls}"));
        let mut cx = CallContext::new(self.dir.path().join("project"), output);
        cx.programs = self.programs.clone();
        cx.secrets = Some(self.vault.clone());
        "project/task/call/1".clone_into(&mut cx.idempotency_key);
        "00-1-2-01".clone_into(&mut cx.traceparent);
        cx.limits.grace = Duration::from_millis(200);
        let said = Arc::clone(&self.said);
        cx.progress = Some(Arc::new(move |progress| {
            if let Progress::Message(message) = progress {
                said.lock().unwrap().push(message);
            }
        }));
        cx
    }

    /// Learns the tools of the server. Returns the error message if that fails.
    pub(crate) async fn learn(&self) -> Option<String> {
        let failed = self.servers.learn(&BTreeSet::from(["s".to_owned()]), &self.cx()).await;
        failed.into_iter().next().map(|(_, error)| error.to_string())
    }

    pub(crate) async fn call(&self, tool: &str, args: Value) -> Result<Value, ToolError> {
        self.call_with(self.cx(), tool, args).await
    }

    pub(crate) async fn call_with(
        &self,
        cx: CallContext,
        tool: &str,
        args: Value,
    ) -> Result<Value, ToolError> {
        let registry = self.registry();
        let tool = registry.get(&format!("s/{tool}")).unwrap_or_else(|| panic!("no tool {tool}")).clone();
        call_guarded(tool, cx, args).await
    }

    pub(crate) fn registry(&self) -> Registry {
        let mut registry = Registry::new();
        for tool in self.servers.tools() {
            registry.register(tool).unwrap();
        }
        registry
    }

    /// Calls a tool and expects a failure. Returns its class and message.
    pub(crate) async fn refusal(&self, tool: &str, args: Value) -> String {
        let error = self.call(tool, args).await.unwrap_err();
        format!("{}: {error}", error.class())
    }

    /// Returns the number of times that the server was started.
    pub(crate) fn starts(&self) -> usize {
        std::fs::read_to_string(self.path("starts")).unwrap_or_default().lines().count()
    }

    pub(crate) fn last_pid(&self) -> u32 {
        let starts = std::fs::read_to_string(self.path("starts")).unwrap();
        starts.lines().last().unwrap().parse().unwrap()
    }
}

pub(crate) fn supervision() -> Supervision {
    Supervision::Binary(env!("CARGO_BIN_EXE_taskpawl-mcp-test-server").into())
}

fn programs() -> Programs {
    Programs::new(supervision())
}

/// A secret that is known only after a program has printed it.
pub(crate) const SECRET: &str = "canary-of-the-secret";

pub(crate) fn secrets() -> ConfiguredSecrets {
    let argv = ["echo".to_owned(), SECRET.to_owned()].to_vec();
    let from = SecretFrom::Command { argv, directory: "/".into() };
    ConfiguredSecrets::new([("KEY".to_owned(), from)].into(), "define it")
}

pub(crate) fn servers(server: &Value, dir: &Path) -> Servers {
    let config = server_of("s", Path::new("test.json"), server).unwrap().unwrap();
    let variables = |name: &str| match name {
        "PATH" => Some("/usr/bin:/bin".to_owned()),
        "WORD" => Some("expanded".to_owned()),
        "SECRET" => Some("hidden".to_owned()),
        _ => None,
    };
    let options = ServersOptions::new(Arc::new(variables)).with_cache(dir.join("cache"));
    Servers::new(vec![config], &options)
}

/// Waits until something is so, for ten seconds at most.
pub(crate) async fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "it never came that {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A zombie is gone: it runs no code and holds no file.
pub(crate) fn is_gone(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with('Z'))
}
