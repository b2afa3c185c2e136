//! Policy: decides which calls run, which need an approval, and which are denied.
//!
//! Three layers are evaluated, and the strictest decision counts: the ceiling of the machine, the policy of the user,
//! and the policy of the project. A project can therefore only restrict. Within a file, rules take precedence over the
//! default for an origin, and the strictest rule that applies to a call counts.

mod approvals;
mod call;
mod command;
mod directory;
mod file;
mod layer;
mod near;
#[cfg(feature = "policy-files")]
mod parser;
mod powers;
mod rule;
mod schema;
mod start;
mod version;

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Serialize;
use serde_json::{Map, Value};
use taskpawl_process::Isolation;

pub use approvals::RememberedApproval;
pub use call::{CallOrigin, Decision, PolicyCall, SandboxNeed};
pub use file::PolicyError;
pub use layer::{Layer, LayerKind, Standing};
pub use near::{NearRule, Step};
pub use powers::{Power, PowerInForce, Ruling};
pub use rule::Rule;
pub use schema::policy_schema;
pub use version::content_hash;

use crate::registry::Registry;
use crate::root::is_surely_outside;
use crate::sandbox::{NamedGrant, SandboxSettings};
use approvals::Remembered;
pub(crate) use call::Setting;
use layer::LayerDecision;
use rule::CallShape;

/// Path of the ceiling, the policy of the machine. No other file and no flag overrides it.
pub const CEILING: &str = "/etc/taskpawl/policy.toml";

/// Files of a policy; missing files have no effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyFiles {
    /// Ceiling of the machine: [`CEILING`], except in tests.
    pub ceiling: Option<PathBuf>,
    /// Policy of the user.
    pub user: Option<PathBuf>,
    /// Policy of the project.
    pub project: Option<PathBuf>,
}

