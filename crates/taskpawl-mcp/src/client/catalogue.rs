//! The tools of a server, saved when it last ran.

use std::io;
use std::path::{Path, PathBuf};

use rmcp::model::Tool;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use taskpawl::tools::{Hints, ToolSpec, make_private_directories};

/// Maximum number of tools of one server.
pub(super) const MAX_TOOLS: usize = 1000;

/// Maximum size of a saved schema and of a saved description, in bytes.
const MAX_SCHEMA_BYTES: usize = 256 << 10;
const MAX_DESCRIPTION_BYTES: usize = 32 << 10;

/// All tools that a server offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Catalogue {
    pub(super) tools: Vec<Entry>,
}

/// One tool of a server, with its hints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "four independent facts, named as in MCP")]
pub(super) struct Entry {
    pub(super) name: String,
    #[serde(default)]
    pub(super) description: String,
    pub(super) args: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result: Option<Value>,
    #[serde(default)]
    read_only: bool,
    #[serde(default)]
    idempotent: bool,
    #[serde(default)]
    destructive: bool,
    #[serde(default)]
    open_world: bool,
}

impl Catalogue {
    /// Reads a saved catalogue. A file that is missing or broken counts as no catalogue: the server is then asked
    /// again.
    pub(super) fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Saves the catalogue, whole or not at all.
    pub(super) fn write(&self, path: &Path) -> io::Result<()> {
        write(path, &serde_json::to_vec(self)?)
    }

    /// Returns the tool with this name.
    pub(super) fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.iter().find(|entry| entry.name == name)
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    make_private_directories(directory)?;
    // A rename within one directory is atomic: another process that reads the catalogue sees the old file or the new
    // one.
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    io::Write::write_all(&mut file, bytes)?;
    file.persist(path)?;
    Ok(())
}

/// Reads the saved reason why a server could not be started. The file is next to the catalogue.
pub(super) fn read_problem(catalogue: &Path) -> Option<String> {
    serde_json::from_slice(&std::fs::read(problem_of(catalogue)).ok()?).ok()
}

/// Saves the reason why a server could not be started; `None` removes it. The catalogue stays as it is.
pub(super) fn write_problem(catalogue: &Path, problem: Option<&str>) -> io::Result<()> {
    let path = problem_of(catalogue);
    match problem {
        Some(problem) => write(&path, &serde_json::to_vec(problem)?),
        None => std::fs::remove_file(path),
    }
}

fn problem_of(catalogue: &Path) -> PathBuf {
    catalogue.with_extension("problem")
}

/// Returns the path of a server's catalogue.
pub(super) fn place(directory: &Path, fingerprint: &str) -> PathBuf {
    directory.join(format!("{fingerprint}.json"))
}

impl Entry {
    /// Converts a tool of a server. Missing hints count as the worst case, as MCP demands.
    pub(super) fn of(tool: &Tool) -> Self {
        let hints = tool.annotations.clone().unwrap_or_default();
        let read_only = hints.read_only_hint == Some(true);
        let mut description =
            tool.description.as_deref().or(tool.title.as_deref()).unwrap_or_default().to_owned();
        // Cuts between two characters: `truncate` panics within one.
        description.truncate(description.floor_char_boundary(MAX_DESCRIPTION_BYTES));
        let schema = |schema: &rmcp::model::JsonObject| bounded(Value::Object(schema.clone()));
        Self {
            name: tool.name.to_string(),
            description,
            // Without a usable schema any object passes here, and the server validates it.
            args: schema(&tool.input_schema).unwrap_or_else(|| json!({"type": "object"})),
            result: tool.output_schema.as_deref().and_then(schema),
            read_only,
            // In MCP the hints `idempotent` and `destructive` have a meaning only for tools that are not read-only.
            idempotent: !read_only && hints.idempotent_hint == Some(true),
            destructive: !read_only && hints.destructive_hint != Some(false),
            open_world: hints.open_world_hint != Some(false),
        }
    }

    /// Returns the specification under the given name in plans.
    pub(super) fn spec(&self, name: String) -> ToolSpec {
        let hints = Hints {
            read_only: self.read_only,
            idempotent: self.idempotent,
            destructive: self.destructive,
            open_world: self.open_world,
        };
        let mut spec = ToolSpec::new(name, &*self.description, self.args.clone()).with_hints(hints);
        spec.result_schema.clone_from(&self.result);
        spec
    }
}

/// Returns the schema unless it is too large. Arguments are then left to the server to validate.
fn bounded(schema: Value) -> Option<Value> {
    (schema.to_string().len() <= MAX_SCHEMA_BYTES).then_some(schema)
}

#[cfg(test)]
mod tests {
    use rmcp::model::{JsonObject, ToolAnnotations};

    use super::*;

    fn entry(annotations: Option<ToolAnnotations>) -> Entry {
        let mut tool = Tool::new("a", "b", JsonObject::new());
        tool.annotations = annotations;
        Entry::of(&tool)
    }

    fn hints(annotations: Option<ToolAnnotations>) -> Hints {
        entry(annotations).spec("s/a".to_owned()).hints
    }

    #[test]
    fn without_hints_the_worst_is_assumed() {
        let worst = Hints { destructive: true, open_world: true, ..Hints::default() };
        assert_eq!(hints(None), worst);
        assert_eq!(hints(Some(ToolAnnotations::new())), worst);
        assert_eq!(
            hints(Some(ToolAnnotations::new().read_only(true).idempotent(true).open_world(false))),
            Hints { read_only: true, ..Hints::default() }
        );
        assert_eq!(
            hints(Some(ToolAnnotations::new().idempotent(true).destructive(false).open_world(false))),
            Hints { idempotent: true, ..Hints::default() }
        );
    }

    #[test]
    fn what_was_written_is_read_and_what_is_broken_counts_as_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = place(&dir.path().join("deep"), "abc");
        let catalogue = Catalogue { tools: vec![entry(None)] };
        catalogue.write(&path).unwrap();
        assert_eq!(Catalogue::read(&path), Some(catalogue));
        std::fs::write(&path, "{\"tools\": [").unwrap();
        assert_eq!(Catalogue::read(&path), None);
        assert_eq!(Catalogue::read(dir.path()), None);
    }
}
