//! Parser for policy files: TOML with line numbers in errors. It also runs the examples of the rules.

use std::collections::BTreeMap;
use std::path::Path;

use globset::{GlobBuilder, GlobMatcher};
use serde_json::{Map, Value, json};
use taskpawl_process::Isolation;
use taskpawl_text::nearest;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::call::{CallOrigin, Decision, PolicyCall, SandboxNeed};
use super::directory::Directory;
use super::file::PolicyError;
use super::layer::{Layer, LayerKind, Standing};
use super::powers::{Power, RuledPower, Ruling};
use super::rule::{CallShape, Rule};
use crate::registry::Registry;
use crate::sandbox::NamedGrant;

/// Parses the text of a layer.
pub(super) fn parse(path: &Path, kind: LayerKind, text: &str) -> Result<Layer, PolicyError> {
    let table = DeTable::parse(text)
        .map_err(|error| PolicyError::Syntax { path: path.to_owned(), source: Box::new(error) })?;
    let reader = Reader { path, text };
    let mut layer = Layer { kind, path: Some(path.to_owned()), text: text.to_owned(), ..Layer::builtin() };
    for (key, value) in table.get_ref() {
        match key.get_ref().as_ref() {
            "origins" => layer.origins = reader.origins(value)?,
            "sandbox" => reader.lifts(value, &mut layer.powers)?,
            "least_level" => {
                let letters = Isolation::ALL.map(Isolation::as_str);
                let of = |word: &str| Isolation::ALL.into_iter().find(|level| level.as_str() == word);
                let level = reader.word(value, "least_level", &letters, of)?;
                layer.least_level = Some((level, reader.line(key.span().start)));
            }
            "powers" => reader.powers(value, &mut layer.powers)?,
            "agents_may" if kind != LayerKind::Project => layer.agents_may = Some(reader.agents_may(value)?),
            "decisions" => layer.pin = reader.pin(value)?,
            "rules" => layer.rules = reader.rules(value)?,
            other => {
                return Err(reader.unknown(key.span().start, other, KEYS));
            }
        }
    }
    Ok(layer)
}

/// The keys of a file. `agents_may` is not for the file of a project, which only narrows.
const KEYS: &[&str] = &["agents_may", "decisions", "least_level", "origins", "powers", "rules", "sandbox"];

/// The powers that `[sandbox]` can deny.
const LIFTS: [Power; 3] = [Power::Off, Power::Net, Power::Paths];

type Powers = BTreeMap<Power, RuledPower>;

type RulePosition<'a, 'd> = &'a Spanned<DeValue<'d>>;

/// Example call for a rule: tool, arguments, and origin if given.
type Example = (String, Map<String, Value>, Option<CallOrigin>);

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
}

