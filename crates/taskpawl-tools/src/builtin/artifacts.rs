//! The tool `artifacts`, which records the files that a task has to leave.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::artifact::{Artifact, ArtifactDirs};
use crate::builtin::common::{FOR_FILES, blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::root::is_inner;
use crate::tool::{Hints, Tool, ToolSpec};

/// Class of the failure of a task that did not leave its files.
const MISSING: &str = "missing_artifact";

/// Largest number of files that an error names.
const MAX_NAMED: usize = 5;

const READS: Hints = Hints { read_only: true, idempotent: true, destructive: false, open_world: false };

/// The tool that records files in the directory of the run. Plans with `artifacts` have a call of it.
#[derive(Debug)]
pub(super) struct Artifacts(ToolSpec);

#[derive(Deserialize)]
struct Args {
    files: Vec<File>,
}

#[derive(Deserialize)]
struct File {
    name: String,
    path: String,
    #[serde(rename = "type")]
    media_type: Option<String>,
}

impl Artifacts {
    pub(super) fn new() -> Self {
        let file = json!({
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 1, "description": "The name by which expressions read it."},
                "path": {"type": "string", "minLength": 1, "description": "A file in `$TASKPAWL_ARTIFACTS`."},
                "type": {"type": "string", "minLength": 1, "description": "The media type; by default from the ending of the name."},
            },
            "required": ["name", "path"],
            "additionalProperties": false,
        });
        let schema = json!({
            "type": "object",
            "properties": {"files": {"type": "array", "items": file, "minItems": 1, "maxItems": 100}},
            "required": ["files"],
            "additionalProperties": false,
        });
        let recorded = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "bytes": {"type": "integer"},
                "sha256": {"type": "string"},
                "type": {"type": "string"},
            },
            "required": ["path", "bytes", "sha256", "type"],
        });
        let result =
            json!({"type": "object", "additionalProperties": recorded, "description": "The files, by name."});
        let description = "Records files that the task left in `$TASKPAWL_ARTIFACTS`, and fails if one is missing. `artifacts` adds the call to a task.";
        Self(ToolSpec::new("artifacts", description, schema).with_result(result).with_hints(READS))
    }
}

#[async_trait]
impl Tool for Artifacts {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: Args = parse("artifacts", args)?;
        blocking(cx, FOR_FILES, move |cx| record(cx, args.files)).await
    }
}

fn record(cx: &CallContext, files: Vec<File>) -> Result<Value, ToolError> {
    let Some(dirs) = cx.artifact_dirs.clone() else {
        let message = "only a task of a run on this machine has a directory for artifacts";
        return Err(ToolError::failed(message).terminal());
    };
    let (mut found, mut missing) = (BTreeMap::new(), Vec::new());
    for File { name, path, media_type } in files {
        if !is_inner(Path::new(&path)) {
            let problem = format!("`{path}` is not a path in the directory of the run");
            return Err(invalid("artifacts", "files", problem));
        }
        match cx.describe_artifact(&dirs.of_run.join(&path)) {
            Ok(file) => {
                let media_type = media_type.map_or(file.media_type, Into::into);
                found.insert(name.clone(), Artifact { name: Some(name), media_type, ..file });
            }
            Err(error) => missing.push(lacks(&name, &path, &error)),
        }
    }
    if !missing.is_empty() {
        return Err(failure(&missing, &dirs));
    }
    let mut result = Map::new();
    for (name, file) in found {
        let Artifact { path, bytes, sha256, media_type, .. } = cx.record_artifact(file)?;
        result.insert(name, json!({"path": path, "bytes": bytes, "sha256": sha256, "type": media_type}));
    }
    Ok(Value::Object(result))
}

/// Returns the reason why a file does not count.
fn lacks(name: &str, path: &str, error: &ToolError) -> String {
    let is_missing = |error: &ToolError| matches!(error, ToolError::Io { source, .. } if source.kind() == ErrorKind::NotFound);
    if is_missing(error) {
        format!("artifact `{name}` is missing: there is no file `{path}` in $TASKPAWL_ARTIFACTS")
    } else if matches!(error, ToolError::OutsideRoot { .. }) {
        format!("artifact `{name}` does not count: `{path}` is a link out of $TASKPAWL_ARTIFACTS")
    } else {
        format!("artifact `{name}` does not count: {error}")
    }
}

