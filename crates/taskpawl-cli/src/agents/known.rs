//! The supported coding agents, with the files that they read.

use std::path::Path;

use taskpawl_formats::json_text::Json;

use super::block::Block;
use super::json::{Addition, What};
use super::trouble::Trouble;
use crate::files::read_file;

/// An agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub(crate) enum Agent {
    /// Claude Code: .mcp.json, CLAUDE.md
    Claude,
    /// Gemini CLI: .gemini/settings.json, GEMINI.md
    Gemini,
    /// Codex: .codex/config.toml, AGENTS.md
    Codex,
    /// Cursor: .cursor/mcp.json, .cursor/rules/taskpawl.mdc
    Cursor,
    /// VS Code with Copilot: .vscode/mcp.json, .github/copilot-instructions.md
    Vscode,
    /// Zed: .zed/settings.json, and the first file of instructions that it finds
    Zed,
    /// opencode: opencode.json, AGENTS.md
    Opencode,
}

/// Options of the set-up.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Wish {
    /// True if calls that models add may run in the sandbox without an approval.
    pub(crate) allow_sandboxed: bool,
    /// True if a hook shows the state of the plan at the start of each session.
    pub(crate) hooks: bool,
}

/// One addition to one file.
#[derive(Debug, Clone)]
pub(super) struct Piece {
    /// The path of the file, from the root of the project.
    pub(super) path: String,
    pub(super) part: Part,
}

/// The content of an addition.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// A value in a JSON file.
    Json(Addition),
    /// A table at the end of a TOML file.
    Toml(Block),
    /// Instructions at the end of a text file.
    Text(Block),
}

/// The name of taskpawl's entry.
const NAME: &str = "taskpawl";

const COMMAND: &str = "taskpawl";

/// The arguments for [`Wish::allow_sandboxed`].
pub(super) const ALLOW: [&str; 2] = ["--allow", "sandboxed"];

impl Agent {
    /// Returns the name on the command line.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Gemini => "gemini",
            Self::Codex => "codex",
            Self::Cursor => "cursor",
            Self::Vscode => "vscode",
            Self::Zed => "zed",
            Self::Opencode => "opencode",
        }
    }

    /// Returns all additions for the agent in the project at `root`.
    pub(super) fn pieces(self, root: &Path, wish: Wish) -> Vec<Piece> {
        let mut pieces = vec![self.entry(root, wish), self.instructions(root)];
        if wish.hooks && self == Self::Claude {
            pieces.push(hook());
        }
        pieces
    }

    /// Returns all additions that an earlier set-up may have written for the agent.
    pub(super) fn all_pieces(self, root: &Path) -> Vec<Piece> {
        let mut pieces = self.pieces(root, Wish { hooks: true, ..Wish::default() });
        if self == Self::Zed {
            // Zed may read another file now than at the time of the set-up, so all candidates are searched.
            pieces.truncate(1);
            pieces.extend(READ_BY_ZED.map(|path| text_piece(path, "")));
        }
        pieces
    }

    /// Returns the entry that names taskpawl's MCP server.
    pub(super) fn entry(self, root: &Path, wish: Wish) -> Piece {
        let json = |path: &str, way: &[&'static str], fields| {
            let addition = Addition { path: way.to_vec(), what: What::Entry(NAME, fields) };
            Piece { path: path.to_owned(), part: Part::Json(addition) }
        };
        let text = |text: &str| Json::Plain(text.into());
        let words = self.words(wish);
        let args = || ("args", Json::List(words.iter().map(|word| text(word)).collect()));
        let command = || ("command", text(COMMAND));
        match self {
            Self::Claude => json(".mcp.json", &["mcpServers"], vec![command(), args()]),
            Self::Gemini => json(".gemini/settings.json", &["mcpServers"], vec![command(), args()]),
            Self::Cursor => json(".cursor/mcp.json", &["mcpServers"], vec![command(), args()]),
            Self::Vscode => {
                let fields = vec![("type", text("stdio")), command(), args()];
                json(".vscode/mcp.json", &["servers"], fields)
            }
            Self::Zed => {
                let fields = vec![("source", text("custom")), command(), args()];
                json(".zed/settings.json", &["context_servers"], fields)
            }
            Self::Opencode => {
                let all = std::iter::once(COMMAND).chain(words.iter().copied());
                let command = ("command", Json::List(all.map(text).collect()));
                let fields = vec![("type", text("local")), command, ("enabled", Json::Plain(true.into()))];
                opencode(root, fields)
            }
            Self::Codex => Piece { path: ".codex/config.toml".to_owned(), part: Part::Toml(table(&words)) },
        }
    }

    /// Returns the arguments of taskpawl's MCP server.
    fn words(self, wish: Wish) -> Vec<&'static str> {
        let mut words = vec!["mcp"];
        // These two agents may start servers in any directory, and replace this variable by the project.
        if matches!(self, Self::Cursor | Self::Vscode) {
            words.extend(["--project", "${workspaceFolder}"]);
        }
        if wish.allow_sandboxed {
            words.extend(ALLOW);
        }
        words
    }

    fn instructions(self, root: &Path) -> Piece {
        let (path, head) = match self {
            Self::Claude => ("CLAUDE.md", ""),
            Self::Gemini => ("GEMINI.md", ""),
            Self::Codex | Self::Opencode => ("AGENTS.md", ""),
            Self::Cursor => (".cursor/rules/taskpawl.mdc", CURSOR_HEAD),
            Self::Vscode => (".github/copilot-instructions.md", ""),
            Self::Zed => (zed_instructions(root), ""),
        };
        text_piece(path, head)
    }
}