impl Reader<'_> {
    fn line(&self, at: usize) -> usize {
        self.text[..at].matches('\n').count() + 1
    }

    fn wrong(&self, at: usize, problem: impl Into<String>, hint: Option<String>) -> PolicyError {
        let (path, line) = (self.path.to_owned(), self.line(at));
        PolicyError::Invalid { path, line, problem: problem.into(), hint }
    }

    fn expected(&self, value: RulePosition<'_, '_>, what: &str, expected: &str) -> PolicyError {
        let shown: String = self.text[value.span()].chars().take(60).collect();
        self.wrong(value.span().start, format!("`{what}` cannot be `{shown}`, expected {expected}"), None)
    }

    fn unknown(&self, at: usize, key: &str, known: &[&str]) -> PolicyError {
        self.wrong(at, format!("unknown key `{key}`"), Some(hint(key, known)))
    }

    fn table<'v, 'd>(&self, value: RulePosition<'v, 'd>, what: &str) -> Result<&'v DeTable<'d>, PolicyError> {
        if let DeValue::Table(table) = value.get_ref() {
            Ok(table)
        } else {
            Err(self.expected(value, what, "a table"))
        }
    }

    fn text_of<'v>(&self, value: RulePosition<'v, '_>, what: &str) -> Result<&'v str, PolicyError> {
        value.get_ref().as_str().ok_or_else(|| self.expected(value, what, "text in quotes"))
    }

    fn list<'v, 'd>(
        &self,
        value: RulePosition<'v, 'd>,
        what: &str,
    ) -> Result<&'v [Spanned<DeValue<'d>>], PolicyError> {
        if let DeValue::Array(list) = value.get_ref() {
            Ok(list)
        } else {
            Err(self.expected(value, what, "a list"))
        }
    }

    fn texts(&self, value: RulePosition<'_, '_>, what: &str) -> Result<Vec<String>, PolicyError> {
        self.list(value, what)?.iter().map(|item| self.text_of(item, what).map(str::to_owned)).collect()
    }

    /// Reads one of several words.
    fn word<T>(
        &self,
        value: RulePosition<'_, '_>,
        what: &str,
        all: &[&str],
        read: impl Fn(&str) -> Option<T>,
    ) -> Result<T, PolicyError> {
        let word = self.text_of(value, what)?;
        read(word).ok_or_else(|| {
            let list = all.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ");
            let problem = format!("`{what}` cannot be `{word}`, expected one of {list}");
            self.wrong(value.span().start, problem, nearest(word, all.iter().copied()).map(did_you_mean))
        })
    }

    fn origin(&self, value: RulePosition<'_, '_>) -> Result<CallOrigin, PolicyError> {
        self.word(value, "origins", &origin_words(), CallOrigin::from_word)
    }

    fn origins(
        &self,
        value: RulePosition<'_, '_>,
    ) -> Result<BTreeMap<CallOrigin, (Standing, usize)>, PolicyError> {
        let all: Vec<&str> = Standing::ALL.iter().map(|standing| standing.as_str()).collect();
        let mut values = BTreeMap::new();
        for (key, value) in self.table(value, "origins")? {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let origin =
                CallOrigin::from_word(name).ok_or_else(|| self.unknown(at, name, &origin_words()))?;
            let standing = self.word(value, name, &all, Standing::from_word)?;
            values.insert(origin, (standing, self.line(at)));
        }
        Ok(values)
    }

    /// Reads the `sandbox` table, whose `deny` is `never` of the `powers` table.
    fn lifts(&self, value: RulePosition<'_, '_>, powers: &mut Powers) -> Result<(), PolicyError> {
        let ways: Vec<&str> = LIFTS.iter().map(|way| way.as_str()).collect();
        for (key, value) in self.table(value, "sandbox")? {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let way = Power::from_word(name).filter(|power| LIFTS.contains(power));
            let way = way.ok_or_else(|| self.unknown(at, name, &ways))?;
            let said = self.word(value, name, &["allow", "deny"], Decision::from_word)?;
            match said {
                Decision::Allow => {}
                Decision::Deny => self.rule_power(powers, way, Ruling::Never, at, "sandbox"),
                Decision::Ask => return Err(self.expected(value, name, "`allow` or `deny`")),
            }
        }
        Ok(())
    }

    fn powers(&self, value: RulePosition<'_, '_>, powers: &mut Powers) -> Result<(), PolicyError> {
        let names: Vec<&str> = Power::ALL.iter().map(|power| power.as_str()).collect();
        let rulings: Vec<&str> = Ruling::ALL.iter().map(|ruling| ruling.as_str()).collect();
        for (key, value) in self.table(value, "powers")? {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            let power = Power::from_word(name).ok_or_else(|| self.unknown(at, name, &names))?;
            let ruling = self.word(value, name, &rulings, Ruling::from_word)?;
            self.rule_power(powers, power, ruling, at, "powers");
        }
        Ok(())
    }

    /// Adds a ruling. Where both tables have one, the stricter counts.
    fn rule_power(&self, powers: &mut Powers, power: Power, ruling: Ruling, at: usize, table: &'static str) {
        let ruled = RuledPower { ruling, line: self.line(at), table };
        let is_stricter = powers.get(&power).is_none_or(|known| known.ruling < ruling);
        if is_stricter {
            powers.insert(power, ruled);
        }
    }

    fn agents_may(&self, value: RulePosition<'_, '_>) -> Result<Vec<NamedGrant>, PolicyError> {
        let mut grants = Vec::new();
        for item in self.list(value, "agents_may")? {
            let text = self.text_of(item, "agents_may")?;
            let grant = text.parse().map_err(|error: crate::sandbox::InvalidGrant| {
                self.wrong(item.span().start, error.to_string(), None)
            })?;
            grants.push(grant);
        }
        Ok(grants)
    }

    /// Reads the `decisions` table; returns the line that requires a PIN.
    fn pin(&self, value: RulePosition<'_, '_>) -> Result<Option<usize>, PolicyError> {
        let mut line = None;
        for (key, value) in self.table(value, "decisions")? {
            let (name, at) = (key.get_ref().as_ref(), key.span().start);
            if name != "pin" {
                return Err(self.unknown(at, name, &["pin"]));
            }
            let is_required = |word: &str| match word {
                "required" => Some(true),
                "optional" => Some(false),
                _ => None,
            };
            let words = ["optional", "required"];
            line = self.word(value, name, &words, is_required)?.then(|| self.line(at));
        }
        Ok(line)
    }

    // Parsing of rules.

    fn rules(&self, value: RulePosition<'_, '_>) -> Result<Vec<Rule>, PolicyError> {
        let mut rules = Vec::new();
        for item in self.list(value, "rules")? {
            rules.push(self.rule(item)?);
        }
        Ok(rules)
    }

    fn rule(&self, value: RulePosition<'_, '_>) -> Result<Rule, PolicyError> {
        let table = self.table(value, "rules")?;
        let at = value.span().start;
        let mut rule = Rule {
            decision: Decision::Deny,
            tool: None,
            argv: Vec::new(),
            origins: Vec::new(),
            env: Vec::new(),
            cwd: Vec::new(),
            any_stdin: false,
            sandbox: SandboxNeed::default(),
            reason: None,
            line: self.line(at),
        };
        let (mut decision, mut examples) = (None, Vec::new());
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "decision" => decision = Some(self.decision(value)?),
                "tool" => rule.tool = Some(self.text_of(value, "tool")?.to_owned()),
                "argv" => rule.argv = self.argv(value)?,
                "origins" => rule.origins = self.origins_of_rule(value)?,
                "env" => rule.env = self.texts(value, "env")?,
                "cwd" => rule.cwd = self.directories(value)?,
                "stdin" => {
                    rule.any_stdin =
                        self.word(value, "stdin", &["any"], |word| (word == "any").then_some(true))?;
                }
                "sandbox" => rule.sandbox = self.sandbox(value)?,
                "reason" => rule.reason = Some(self.text_of(value, "reason")?.to_owned()),
                "match" => examples.push(("match", value)),
                "notMatch" => examples.push(("notMatch", value)),
                other => return Err(self.unknown(key.span().start, other, RULE_KEYS)),
            }
        }
        rule.decision = decision.ok_or_else(|| {
            let hint = "add `decision = \"allow\"`, `\"ask\"` or `\"deny\"`".to_owned();
            self.wrong(at, "a rule without `decision`", Some(hint))
        })?;
        self.check(&rule, at)?;
        for (list, value) in examples {
            self.try_examples(&rule, list, value)?;
        }
        Ok(rule)
    }

    fn decision(&self, value: RulePosition<'_, '_>) -> Result<Decision, PolicyError> {
        let all: Vec<&str> = Decision::ALL.iter().map(|decision| decision.as_str()).collect();
        self.word(value, "decision", &all, Decision::from_word)
    }

    /// Refuses rules that cannot have the meaning that their author intended.
    fn check(&self, rule: &Rule, at: usize) -> Result<(), PolicyError> {
        let runs = |tool: &String| tool == "exec" || tool == "shell" || tool.contains('*');
        let adds = !rule.env.is_empty() || !rule.cwd.is_empty() || rule.any_stdin;
        let is_wide = !adds && rule.sandbox == SandboxNeed::default();
        let problem = if rule.tool.is_none() && rule.argv.is_empty() {
            "a rule without `tool` and without `argv`"
        } else if !rule.argv.is_empty() && !rule.tool.as_ref().is_none_or(runs) {
            "`argv` is only for `exec` and `shell`"
        } else if rule.decision != Decision::Allow && !is_wide {
            "`env`, `cwd`, `stdin` and `sandbox` are only for rules with `decision = \"allow\"`"
        } else if adds && rule.argv.is_empty() {
            "`env`, `cwd` and `stdin` are only for rules with `argv`"
        } else {
            return Ok(());
        };
        Err(self.wrong(at, problem, None))
    }

    fn origins_of_rule(&self, value: RulePosition<'_, '_>) -> Result<Vec<CallOrigin>, PolicyError> {
        let list = self.list(value, "origins")?;
        if list.is_empty() {
            return Err(self.expected(value, "origins", "at least one origin; leave it out for all origins"));
        }
        list.iter().map(|item| self.origin(item)).collect()
    }

    /// Reads patterns of directories relative to the root of the project.
    fn directories(&self, value: RulePosition<'_, '_>) -> Result<Vec<GlobMatcher>, PolicyError> {
        let pattern = |text: &String| {
            let glob = GlobBuilder::new(Directory::of(text).within()?).literal_separator(true).build();
            glob.ok().map(|glob| glob.compile_matcher())
        };
        let patterns = self.texts(value, "cwd")?.iter().map(pattern).collect::<Option<Vec<_>>>();
        let patterns = patterns.filter(|patterns| !patterns.is_empty());
        patterns.ok_or_else(|| {
            self.expected(value, "cwd", "directories of the project such as [\".\", \"crates/*\"]")
        })
    }

    /// Reads the first words of a command: a text, or a list with one word or several alternatives for each position.
    fn argv(&self, value: RulePosition<'_, '_>) -> Result<Vec<Vec<String>>, PolicyError> {
        let expected = "words such as [\"git\", [\"fetch\", \"pull\"]]";
        let argv: Vec<Vec<String>> = if let Some(text) = value.get_ref().as_str() {
            // Text is split at blanks. A reader could expect quotes and operators to work as in a shell, so that they
            // need the list form.
            if text.contains(['\'', '"', '\\', '$', '`', ';', '&', '|', '<', '>']) {
                return Err(self.expected(
                    value,
                    "argv",
                    "plain words; use a list for words with special characters",
                ));
            }
            text.split_whitespace().map(|word| vec![word.to_owned()]).collect()
        } else {
            let place = |item: RulePosition<'_, '_>| {
                let is_list = matches!(item.get_ref(), DeValue::Array(_));
                if is_list {
                    self.texts(item, "argv")
                } else {
                    Ok(vec![self.text_of(item, "argv")?.to_owned()])
                }
            };
            self.list(value, "argv")?.iter().map(place).collect::<Result<_, _>>()?
        };
        let is_empty =
            argv.is_empty() || argv.iter().any(Vec::is_empty) || argv[0].iter().any(String::is_empty);
        if is_empty { Err(self.expected(value, "argv", expected)) } else { Ok(argv) }
    }

    fn sandbox(&self, value: RulePosition<'_, '_>) -> Result<SandboxNeed, PolicyError> {
        let mut need = SandboxNeed::default();
        for (key, value) in self.table(value, "sandbox")? {
            match key.get_ref().as_ref() {
                "net" => {
                    let is_on = value.get_ref().as_bool();
                    need.net = is_on.ok_or_else(|| self.expected(value, "net", "true or false"))?;
                }
                "read" => need.read = self.texts(value, "read")?,
                "write" => need.write = self.texts(value, "write")?,
                other => return Err(self.unknown(key.span().start, other, &["net", "read", "write"])),
            }
        }
        Ok(need)
    }

    // Examples of rules.

    fn try_examples(
        &self,
        rule: &Rule,
        list: &'static str,
        value: RulePosition<'_, '_>,
    ) -> Result<(), PolicyError> {
        for item in self.list(value, list)? {
            let (tool, args, origin) = self.example(rule, list, item)?;
            // An example without an origin must not fail only because the rule is limited to some origins.
            let origin = origin.or_else(|| rule.origins.first().copied()).unwrap_or(CallOrigin::Plan);
            let call = PolicyCall { tool: &tool, args: &args, origin, sandbox: None };
            if rule.is_about(&CallShape::at(&call, &Registry::new(), [Path::new(""); 2])) != (list == "match")
            {
                let (path, line) = (self.path.to_owned(), self.line(item.span().start));
                let (rule, example) =
                    (rule.to_string(), self.text[item.span()].trim_matches(['"', '\'']).to_owned());
                return Err(PolicyError::Example { path, line, rule, example, list });
            }
        }
        Ok(())
    }

    /// Reads an example call: a command line, or the name of a tool if the rule has no words; an argv; or a table.
    fn example(&self, rule: &Rule, list: &str, value: RulePosition<'_, '_>) -> Result<Example, PolicyError> {
        let args = |name: &str, value: Value| Map::from_iter([(name.to_owned(), value)]);
        match value.get_ref() {
            DeValue::String(tool) if rule.argv.is_empty() => Ok((tool.to_string(), Map::new(), None)),
            DeValue::String(line) => Ok(("shell".to_owned(), args("command", json!(line)), None)),
            DeValue::Array(_) => Ok(("exec".to_owned(), args("argv", json!(self.texts(value, list)?)), None)),
            DeValue::Table(table) => self.example_call(table, value),
            DeValue::Integer(_) | DeValue::Float(_) | DeValue::Boolean(_) | DeValue::Datetime(_) => {
                Err(self.expected(value, list, "a command line, an argv, or a table with `tool` and `args`"))
            }
        }
    }

    fn example_call(&self, table: &DeTable<'_>, whole: RulePosition<'_, '_>) -> Result<Example, PolicyError> {
        let (mut tool, mut args, mut origin) = (None, Map::new(), None);
        for (key, value) in table {
            match key.get_ref().as_ref() {
                "tool" => tool = Some(self.text_of(value, "tool")?.to_owned()),
                "origin" => origin = Some(self.origin(value)?),
                "args" => {
                    self.table(value, "args")?;
                    if let Value::Object(map) = to_json(value.get_ref()) {
                        args = map;
                    }
                }
                other => return Err(self.unknown(key.span().start, other, &["tool", "args", "origin"])),
            }
        }
        let tool = tool.ok_or_else(|| self.wrong(whole.span().start, "an example without `tool`", None))?;
        Ok((tool, args, origin))
    }
}