fn failure(missing: &[String], dirs: &ArtifactDirs) -> ToolError {
    let mut message = missing.iter().take(MAX_NAMED).cloned().collect::<Vec<_>>().join("; ");
    if missing.len() > MAX_NAMED {
        message = format!("{message}; and {} more", missing.len() - MAX_NAMED);
    }
    let mut names: Vec<String> = fs::read_dir(&dirs.of_run)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| format!("`{}`", entry.file_name().to_string_lossy()))
        .collect();
    names.sort();
    let more = names.len().saturating_sub(MAX_NAMED);
    names.truncate(MAX_NAMED);
    if more > 0 {
        names.push(format!("{more} more"));
    }
    let there = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
    ToolError::failed(format!("{message}; the directory has {there}")).with_class(MISSING).terminal()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;
    use std::sync::{Arc, Mutex};

    use super::*;

    fn context(dir: &Path) -> CallContext {
        let (all, of_run) = (dir.join("all"), dir.join("all/run"));
        fs::create_dir_all(&of_run).unwrap();
        fs::create_dir_all(dir.join("project")).unwrap();
        let mut cx = CallContext::new(dir.join("project"), dir.join("out"));
        cx.artifact_dirs = Some(Arc::new(ArtifactDirs { of_run, all }));
        cx
    }

    async fn call(cx: &CallContext, files: Value) -> Result<Value, ToolError> {
        Artifacts::new().call(cx.clone(), json!({"files": files})).await
    }

    #[tokio::test]
    async fn files_in_the_directory_of_the_run_are_recorded_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let mut cx = context(dir.path());
        let path = dir.path().join("all/run/sub/plan.md");
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, "plan").unwrap();
        let got = Arc::new(Mutex::new(Vec::new()));
        let into = Arc::clone(&got);
        cx.artifacts = Some(Arc::new(move |file| {
            into.lock().unwrap().push(file);
            true
        }));
        let files = json!([
            {"name": "plan", "path": "sub/plan.md"},
            {"name": "typed", "path": "sub/plan.md", "type": "text/plain"},
        ]);
        let result = call(&cx, files).await.unwrap();
        assert_eq!(result["plan"]["path"], path.to_str().unwrap());
        assert_eq!((&result["plan"]["bytes"], &result["plan"]["type"]), (&json!(4), &json!("text/markdown")));
        assert_eq!(result["typed"]["type"], "text/plain");
        let names: Vec<_> = got.lock().unwrap().iter().map(|file| file.name.clone().unwrap()).collect();
        assert_eq!(names, ["plan", "typed"]);
        assert_eq!(cx.artifact(&path).await.unwrap().path, path, "tools record such a file, too");
    }

    #[tokio::test]
    async fn only_files_in_the_directory_count() {
        let dir = tempfile::tempdir().unwrap();
        let cx = context(dir.path());
        let run = dir.path().join("all/run");
        fs::write(dir.path().join("secret"), "s").unwrap();
        fs::create_dir(run.join("folder")).unwrap();
        symlink(dir.path().join("secret"), run.join("link")).unwrap();
        for (path, why) in [
            (
                "none.md",
                "there is no file `none.md` in $TASKPAWL_ARTIFACTS; the directory has `folder`, `link`",
            ),
            ("folder", "is not a regular file"),
            ("link", "is a link out of $TASKPAWL_ARTIFACTS"),
            ("../../secret", "not a path in the directory of the run"),
            ("/etc/passwd", "not a path in the directory of the run"),
        ] {
            let error = call(&cx, json!([{"name": "x", "path": path}])).await.unwrap_err();
            assert!(error.to_string().contains(why), "{path}: {error}");
        }
        let missing = call(&cx, json!([{"name": "x", "path": "none.md"}])).await.unwrap_err();
        assert_eq!(missing.class(), MISSING);
    }
}
