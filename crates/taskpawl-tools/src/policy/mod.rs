//! The policy: which calls may run, which need somebody's yes, and which never run.
//!
//! Three layers are asked, and the strictest answer counts: the ceiling of the machine, the file of the user, and the file of the
//! project, which therefore only narrows. Within a file a rule comes before what the file says about an origin, and the strictest
//! of the rules that are about a call counts.

mod command;
mod directory;
mod file;
mod layer;
mod near;
mod rule;
mod schema;
mod start;
mod version;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};

pub use file::PolicyError;
pub use layer::{Layer, LayerKind, Standing};
pub use near::NearRule;
pub use rule::Rule;
pub use schema::policy_schema;
pub use version::content_hash;

use crate::registry::Registry;
use crate::root::is_surely_outside;
use crate::sandbox::{SandboxMode, SandboxSettings};
use layer::Said;
use rule::Look;

/// Where the ceiling of a machine is: no file and no flag lifts what it says.
pub const CEILING: &str = "/etc/taskpawl/policy.toml";

/// Built-in tools that change nothing and reach nothing but files beneath the root.
pub(crate) const READ_ONLY: &[&str] = &["fail", "glob", "grep", "list_dir", "log", "read_file", "sleep"];

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$vdoc:meta])* $variant:ident = $word:literal),+ $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
        pub enum $name {
            $($(#[$vdoc])* #[serde(rename = $word)] $variant),+
        }

        impl $name {
            /// Every value, in order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// Returns the word that stands for it in files.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }

            /// Returns the value of a word.
            pub fn from_word(word: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.as_str() == word)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}
pub(crate) use words;

words! {
    /// What is decided about a call. The order is that of strictness.
    Decision {
        /// It runs.
        Allow = "allow",
        /// It runs when somebody has approved it.
        Ask = "ask",
        /// It never runs.
        Deny = "deny",
    }
}

words! {
    /// Who added a call.
    CallOrigin {
        /// A person, on the command line.
        Cli = "cli",
        /// A program that embeds the library.
        Library = "library",
        /// A plan file that a person applied.
        Plan = "plan",
        /// A client of the MCP server.
        Mcp = "mcp",
        /// An agent, through a tool call.
        Agent = "agent",
    }
}

impl CallOrigin {
    /// Returns whether a model stands behind it rather than a person.
    pub(crate) fn is_model(self) -> bool {
        matches!(self, Self::Mcp | Self::Agent)
    }
}

words! {
    /// A way to widen the sandbox.
    SandboxLift {
        /// To be without it.
        Off = "off",
        /// The network.
        Net = "net",
        /// More paths.
        Paths = "paths",
    }
}

/// What a call asks of the sandbox, or what is granted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct SandboxNeed {
    /// Network access.
    pub net: bool,
    /// Paths to read.
    pub read: Vec<String>,
    /// Paths to write.
    pub write: Vec<String>,
}

impl SandboxNeed {
    /// Returns whether everything that `other` asks for is granted.
    pub(crate) fn covers(&self, other: &Self) -> bool {
        let is_beneath = |paths: &[String], path: &String| {
            let has_parent = path.split('/').any(|part| part == "..");
            !has_parent && paths.iter().any(|above| std::path::Path::new(path).starts_with(above))
        };
        (self.net || !other.net)
            && other.read.iter().all(|path| is_beneath(&self.read, path) || is_beneath(&self.write, path))
            && other.write.iter().all(|path| is_beneath(&self.write, path))
    }
}

/// A call as the policy sees it.
#[derive(Clone, Copy, Debug)]
pub struct PolicyCall<'a> {
    /// The name of its tool.
    pub tool: &'a str,
    /// Its arguments, evaluated.
    pub args: &'a Map<String, Value>,
    /// Who added it.
    pub origin: CallOrigin,
    /// What it asks of the sandbox.
    pub sandbox: Option<&'a SandboxNeed>,
}

/// What the sandbox of a run is, as its user set it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Setting {
    /// Programs run without it.
    pub(crate) is_off: bool,
    /// What every call is granted: asking for it is no matter.
    pub(crate) granted: SandboxNeed,
    /// Tools of the program whose calls run nothing and change nothing that is run.
    pub(crate) harmless: Arc<BTreeSet<String>>,
}

impl Setting {
    fn of(settings: &SandboxSettings) -> Self {
        let texts =
            |paths: &[PathBuf]| paths.iter().map(|path| path.to_string_lossy().into_owned()).collect();
        let granted =
            SandboxNeed { net: settings.net, read: texts(&settings.read), write: texts(&settings.write) };
        Self { is_off: settings.mode == SandboxMode::Off, granted, harmless: Arc::default() }
    }
}