const RULE_KEYS: &[&str] =
    &["decision", "tool", "argv", "origins", "env", "cwd", "stdin", "sandbox", "reason", "match", "notMatch"];

fn origin_words() -> Vec<&'static str> {
    CallOrigin::ALL.iter().map(|origin| origin.as_str()).collect()
}

fn to_json(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Boolean(value) => json!(value),
        DeValue::Integer(number) => {
            number.to_string().parse::<i64>().map_or(Value::Null, |number| json!(number))
        }
        DeValue::Float(number) => {
            number.to_string().parse::<f64>().map_or(Value::Null, |number| json!(number))
        }
        DeValue::Datetime(time) => json!(time.to_string()),
        DeValue::Array(list) => list.iter().map(|item| to_json(item.get_ref())).collect(),
        DeValue::Table(table) => table
            .iter()
            .map(|(key, value)| (key.get_ref().to_string(), to_json(value.get_ref())))
            .collect::<Map<_, _>>()
            .into(),
    }
}

fn hint(key: &str, known: &[&str]) -> String {
    nearest(key, known.iter().copied()).map_or_else(
        || {
            format!(
                "the keys are {}",
                known.iter().map(|key| format!("`{key}`")).collect::<Vec<_>>().join(", ")
            )
        },
        did_you_mean,
    )
}

fn did_you_mean(word: &str) -> String {
    format!("did you mean `{word}`?")
}