/// Policy that decides on calls. The default is the built-in policy without any file.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Layers, the ceiling first. The ceiling and the project are absent if they have no file.
    layers: Vec<Layer>,
    /// Sandbox of the run; `None` until it is configured.
    setting: Option<Setting>,
    harmless: Arc<BTreeSet<String>>,
    directory: PathBuf,
    /// `directory` without links; empty until it is set.
    real_directory: PathBuf,
    version: String,
    /// Registered tools; command rules also apply to the programs that they report.
    tools: Registry,
    remembered: Remembered,
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
            remembered: Remembered::default(),
        }
    }

    /// Reads the policy files and runs the examples in them.
    ///
    /// # Errors
    /// A file exists and cannot be read, is invalid, or contains a rule that fails one of its examples.
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
        // The user's layer was read first; `authorize` relies on the ceiling coming first.
        layers.sort_by_key(Layer::kind);
        Ok(Self::of(layers))
    }

    /// Reads a policy from the texts of its files; messages name them by their layer.
    ///
    /// # Errors
    /// As for [`load`](Self::load).
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

    /// Sets the sandbox of the run.
    ///
    /// Permissions that every call has need no approval. If the sandbox is off, calls by models that were only allowed
    /// inside it need an approval.
    #[must_use]
    pub fn confined_by(mut self, settings: &SandboxSettings) -> Self {
        self.setting = Some(Setting::of(settings));
        self
    }

    /// Like [`confined_by`](Self::confined_by), but keeps a sandbox that is already set.
    #[must_use]
    pub fn or_confined_by(self, settings: &SandboxSettings) -> Self {
        if self.setting.is_some() { self } else { self.confined_by(settings) }
    }

    /// Declares tools of the host program whose calls start no program, reach nothing, and change nothing that is
    /// executed, such as to-do lists. Such calls by models need no approval.
    ///
    /// Only name tools that the program itself registers under these names: another tool of that name would be trusted,
    /// too.
    #[must_use]
    pub fn with_harmless(mut self, tools: impl IntoIterator<Item = String>) -> Self {
        self.harmless = Arc::new(tools.into_iter().collect());
        self
    }

    fn setting(&self) -> Setting {
        Setting { harmless: Arc::clone(&self.harmless), ..self.setting.clone().unwrap_or_default() }
    }

    /// Allows the calls of an origin inside the sandbox, as the user requested when starting a program.
    ///
    /// The policy file of the user takes precedence over this; the ceiling and the project can restrict it.
    #[must_use]
    pub fn sandboxing(mut self, origin: CallOrigin) -> Self {
        for layer in self.layers.iter_mut().filter(|layer| layer.kind == LayerKind::User) {
            layer.opted_in.insert(origin);
        }
        self.version = version::version(&self.layers, &self.directory);
        self
    }

    /// Returns the layer that keeps calls of an origin from running inside the sandbox without approval, with the
    /// setting that does so.
    pub fn holds_back(&self, origin: CallOrigin) -> Option<String> {
        let strict = |layer: &&Layer| layer.standing(origin) > Some(Standing::Sandboxed);
        self.layers.iter().find(strict).map(|layer| {
            let standing = layer.standing(origin).map_or("", Standing::as_str);
            format!("{} sets `{origin} = \"{standing}\"`", layer.place(None))
        })
    }

    /// Returns the strictest default for the calls of an origin to which no rule applies, and the place that says so.
    pub fn standing(&self, origin: CallOrigin) -> (Standing, Option<String>) {
        let said = self.layers.iter().filter_map(|layer| {
            let place = layer.origins.get(&origin).map(|(_, line)| layer.place(Some(*line)));
            Some((layer.standing(origin)?, place))
        });
        let strictest = said.reduce(|first, next| if next.0 > first.0 { next } else { first });
        strictest.unwrap_or((Standing::Deny, None))
    }

    /// Sets the directory of the calls. An approval is valid for one directory.
    #[must_use]
    pub fn in_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.directory = directory.into();
        self.real_directory = self.directory.canonicalize().unwrap_or_else(|_| self.directory.clone());
        self.version = version::version(&self.layers, &self.directory);
        self
    }

    /// Sets the registry of tools. Command rules then also apply to the programs that these tools report.
    #[must_use]
    pub fn with_tools(mut self, tools: Registry) -> Self {
        self.tools = tools;
        self
    }

    /// Sets the approvals that a person has remembered. They answer questions of the policies of the user and the project.
    #[must_use]
    pub fn with_remembered(mut self, approvals: Vec<RememberedApproval>) -> Self {
        self.remembered = Remembered::of(approvals);
        self
    }

    /// Returns the remembered approvals that answered a question since they were set, for this policy and its clones.
    pub fn used_approvals(&self) -> Vec<RememberedApproval> {
        self.remembered.used()
    }

    /// Returns whether a call with these arguments may be repeated; `false` for an unknown tool.
    pub fn is_repeatable(&self, tool: &str, args: &Map<String, Value>) -> bool {
        self.tools.get(tool).is_some_and(|tool| tool.is_repeatable(&Value::Object(args.clone())))
    }

    /// Returns the hash that approvals are bound to in addition to the call: of all policy files and the directory.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Returns the layers, the ceiling first.
    pub fn layers(&self) -> &[Layer] {
        &self.layers
    }

    /// Returns the paths that rules let calls write without approval. Only rules of the user count, for a project
    /// cannot widen them.
    pub fn granted_to_write(&self) -> impl Iterator<Item = &str> {
        let layers = self.layers.iter().filter(|layer| layer.kind == LayerKind::User);
        let rules = layers.flat_map(Layer::rules).filter(|rule| rule.decision == Decision::Allow);
        rules.flat_map(|rule| rule.sandbox.write.iter().map(String::as_str))
    }

    fn look<'a>(&'a self, call: &'a PolicyCall<'a>) -> CallShape<'a> {
        CallShape::at(call, &self.tools, [&self.directory, &self.real_directory])
    }

    /// Decides on a call, without remembered approvals. The reason is given unless the call simply runs.
    pub fn authorize(&self, call: &PolicyCall<'_>) -> (Decision, Option<String>) {
        self.decide(call, || false)
    }

    /// Decides on a call of a plan ("" without one), whose work has this hash. A remembered approval may answer for the person.
    pub fn authorize_work(
        &self,
        call: &PolicyCall<'_>,
        plan: &str,
        work: impl FnOnce() -> String,
    ) -> (Decision, Option<String>) {
        self.decide(call, || !self.remembered.is_empty() && self.remembered.cover(call.origin, &work(), plan))
    }

    /// Returns why a question about a call cannot be answered once for all; `None` if it can.
    pub fn why_not_remembered(&self, call: &PolicyCall<'_>) -> Option<&'static str> {
        let (look, setting) = (self.look(call), self.setting());
        let asks = |said: &LayerDecision<'_>| said.decision == Decision::Ask;
        let mut said = self.layers.iter().map(|layer| layer.say(&look, &setting)).filter(asks);
        said.find_map(|said| approvals::why_not(&said, call, &setting))
    }

    fn decide(
        &self,
        call: &PolicyCall<'_>,
        is_remembered: impl FnOnce() -> bool,
    ) -> (Decision, Option<String>) {
        let (look, setting) = (self.look(call), self.setting());
        let said = self.layers.iter().map(|layer| layer.say(&look, &setting));
        // Of equally strict decisions the first one counts, so that the reason names the ceiling before a project.
        let strictest = said.reduce(|first, next| if next.decision > first.decision { next } else { first });
        match strictest {
            Some(said) if said.decision == Decision::Ask => match self.in_vain(call) {
                Some(why) => (Decision::Deny, Some(why)),
                None if is_remembered() && self.why_not_remembered(call).is_none() => (Decision::Allow, None),
                None => (Decision::Ask, Some(said.why(&look))),
            },
            Some(said) if said.decision > Decision::Allow => (said.decision, Some(said.why(&look))),
            _ => (Decision::Allow, None),
        }
    }

    /// Returns the reason why a call would fail even with an approval. Such a call is denied without asking.
    fn in_vain(&self, call: &PolicyCall<'_>) -> Option<String> {
        let args = Value::Object(call.args.clone());
        let path = self.tools.get(call.tool)?.tool().file_beneath_root(&args)?;
        // A path with an expression is only known once the call starts.
        let is_known = !self.directory.as_os_str().is_empty() && !path.contains("${{");
        let is_outside =
            is_known && is_surely_outside(Path::new(path), [&self.directory, &self.real_directory]);
        is_outside.then(|| {
            format!(
                "`{path}` leads out of the project root, where `{}` has no access, even with an approval",
                call.tool
            )
        })
    }

    /// Returns the decision on a call with the decision of each layer.
    pub fn explain(&self, call: &PolicyCall<'_>) -> Explained {
        let (look, setting) = (self.look(call), self.setting());
        let said: Vec<LayerDecision<'_>> =
            self.layers.iter().map(|layer| layer.say(&look, &setting)).collect();
        let strictest = said.iter().map(|said| said.decision).max().unwrap_or(Decision::Allow);
        let in_vain = if strictest == Decision::Ask { self.in_vain(call) } else { None };
        let decision = if in_vain.is_some() { Decision::Deny } else { strictest };
        let steps = said.iter().map(|said| said.step(&look)).collect();
        let is_plain = look.commands().map(|commands| commands.plain.is_some());
        let commands = look.commands().and_then(|commands| commands.plain.as_ref());
        let commands = commands.map(|plain| plain.iter().map(|one| one.argv.clone()).collect());
        Explained { decision, steps, in_vain, is_plain, commands, version: self.version.clone() }
    }

    /// Returns the location of the setting that requires a PIN for the decisions of people.
    pub fn requires_pin(&self) -> Option<String> {
        self.layers.iter().find_map(Layer::requires_pin)
    }

    /// Returns the strictest ruling on a power, of the ceiling before that of others.
    pub fn ruling(&self, power: Power) -> PowerInForce {
        let default = power.default_ruling();
        // The file of a project only narrows.
        let counts = |layer: &Layer, ruling| layer.kind != LayerKind::Project || ruling >= default;
        let said = self
            .layers
            .iter()
            .filter_map(|layer| layer.ruling(power).filter(|said| counts(layer, said.ruling)));
        let strictest = said.reduce(|first, next| if next.ruling > first.ruling { next } else { first });
        strictest.unwrap_or(PowerInForce { power, ruling: default, place: None })
    }

    /// Returns the least isolation that programs need, of the strictest layer, and the place that says so.
    pub fn least_level(&self) -> Option<(Isolation, String)> {
        let said = self.layers.iter().filter_map(Layer::least_level);
        said.reduce(|first, next| if next.0 < first.0 { next } else { first })
    }

    /// Returns whether coding agents may widen the sandbox in this way: the user's policy has to say so, and a list of the ceiling bounds
    /// it.
    pub fn agents_may(&self, grant: &NamedGrant) -> bool {
        let lists = |layer: &&Layer| layer.kind == LayerKind::User || layer.agents_may.is_some();
        let mut lists = self.layers.iter().filter(lists);
        lists.all(|layer| layer.lets_agents(grant)) && self.ruling(Power::Agents).ruling != Ruling::Never
    }
}

/// Decision on a call, explained layer by layer.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Resulting decision.
    pub decision: Decision,
    /// Decision of each layer, the ceiling first.
    pub steps: Vec<Step>,
    /// Reason why the call would fail even with an approval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_vain: Option<String>,
    /// For a command line: `true` if it is understood completely. A rule never allows a line that is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub is_plain: Option<bool>,
    /// Commands of the line, if it is understood completely.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commands: Option<Vec<Vec<String>>>,
    /// Version of the policy, as in [`Policy::version`].
    pub version: String,
}