/// The files of a policy; those that do not exist say nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    /// The ceiling of the machine: [`CEILING`], but for tests.
    pub ceiling: Option<PathBuf>,
    /// That of the user.
    pub user: Option<PathBuf>,
    /// That of the project.
    pub project: Option<PathBuf>,
}

/// Decides about calls. The default is the policy without any file.
#[derive(Clone, Debug)]
pub struct Policy {
    /// The ceiling and the project say nothing where there is no file of theirs.
    layers: Vec<Layer>,
    /// `None` where nobody has said what it is.
    setting: Option<Setting>,
    harmless: Arc<BTreeSet<String>>,
    directory: PathBuf,
    /// The same without links; empty where nobody has said which it is.
    real_directory: PathBuf,
    version: String,
    /// Whose commands are known.
    tools: Registry,
}

impl Default for Policy {
    fn default() -> Self {
        Self::of(vec![Layer::builtin()])
    }
}

impl Policy {
    fn of(layers: Vec<Layer>) -> Self {
        let version = version::version(&layers, &PathBuf::new());
        Self {
            layers,
            setting: None,
            harmless: Arc::default(),
            directory: PathBuf::new(),
            real_directory: PathBuf::new(),
            version,
            tools: Registry::new(),
        }
    }

    /// Reads the files, and checks the tests that stand in them.
    ///
    /// # Errors
    /// A file exists and cannot be read, is wrong, or a rule fails a test of its own.
    pub fn load(files: &PolicyFiles) -> Result<Self, PolicyError> {
        let user = match &files.user {
            Some(path) => file::read(path, LayerKind::User)?,
            None => None,
        };
        let mut layers = vec![user.unwrap_or_else(Layer::builtin)];
        let others = [(LayerKind::Ceiling, &files.ceiling), (LayerKind::Project, &files.project)];
        for (kind, path) in others {
            if let Some(path) = path {
                layers.extend(file::read(path, kind)?);
            }
        }
        layers.sort_by_key(Layer::kind);
        Ok(Self::of(layers))
    }

    /// Reads a policy from the texts of its files, which are named as they are in messages.
    ///
    /// # Errors
    /// As of [`load`](Self::load).
    pub fn parse(texts: &[(LayerKind, &str)]) -> Result<Self, PolicyError> {
        let mut layers = Vec::new();
        for (kind, text) in texts {
            layers.push(file::parse(&PathBuf::from(format!("{kind}.toml")), *kind, text)?);
        }
        if !layers.iter().any(|layer| layer.kind() == LayerKind::User) {
            layers.push(Layer::builtin());
        }
        layers.sort_by_key(Layer::kind);
        Ok(Self::of(layers))
    }

    /// Says what the sandbox of programs is: what every call is granted is not asked about, and what models may run inside it alone asks
    /// where it is off.
    #[must_use]
    pub fn confined_by(mut self, settings: &SandboxSettings) -> Self {
        self.setting = Some(Setting::of(settings));
        self
    }

    /// As [`confined_by`](Self::confined_by), where nobody has said so yet.
    #[must_use]
    pub fn or_confined_by(self, settings: &SandboxSettings) -> Self {
        if self.setting.is_some() { self } else { self.confined_by(settings) }
    }

    /// Names tools of this program whose calls run nothing, reach nothing, and change nothing that is run, such as to-do lists: what
    /// models add of these does not ask. Only tools that the program itself registers under these names are to be named.
    #[must_use]
    pub fn with_harmless(mut self, tools: impl IntoIterator<Item = String>) -> Self {
        self.harmless = Arc::new(tools.into_iter().collect());
        self
    }

    fn setting(&self) -> Setting {
        Setting { harmless: Arc::clone(&self.harmless), ..self.setting.clone().unwrap_or_default() }
    }

    /// Lets the calls of an origin run inside the sandbox, as the user has said when a program was started: the file of the user goes
    /// before it, and those of the machine and the project narrow it.
    #[must_use]
    pub fn sandboxing(mut self, origin: CallOrigin) -> Self {
        for layer in self.layers.iter_mut().filter(|layer| layer.kind == LayerKind::User) {
            layer.opted_in.insert(origin);
        }
        self.version = version::version(&self.layers, &self.directory);
        self
    }

    /// Returns which layer keeps the calls of an origin from running inside the sandbox without being asked about, and how.
    pub fn holds_back(&self, origin: CallOrigin) -> Option<String> {
        let strict = |layer: &&Layer| layer.standing(origin) > Some(Standing::Sandboxed);
        self.layers.iter().find(strict).map(|layer| {
            let standing = layer.standing(origin).map_or("", Standing::as_str);
            format!("{} says `{origin} = \"{standing}\"`", layer.place(None))
        })
    }

