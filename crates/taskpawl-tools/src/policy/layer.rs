//! One layer of a policy: the decisions of one file, or of the built-in defaults.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use taskpawl_process::Isolation;

use super::call::{CallOrigin, Decision, PolicyCall, READ_ONLY, SandboxNeed, Setting, words};
use super::command::Plain;
use super::near::{NearRule, near_rules};
use super::powers::{Power, PowerInForce, RuledPower, Ruling};
use super::rule::{CallShape, Rule};
use crate::policy::near::Step;
use crate::sandbox::NamedGrant;
use crate::text::one_line;

words! {
    /// Kind of a layer, in the order of evaluation.
    LayerKind {
        /// Policy of the machine; no other layer overrides it.
        Ceiling = "ceiling",
        /// Policy of the user; the basis that the other layers restrict.
        User = "user",
        /// Policy of the project; it can only restrict.
        Project = "project",
    }
}

words! {
    /// Default for the calls of an origin to which no rule applies.
    Standing {
        /// Calls run, even without the sandbox.
        Allow = "allow",
        /// Calls run inside the sandbox.
        Sandboxed = "sandboxed",
        /// Built-in tools that only read run; all other calls need an approval.
        Ask = "ask",
        /// Calls are denied.
        Deny = "deny",
    }
}

/// Layer of a policy.
#[derive(Clone, Debug)]
pub struct Layer {
    pub(crate) kind: LayerKind,
    /// Path of the file; `None` for the built-in defaults.
    pub(crate) path: Option<PathBuf>,
    /// Text of the file, which the version of the policy covers.
    pub(crate) text: String,
    pub(crate) origins: BTreeMap<CallOrigin, (Standing, usize)>,
    /// Origins whose calls run inside the sandbox if the file has no default for them.
    pub(crate) opted_in: BTreeSet<CallOrigin>,
    pub(crate) rules: Vec<Rule>,
    /// Rulings on powers.
    pub(crate) powers: BTreeMap<Power, RuledPower>,
    /// The ways in which coding agents may widen the sandbox by flags; `None` if the file has no list.
    pub(crate) agents_may: Option<Vec<NamedGrant>>,
    /// Least isolation of programs, with its line.
    pub(crate) least_level: Option<(Isolation, usize)>,
    /// Line that requires a PIN for decisions.
    pub(crate) pin: Option<usize>,
}

impl Layer {
    /// Returns the layer of a user without a policy file.
    pub(crate) fn builtin() -> Self {
        Self {
            kind: LayerKind::User,
            path: None,
            text: String::new(),
            origins: BTreeMap::new(),
            opted_in: BTreeSet::new(),
            rules: Vec::new(),
            powers: BTreeMap::new(),
            agents_may: None,
            least_level: None,
            pin: None,
        }
    }

    /// Returns the kind of the layer.
    pub fn kind(&self) -> LayerKind {
        self.kind
    }