fn text_piece(path: &str, head: &'static str) -> Piece {
    let block = Block { begin: BEGIN, end: END, text: GUIDE.to_owned(), head, is_markdown: true };
    Piece { path: path.to_owned(), part: Part::Text(block) }
}

/// The files from which Zed reads instructions: only the first that exists.
const READ_BY_ZED: [&str; 9] = [
    ".rules",
    ".cursorrules",
    ".windsurfrules",
    ".clinerules",
    ".github/copilot-instructions.md",
    "AGENT.md",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
];

fn zed_instructions(root: &Path) -> &'static str {
    READ_BY_ZED.into_iter().find(|name| root.join(name).is_file()).unwrap_or("AGENTS.md")
}

/// Returns the entry for opencode, which reads `opencode.json` or `opencode.jsonc`. Its second version nests servers
/// one level deeper; that level is used if the file has it.
fn opencode(root: &Path, fields: Vec<(&'static str, Json)>) -> Piece {
    let path = if root.join("opencode.jsonc").is_file() { "opencode.jsonc" } else { "opencode.json" };
    let deeper = Addition { path: vec!["mcp"], what: What::Entry("servers", Vec::new()) };
    let is_deeper = read_file(&root.join(path)).is_ok_and(|text| deeper.is_in(&text));
    let way = if is_deeper { vec!["mcp", "servers"] } else { vec!["mcp"] };
    Piece { path: path.to_owned(), part: Part::Json(Addition { path: way, what: What::Entry(NAME, fields) }) }
}

fn table(words: &[&str]) -> Block {
    let args: Vec<String> = words.iter().map(|word| format!("\"{word}\"")).collect();
    let text = format!("[mcp_servers.{NAME}]\ncommand = \"{COMMAND}\"\nargs = [{}]", args.join(", "));
    Block { begin: TOML_BEGIN, end: TOML_END, text, head: "", is_markdown: false }
}

/// The text that identifies taskpawl's hook.
const HOOK: &str = "taskpawl prime";

/// Returns the hook of Claude Code. Only the output of `SessionStart` reaches the context of the model, also after
/// each compaction; that of `PreCompact` does not.
fn hook() -> Piece {
    let text = |text: &str| Json::Plain(text.into());
    let command = Json::object([("type", text("command")), ("command", text(HOOK))]);
    let group = Json::object([("hooks", Json::List(vec![command]))]);
    let what = What::Element(group, HOOK);
    let addition = Addition { path: vec!["hooks", "SessionStart"], what };
    Piece { path: ".claude/settings.json".to_owned(), part: Part::Json(addition) }
}

impl Part {
    /// Returns the file with the addition.
    pub(super) fn add(&self, file: Option<&str>) -> Result<String, Trouble> {
        match self {
            Self::Json(addition) => addition.add(file),
            Self::Text(block) => block.add(file),
            Self::Toml(block) => {
                if let Some(file) = file.filter(|file| !block.is_in(file)) {
                    if says_it_already(file, block)? {
                        return Ok(file.to_owned());
                    }
                    refuse_taken(file)?;
                }
                let added = block.add(file)?;
                refuse_other_changes(block, file.unwrap_or_default(), &added)?;
                Ok(added)
            }
        }
    }

    /// Returns the file without the addition, or `None` if nothing else is left in it.
    pub(super) fn remove(&self, file: &str) -> Result<Option<String>, Trouble> {
        match self {
            Self::Json(addition) => addition.remove(file),
            Self::Text(block) => block.remove(file),
            Self::Toml(block) => {
                let left = block.remove(file)?;
                refuse_other_changes(block, file, left.as_deref().unwrap_or_default())?;
                Ok(left)
            }
        }
    }

    /// Returns whether the file has an entry of the same name that differs from ours.
    pub(super) fn is_others(&self, file: &str) -> bool {
        match self {
            Self::Json(addition) => addition.is_others(file),
            // In these files our part is between marks, so it cannot be confused.
            Self::Text(_) | Self::Toml(_) => false,
        }
    }

    /// Returns whether the file has the addition.
    pub(super) fn is_in(&self, file: &str) -> bool {
        match self {
            Self::Json(addition) => addition.is_in(file),
            Self::Text(block) | Self::Toml(block) => block.is_in(file),
        }
    }
}

/// Returns whether the file has an entry that starts the same program with the same arguments, possibly with more
/// fields.
fn says_it_already(file: &str, block: &Block) -> Result<bool, Trouble> {
    let entry = |text: &str| Ok(parsed(text)?.get("mcp_servers").and_then(|all| all.get(NAME)).cloned());
    let (Some(there), Some(ours)) = (entry(file)?, entry(&block.text)?) else { return Ok(false) };
    let mut fields = ours.as_table().into_iter().flatten();
    Ok(fields.all(|(field, value)| there.get(field) == Some(value)))
}

/// Refuses a file with an entry of our name that taskpawl did not write.
fn refuse_taken(file: &str) -> Result<(), Trouble> {
    if parsed(file)?.get("mcp_servers").is_none_or(|all| all.get(NAME).is_none()) {
        return Ok(());
    }
    // An entry without a header of its own is located by its name.
    let header =
        file.lines().position(|line| line.trim_start().starts_with(&format!("[mcp_servers.{NAME}]")));
    let number = header.or_else(|| file.lines().position(|line| line.contains(NAME))).unwrap_or(0);
    let text = file.lines().nth(number).unwrap_or_default();
    let before = text.len() - text.trim_start().len();
    Err(Trouble::Taken { name: "mcp_servers.taskpawl", line: number + 1, column: before + 1 })
}

/// Refuses an edit that would change other entries. Marks may be part of a text that a person wrote, and other
/// entries may have been moved between them.
fn refuse_other_changes(block: &Block, before: &str, after: &str) -> Result<(), Trouble> {
    let others = |text: &str| {
        let mut all = parsed(text)?;
        if let Some(toml::Value::Table(servers)) = all.get_mut("mcp_servers") {
            servers.remove(NAME);
            if servers.is_empty() {
                all.remove("mcp_servers");
            }
        }
        Ok(all)
    };
    if others(before)? == others(after)? {
        return Ok(());
    }
    Err(Trouble::Others { begin: block.begin, end: block.end })
}

fn parsed(text: &str) -> Result<toml::Table, Trouble> {
    text.parse()
        .map_err(|error: toml::de::Error| Trouble::Toml { problem: error.to_string().trim_end().to_owned() })
}

const BEGIN: &str = "<!-- taskpawl:begin -->";
const END: &str = "<!-- taskpawl:end -->";
const TOML_BEGIN: &str = "# taskpawl:begin";
const TOML_END: &str = "# taskpawl:end";

const CURSOR_HEAD: &str =
    "---\ndescription: How to plan and run work with taskpawl\nalwaysApply: true\n---\n\n";

/// The instructions for every agent. Agents read them in every session, so they are short.
const GUIDE: &str = "\
## Plan and work with taskpawl

This project keeps its plan in taskpawl: tasks with dependencies and tool calls, shared by all agents, kept across sessions.

- At the start of a session, and when you have lost the thread, call the MCP tool `plan_show` without arguments (in a shell:
  `taskpawl prime`). It lists your claims, the tasks that wait or failed, and the next actions.
- Write work of several steps as a plan with `plan_write` (in a shell: `taskpawl apply FILE`): one task for each result, with
  its dependencies, and with tool calls for work that programs do.
- Take work with `ready_list` or `task_update` and `action: claim`; report its end with `done` and a result, or with `fail` and
  the reason. Give the same name in `agent` each time, so that others see which agent holds a task.
- `run_ready` runs ready tasks that have tool calls. The status of such a task comes from its calls: do not report it.
- An approval is given by a person in a terminal, with `taskpawl approve ID`. Tell the person, and go on with other work.
";