    /// Says in which directory calls work: an approval holds for one.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self.real_directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        self.version = version::version(&self.layers, &self.directory);
        self
    }

    /// Says which tools there are: rules about commands are also about the programs that these run.
    #[must_use]
    pub fn with_tools(mut self, tools: Registry) -> Self {
        self.tools = tools;
        self
    }

    /// Returns whether a tool says that a call with these arguments may be done once more. Of a tool that is not known, no.
    pub fn is_repeatable(&self, tool: &str, args: &Map<String, Value>) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.is_repeatable(&Value::Object(args.clone())))
    }

    /// Returns what approvals are bound to beside the call: a hash of every file and of where calls work.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the layers, the ceiling first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns what rules let calls write without asking anybody: those of the user, which no project widens.
    pub fn granted_to_write(&self) -> impl Iterator<Item = &str> {
        let layers = self.layers.iter().filter(|layer| layer.kind == LayerKind::User);
        let rules = layers.flat_map(Layer::rules).filter(|rule| rule.decision == Decision::Allow);
        rules.flat_map(|rule| rule.sandbox.write.iter().map(String::as_str))
    }

    fn look<'a>(&'a self, call: &'a PolicyCall<'a>) -> Look<'a> {
        Look::at(call, &self.tools, [&self.directory, &self.real_directory])
    }

    /// Decides about a call, and says why where it does not just run.
    pub fn judge(&self, call: &PolicyCall<'_>) -> (Decision, Option<String>) {
        let (look, setting) = (self.look(call), self.setting());
        let said = self.layers.iter().map(|layer| layer.say(&look, &setting));
        // Of answers that are equally strict the first counts.
        let strictest = said.reduce(|first, next| if next.decision > first.decision { next } else { first });
        match strictest {
            Some(said) if said.decision == Decision::Ask => match self.in_vain(call) {
                Some(why) => (Decision::Deny, Some(why)),
                None => (Decision::Ask, Some(said.why(&look))),
            },
            Some(said) if said.decision > Decision::Allow => (said.decision, Some(said.why(&look))),
            _ => (Decision::Allow, None),
        }
    }

    /// Returns why a call fails even if somebody approves it, so that nobody is asked.
    fn in_vain(&self, call: &PolicyCall<'_>) -> Option<String> {
        let args = Value::Object(call.args.clone());
        let path = self.tools.get(call.tool)?.tool().file_beneath_root(&args)?;
        let is_known = !self.directory.as_os_str().is_empty() && !path.contains("${{");
        let is_outside =
            is_known && is_surely_outside(Path::new(path), [&self.directory, &self.real_directory]);
        is_outside.then(|| {
            format!(
                "`{path}` leads out of the project root, where `{}` reaches nothing, approved or not",
                call.tool
            )
        })
    }

    /// Says what each layer says about a call.
    pub fn explain(&self, call: &PolicyCall<'_>) -> Explained {
        let (look, setting) = (self.look(call), self.setting());
        let said: Vec<Said<'_>> = self.layers.iter().map(|layer| layer.say(&look, &setting)).collect();
        let strictest = said.iter().map(|said| said.decision).max().unwrap_or(Decision::Allow);
        let in_vain = if strictest == Decision::Ask { self.in_vain(call) } else { None };
        let decision = if in_vain.is_some() { Decision::Deny } else { strictest };
        let steps = said.iter().map(|said| said.step(&look)).collect();
        let is_plain = look.commands().map(|commands| commands.plain.is_some());
        let commands = look.commands().and_then(|commands| commands.plain.as_ref());
        let commands = commands.map(|plain| plain.iter().map(|one| one.argv.clone()).collect());
        Explained { decision, steps, in_vain, is_plain, commands, version: self.version.clone() }
    }

    /// Returns which file requires a PIN for what people decide, and where.
    pub fn requires_pin(&self) -> Option<String> {
        self.layers.iter().find_map(Layer::requires_pin)
    }

    /// Returns which file keeps the user from widening the sandbox in a way, and where.
    pub fn forbids(&self, lift: SandboxLift) -> Option<String> {
        self.layers.iter().find_map(|layer| layer.forbids(lift))
    }
}

/// What a policy says about a call, layer by layer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// What counts.
    pub decision: Decision,
    /// What each layer says, the ceiling first.
    pub steps: Vec<Step>,
    /// Why it fails even if somebody approves it, so that nobody is asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_vain: Option<String>,
    /// Of a command line: whether all of it is understood. What is not is never allowed by a rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_plain: Option<bool>,
    /// The commands of it, where that is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Vec<String>>>,
    /// The version of the policy.
    pub version: String,
}

/// What one layer says about a call.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// Whose it is.
    pub layer: LayerKind,
    /// What it decides.
    pub decision: Decision,
    /// Why, in words.
    pub why: String,
    /// The rule that counted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<String>,
    /// The file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<PathBuf>,
    /// The line of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
    /// The rules that would allow the call, but for a key that they lack.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<NearRule>,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {} ({})", self.layer, self.decision, self.why)
    }
}