    /// Returns the path of the file; `None` for the built-in defaults.
    pub fn path(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    /// Returns the rules, in the order of the file.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns the default for the calls of an origin to which no rule applies; `None` if this layer has none.
    pub fn standing(&self, origin: CallOrigin) -> Option<Standing> {
        let said = self.origins.get(&origin).map(|(standing, _)| *standing);
        let without =
            || if self.opted_in.contains(&origin) { Standing::Sandboxed } else { by_default(origin) };
        said.or_else(|| (self.kind == LayerKind::User).then(without))
    }

    /// Returns the rulings on powers.
    pub fn rulings(&self) -> impl Iterator<Item = (Power, Ruling)> {
        self.powers.iter().map(|(power, ruled)| (*power, ruled.ruling))
    }

    /// Returns the ways in which coding agents may widen the sandbox by flags.
    pub fn agent_grants(&self) -> &[NamedGrant] {
        self.agents_may.as_deref().unwrap_or_default()
    }

    pub(crate) fn lets_agents(&self, grant: &NamedGrant) -> bool {
        self.agent_grants().iter().any(|own| own.covers(grant))
    }

    /// Returns the least isolation that programs need, and the location of the setting.
    pub(crate) fn least_level(&self) -> Option<(Isolation, String)> {
        self.least_level.map(|(least, line)| (least, format!("{} (`least_level`)", self.place(Some(line)))))
    }

    /// Returns the location of the setting that requires a PIN for decisions.
    pub fn requires_pin(&self) -> Option<String> {
        self.pin.map(|line| self.place(Some(line)))
    }

    pub(crate) fn ruling(&self, power: Power) -> Option<PowerInForce> {
        let RuledPower { ruling, line, table } = *self.powers.get(&power)?;
        let place = Some(format!("{} (`[{table}] {power}`)", self.place(Some(line))));
        Some(PowerInForce { power, ruling, place })
    }

    /// Returns a location in the file for messages.
    pub(crate) fn place(&self, line: Option<usize>) -> String {
        match (&self.path, line) {
            (Some(path), Some(line)) => format!("`{}` line {line}", path.display()),
            (Some(path), None) => format!("`{}`", path.display()),
            (None, _) => "the built-in policy".to_owned(),
        }
    }

    /// Returns the decision of this layer on a call.
    pub(crate) fn say<'a>(&'a self, look: &CallShape<'_>, setting: &Setting) -> LayerDecision<'a> {
        let call = look.call;
        let said = |decision, by| LayerDecision { layer: self, decision, by };
        let plain = match self.strictest(look) {
            Some(rule) if rule.is_surely_about(look) => said(rule.decision, By::Rule(rule)),
            Some(rule) => said(rule.decision, By::Doubt(rule)),
            _ => match self.allowing(look) {
                Some(rules) => {
                    return self.say_of_sandbox(
                        call,
                        setting,
                        &rules,
                        LayerDecision { layer: self, decision: Decision::Allow, by: By::Rule(rules[0]) },
                    );
                }
                None => self.say_of_origin(call, setting),
            },
        };
        self.say_of_sandbox(call, setting, &[], plain)
    }

    /// Returns the strictest rule that applies among those that ask or deny; the first one of several.
    fn strictest(&self, look: &CallShape<'_>) -> Option<&Rule> {
        let about = self.rules.iter().filter(|rule| rule.decision > Decision::Allow && rule.is_about(look));
        about.reduce(|first, next| if next.decision > first.decision { next } else { first })
    }

    /// Returns the rules that together allow every command of a call.
    fn allowing(&self, look: &CallShape<'_>) -> Option<Vec<&Rule>> {
        let rules = || self.rules.iter().filter(|rule| rule.decision == Decision::Allow);
        // One rule for the whole call is preferred, so that the reason names a single line.
        let whole = rules().find(|rule| rule.is_about(look));
        if let Some(rule) = whole {
            return Some(vec![rule]);
        }
        if rules().all(|rule| rule.argv.is_empty()) {
            return None;
        }
        let plain = look.commands()?.plain.as_ref()?;
        let rule_of = |command: &Plain| rules().find(|rule| rule.allows(command, look.call));
        plain.iter().map(rule_of).collect::<Option<Vec<_>>>().filter(|rules| !rules.is_empty())
    }

    /// Returns the allow rules that match a call except for a missing key.
    fn near(&self, look: &CallShape<'_>) -> Vec<NearRule> {
        let plain = look.commands().and_then(|commands| commands.plain.as_deref());
        let is_asked = |rule: &Rule| rule.allows_commands_of(look.call);
        plain.map_or_else(Vec::new, |plain| near_rules(self, plain, is_asked))
    }

    fn say_of_origin(&self, call: &PolicyCall<'_>, setting: &Setting) -> LayerDecision<'_> {
        let said = |decision, by| LayerDecision { layer: self, decision, by };
        let line = self.origins.get(&call.origin).map(|(_, line)| *line);
        let by = By::Origin { origin: call.origin, line };
        match self.standing(call.origin) {
            None => said(Decision::Allow, By::Nothing),
            Some(Standing::Allow) => said(Decision::Allow, by),
            Some(Standing::Sandboxed) => {
                // For a model, `sandboxed` means that the sandbox is the reason to accept the call. People are also
                // trusted without it.
                let is_bare = call.origin.is_model() && setting.is_off && !is_confined(call.tool, setting);
                if is_bare { said(Decision::Ask, By::Unconfined) } else { said(Decision::Allow, by) }
            }
            Some(Standing::Ask) if only_reads(call) => said(Decision::Allow, By::ReadOnly),
            Some(Standing::Ask) if setting.harmless.contains(call.tool) => {
                said(Decision::Allow, By::Harmless)
            }
            Some(Standing::Ask) => said(Decision::Ask, by),
            Some(Standing::Deny) => said(Decision::Deny, by),
        }
    }

    /// Asks about a call that requests more sandbox permissions than it has, unless the rules that allow it grant them.
    fn say_of_sandbox<'a>(
        &'a self,
        call: &PolicyCall<'_>,
        setting: &Setting,
        rules: &[&Rule],
        said: LayerDecision<'a>,
    ) -> LayerDecision<'a> {
        let Some(need) = call.sandbox.filter(|need| **need != SandboxNeed::default()) else { return said };
        if let Some((power, ruled)) = self.ruled_need(need)
            && said.decision < Decision::Deny
        {
            let decision = if ruled.ruling == Ruling::Never { Decision::Deny } else { Decision::Ask };
            return LayerDecision { layer: self, decision, by: By::Power { power, ruled } };
        }
        let is_rule_wide = !rules.is_empty() && rules.iter().all(|rule| rule.sandbox.covers(need));
        // Grants come from the user alone. The other layers forbid, which is handled above, or have no say.
        let is_free = self.kind != LayerKind::User || is_rule_wide || setting.granted.covers(need);
        if is_free || said.decision >= Decision::Ask {
            return said;
        }
        LayerDecision { layer: self, decision: Decision::Ask, by: By::Wider }
    }
}

impl Layer {
    /// Returns the strictest ruling on the powers that a call requests; `None` if all are simply allowed.
    fn ruled_need(&self, need: &SandboxNeed) -> Option<(Power, RuledPower)> {
        let asked = [(need.net, Power::Net), (!need.read.is_empty() || !need.write.is_empty(), Power::Paths)];
        let powers = asked.into_iter().filter(|(is_asked, _)| *is_asked);
        let ruled = powers.filter_map(|(_, power)| Some((power, *self.powers.get(&power)?)));
        let ruled = ruled.filter(|(_, ruled)| ruled.ruling > Ruling::Allow);
        ruled.reduce(|first, next| if next.1.ruling > first.1.ruling { next } else { first })
    }
}

fn by_default(origin: CallOrigin) -> Standing {
    if origin.is_model() { Standing::Ask } else { Standing::Sandboxed }
}

/// Returns whether a tool starts no program and therefore needs no sandbox.
fn is_confined(tool: &str, setting: &Setting) -> bool {
    READ_ONLY.contains(&tool)
        || setting.harmless.contains(tool)
        || ["edit_file", "http_request", "write_file"].contains(&tool)
}

/// Returns whether a call only reads, and no `.env` files, which usually contain secrets.
fn only_reads(call: &PolicyCall<'_>) -> bool {
    let paths = ["path", "glob", "pattern"]
        .into_iter()
        .filter_map(|name| call.args.get(name))
        .filter_map(Value::as_str);
    let is_hidden = |path: &str| path.split('/').any(|part| part.starts_with(".env"));
    READ_ONLY.contains(&call.tool) && !paths.into_iter().any(is_hidden)
}

/// Most rules that one reason names.
const MAX_NEAR: usize = 3;

/// Decision of one layer with its reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LayerDecision<'a> {
    layer: &'a Layer,
    pub(crate) decision: Decision,
    by: By<'a>,
}

/// Reason for the decision of a layer.
#[derive(Clone, Copy, Debug)]
enum By<'a> {
    Nothing,
    Rule(&'a Rule),
    /// The rule may apply, but the words of the call do not show it for certain.
    Doubt(&'a Rule),
    Origin {
        origin: CallOrigin,
        line: Option<usize>,
    },
    ReadOnly,
    Harmless,
    /// The call is allowed inside the sandbox only, which is off.
    Unconfined,
    /// The call requests more sandbox permissions than it has.
    Wider,
    Power {
        power: Power,
        ruled: RuledPower,
    },
}

impl LayerDecision<'_> {
    /// Returns the kind of the layer that decides.
    pub(crate) fn kind(&self) -> LayerKind {
        self.layer.kind
    }

    /// Returns whether a ruling on a power decides.
    pub(crate) fn is_of_power(&self) -> bool {
        matches!(self.by, By::Power { .. })
    }

    /// Returns the allow rules that match a call except for a missing key, if the call needs an approval because no
    /// rule applied.
    pub(crate) fn near(&self, look: &CallShape<'_>) -> Vec<NearRule> {
        let no_rule_decided = matches!(self.by, By::Origin { .. } | By::Unconfined);
        if no_rule_decided && self.decision == Decision::Ask { self.layer.near(look) } else { Vec::new() }
    }

    /// Returns the reason why a call does not simply run, with a remedy.
    pub(crate) fn why(&self, look: &CallShape<'_>) -> String {
        format!("{}{}", self.why_at_all(), self.texts_of_near(&self.near(look)))
    }

    fn texts_of_near(&self, near: &[NearRule]) -> String {
        let texts = near.iter().take(MAX_NEAR).map(|near| self.text_of_near(near));
        texts.fold(String::new(), |text, near| text + "; " + &near)
    }

    /// Names the keys that a rule lacks. Names of variables come from the author of the call and can be long, so that
    /// they are shortened.
    fn text_of_near(&self, near: &NearRule) -> String {
        let place = self.layer.place(Some(near.line));
        let keys: Vec<String> = near.add.iter().map(|key| format!("`{}`", one_line(key))).collect();
        let lacks = (!keys.is_empty()).then(|| format!("lacks {}", keys.join(" and ")));
        let never = near.never.iter().map(|fact| format!("does not cover it: {fact}"));
        let said: Vec<String> = lacks.into_iter().chain(never).collect();
        format!("the rule `{}` in {place} {}", near.rule, said.join(", and "))
    }

    fn why_at_all(&self) -> String {
        if let By::Doubt(_) = self.by {
            return format!("{}; write its programs and arguments literally", self.text());
        }
        let remedy = match (self.decision, self.layer.kind) {
            (Decision::Deny, LayerKind::Ceiling) => "; a lower policy cannot allow it",
            (Decision::Deny, LayerKind::User | LayerKind::Project) => "; change the rule there to allow it",
            (Decision::Allow | Decision::Ask, _) => "",
        };
        format!("{}{remedy}", self.text())
    }

    fn text(&self) -> String {
        let place = |line| self.layer.place(line);
        match self.by {
            By::Nothing => "no rule matches it".to_owned(),
            By::Doubt(rule) => {
                let said = Self { by: By::Rule(rule), ..*self }.text();
                format!("{said}; it may match, because its commands cannot be determined with certainty")
            }
            By::Rule(rule) => {
                let verb = match rule.decision {
                    Decision::Allow => "allows",
                    Decision::Ask => "asks about",
                    Decision::Deny => "denies",
                };
                let reason = rule.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{} {verb} `{rule}`{reason}", place(Some(rule.line)))
            }
            By::Origin { origin, line } => self.text_of_origin(origin, line),
            By::ReadOnly => "it only reads inside the project".to_owned(),
            By::Harmless => "it runs no program and changes no program".to_owned(),
            By::Unconfined => "calls that models add run only inside the sandbox, and it is off".to_owned(),
            By::Wider => "it requests more than the sandbox allows".to_owned(),
            By::Power { power, ruled: RuledPower { ruling, line, table } } => {
                let verb = if ruling == Ruling::Never { "forbids" } else { "asks about" };
                format!(
                    "it requests more than the sandbox allows, which {} {verb} (`[{table}] {power}`)",
                    place(Some(line))
                )
            }
        }
    }

    fn text_of_origin(&self, origin: CallOrigin, line: Option<usize>) -> String {
        let who = match origin {
            CallOrigin::Cli => "calls added on the command line",
            CallOrigin::Library => "calls added by a program",
            CallOrigin::Plan => "calls of plan files",
            CallOrigin::Mcp => "calls added over MCP",
            CallOrigin::Agent => "calls added by agents",
        };
        let standing = self.layer.standing(origin).map_or("", Standing::as_str);
        match line {
            Some(line) => {
                format!("{} sets `{origin} = \"{standing}\"` for {who}", self.layer.place(Some(line)))
            }
            None if self.decision == Decision::Ask => {
                format!(
                    "{who} need an approval unless a rule or `[origins] {origin}` of the user's policy allows them"
                )
            }
            None => format!("{who} run inside the sandbox"),
        }
    }

    pub(crate) fn step(&self, look: &CallShape<'_>) -> Step {
        let (rule, line) = match self.by {
            By::Rule(rule) | By::Doubt(rule) => (Some(rule.to_string()), Some(rule.line)),
            By::Origin { line, .. } => (None, line),
            By::Power { ruled, .. } => (None, Some(ruled.line)),
            By::Nothing | By::ReadOnly | By::Harmless | By::Unconfined | By::Wider => (None, None),
        };
        let (layer, file) = (self.layer.kind, self.layer.path.clone());
        let near = self.near(look);
        let why = format!("{}{}", self.text(), self.texts_of_near(&near));
        Step { layer, decision: self.decision, why, rule, file, line, near }
    }
}
