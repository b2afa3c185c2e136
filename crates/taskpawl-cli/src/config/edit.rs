//! Changes of one value in the text of a configuration file. All else stays byte for byte, comments too.

use std::ops::Range;
use std::path::{Path, PathBuf};

use serde_json::Value;
use taskpawl::tools::read_if_there;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::Config;
use super::document::Document;
use super::error::ConfigError;
use super::key::is_text;
use super::places::{MAX_BYTES, files};
use super::setting::Layer;
use crate::environment::Environment;

/// A value that cannot be set in a file.
#[derive(Debug)]
pub(crate) enum SetError {
    /// The file is wrong as it is, or the value does not fit the key.
    Config(ConfigError),
    /// The key is written in a form that cannot be changed by itself, such as a part of an array.
    Form,
}

/// A configuration file that is changed.
#[derive(Debug)]
pub(crate) struct ConfigFile {
    /// The path of the file itself, never of a link to it.
    pub(crate) path: PathBuf,
    layer: Layer,
}

impl ConfigFile {
    /// Returns the file of the project at `root`, which may not exist.
    pub(crate) fn of_project(environment: &Environment, root: &Path) -> Self {
        let path = files(environment).project.unwrap_or_else(|| root.join("taskpawl.toml"));
        Self { path: path.canonicalize().unwrap_or(path), layer: Layer::Project }
    }

    /// Returns the file of the user, which may not exist; `None` without `HOME` and `XDG_CONFIG_HOME`.
    pub(crate) fn of_user(environment: &Environment) -> Option<Self> {
        let path = files(environment).user?;
        Some(Self { path: path.canonicalize().unwrap_or(path), layer: Layer::User })
    }

    /// Returns the text, empty if there is no file.
    pub(crate) fn read(&self) -> Result<String, ConfigError> {
        let failed = |source| ConfigError::Read { path: self.path.clone(), source };
        Ok(read_if_there(&self.path, MAX_BYTES).map_err(failed)?.unwrap_or_default())
    }

    /// Returns `text` with another value of a key.
    pub(crate) fn with_value(
        &self,
        environment: &Environment,
        text: &str,
        key: &str,
        value: &str,
    ) -> Result<String, SetError> {
        with_value(environment, (&self.path, text, self.layer), key, value)
    }

    /// Checks a text as the content of this file.
    pub(crate) fn check(&self, environment: &Environment, text: &str) -> Result<(), ConfigError> {
        Config::check_text(environment, &self.path, text, self.layer)
    }
}

/// Returns `text` with the value of the key, which is written as in `config list`. The file is checked with it.
fn with_value(
    environment: &Environment,
    (path, text, layer): (&Path, &str, Layer),
    key: &str,
    value: &str,
) -> Result<String, SetError> {
    let keys: Vec<&str> = key.split('.').collect();
    let before = Document::parse(path, text, layer).map_err(SetError::Config)?;
    let mut refused = SetError::Form;
    for value in forms(key, value) {
        let expected = with_json(Value::Object(before.values.clone()), &keys, json_of(&value));
        for changed in texts(text, &keys, &value) {
            let Ok(after) = Document::parse(path, &changed, layer) else { continue };
            // Wherever the text was changed: no other value may change with it.
            if Some(Value::Object(after.values)) != expected {
                continue;
            }
            match Config::check_text(environment, path, &changed, layer) {
                Ok(()) => return Ok(changed),
                Err(error) => refused = SetError::Config(error),
            }
        }
    }
    Err(refused)
}

/// Returns the forms in TOML that a value of the command line may have, the likeliest first.
fn forms(key: &str, value: &str) -> Vec<String> {
    let quoted = toml::Value::from(value).to_string();
    let is_toml = DeTable::parse(&format!("x = {value}")).is_ok_and(|table| table.get_ref().len() == 1);
    let as_it_is = value.trim().to_owned();
    match (is_text(key), is_toml) {
        (true, _) | (false, false) => vec![quoted],
        (false, true) => vec![as_it_is, quoted],
    }
}

/// Returns a value in TOML as JSON; `None` if JSON cannot express it.
fn json_of(value: &str) -> Option<Value> {
    let table: toml::Table = toml::from_str(&format!("x = {value}")).ok()?;
    serde_json::to_value(table.get("x")?).ok()
}

fn with_json(mut values: Value, keys: &[&str], value: Option<Value>) -> Option<Value> {
    let mut slot = &mut values;
    for key in keys {
        slot = slot.as_object_mut()?.entry(*key).or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    *slot = value?;
    Some(values)
}

/// Returns the texts that may have the value at `keys`.
fn texts(text: &str, keys: &[&str], value: &str) -> Vec<String> {
    let Ok(root) = DeTable::parse(text) else { return Vec::new() };
    let root = root.get_ref();
    if let Some(found) = find(root, keys) {
        return vec![replaced(text, found.span(), value)];
    }
    let Some((key, section)) = keys.split_last() else { return Vec::new() };
    let line = format!("{} = {value}\n", bare(key));
    let dotted = format!("{} = {value}\n", keys.iter().map(|key| bare(key)).collect::<Vec<_>>().join("."));
    if section.is_empty() {
        return vec![below_entries(text, root, 0, &line)];
    }
    let in_section = find(root, section).and_then(|found| in_table(text, found, &line));
    let name = section.iter().map(|key| bare(key)).collect::<Vec<_>>().join(".");
    let gap = if text.is_empty() || text.ends_with("\n\n") { "" } else { "\n" };
    let end = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    let at_end = format!("{text}{end}{gap}[{name}]\n{line}");
    in_section.into_iter().chain([at_end, below_entries(text, root, 0, &dotted)]).collect()
}

/// Returns the text with a line in a table that is written with a header or in braces.
fn in_table(text: &str, found: &Spanned<DeValue<'_>>, line: &str) -> Option<String> {
    let DeValue::Table(table) = found.get_ref() else { return None };
    let span = found.span();
    match text[span.clone()].chars().next()? {
        '[' => Some(below_entries(text, table, line_end(text, span.end), line)),
        '{' => {
            let entry = line.trim_end();
            Some(match table.values().map(|value| value.span().end).max() {
                Some(end) => replaced(text, end..end, &format!(", {entry}")),
                None => replaced(text, span, &format!("{{ {entry} }}")),
            })
        }
        _ => None,
    }
}

/// Returns the text with a line below the last entry of a table, or at `first` if it has none.
fn below_entries(text: &str, table: &DeTable<'_>, first: usize, line: &str) -> String {
    // A table with a header is no entry in this sense: a line below it would belong to it.
    let is_entry = |span: &Range<usize>| !text[span.clone()].starts_with('[') || is_array(text, span);
    let spans = table.values().map(Spanned::span);
    let at = spans.filter(is_entry).map(|span| line_end(text, span.end)).max().unwrap_or(first);
    let gap = if at > 0 && !text[..at].ends_with('\n') { "\n" } else { "" };
    replaced(text, at..at, &format!("{gap}{line}"))
}

/// Returns whether the value is an array, which also begins with a bracket. A header stands at the start of its line.
fn is_array(text: &str, span: &Range<usize>) -> bool {
    let line = text[..span.start].rsplit('\n').next().unwrap_or_default();
    line.contains('=')
}

/// Returns the offset behind the line that contains `at`.
fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |end| at + end + 1)
}

fn replaced(text: &str, span: Range<usize>, by: &str) -> String {
    format!("{}{by}{}", &text[..span.start], &text[span.end..])
}

fn find<'t, 'a>(table: &'t DeTable<'a>, keys: &[&str]) -> Option<&'t Spanned<DeValue<'a>>> {
    let (key, rest) = keys.split_first()?;
    let (_, value) = table.iter().find(|(name, _)| name.get_ref() == key)?;
    if rest.is_empty() {
        return Some(value);
    }
    let DeValue::Table(below) = value.get_ref() else { return None };
    find(below, rest)
}

/// Returns a key as it is written, in quotes where it needs them.
fn bare(key: &str) -> String {
    let is_bare = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    if !key.is_empty() && key.bytes().all(is_bare) {
        key.to_owned()
    } else {
        toml::Value::from(key).to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, key: &str, value: &str) -> Result<String, String> {
        let environment = Environment::read();
        let file = (Path::new("config.toml"), text, Layer::User);
        with_value(&environment, file, key, value).map_err(|error| match error {
            SetError::Config(error) => error.to_string(),
            SetError::Form => "form".to_owned(),
        })
    }

    #[test]
    fn a_value_is_replaced_in_its_place() {
        let text = "# mine\njobs = 4 # cores\nlease = \"10m\"\n\n[run] # runs\ntimeout = \"1h\"\n";
        assert_eq!(set(text, "jobs", "8").unwrap(), text.replace('4', "8"));
        assert_eq!(set(text, "lease", "2h").unwrap(), text.replace("10m", "2h"));
        assert_eq!(set(text, "run.timeout", "3h").unwrap(), text.replace("1h", "3h"));
        assert_eq!(
            set("run = { timeout = \"1h\" }", "run.timeout", "3h").unwrap(),
            "run = { timeout = \"3h\" }"
        );
        assert_eq!(set("run.timeout = \"1h\"\n", "run.timeout", "3h").unwrap(), "run.timeout = \"3h\"\n");
    }

    #[test]
    fn a_new_value_joins_the_entries_of_its_section() {
        assert_eq!(set("", "jobs", "8").unwrap(), "jobs = 8\n");
        assert_eq!(set("# mine\n[run]\n", "jobs", "8").unwrap(), "jobs = 8\n# mine\n[run]\n");
        assert_eq!(set("lease = \"1h\"", "jobs", "8").unwrap(), "lease = \"1h\"\njobs = 8\n");
        let text = "limit = 3\n\n[run]\ntimeout = \"1h\" # long\n\n[resources]\n";
        let expected = text.replace("# long\n", "# long\nmaxFailures = 2\n");
        assert_eq!(set(text, "run.maxFailures", "2").unwrap(), expected);
        assert_eq!(set(text, "resources.gpu", "2").unwrap(), format!("{text}gpu = 2\n"));
        assert_eq!(
            set(text, "output.quota", "2GiB").unwrap(),
            format!("{text}\n[output]\nquota = \"2GiB\"\n")
        );
        assert_eq!(set("run = {}\n", "run.maxFailures", "2").unwrap(), "run = { maxFailures = 2 }\n");
        let dotted = set("run.timeout = \"1h\"\n", "run.maxFailures", "2").unwrap();
        assert_eq!(dotted, "run.timeout = \"1h\"\nrun.maxFailures = 2\n");
    }

    #[test]
    fn lists_and_named_sections_can_be_set() {
        let notify = "[\n  \"notify-send\", # a\n]\n";
        let text = format!("[run]\nnotify = {notify}retry = 2\n");
        let expected = "[run]\nnotify = [\"say\"]\nretry = 2\n";
        assert_eq!(set(&text, "run.notify", "[\"say\"]").unwrap(), expected);
        let tool = set("", "tools.git/log.concurrency", "1").unwrap();
        assert_eq!(tool, "[tools.\"git/log\"]\nconcurrency = 1\n");
        assert_eq!(set("", "sandbox.mode", "strict").unwrap(), "[sandbox]\nmode = \"strict\"\n");
        let shares = set("[sandbox]\nread = [\"/srv\"]\n", "sandbox.net", "true").unwrap();
        assert_eq!(shares, "[sandbox]\nread = [\"/srv\"]\nnet = true\n");
    }

    #[test]
    fn a_value_that_does_not_fit_is_refused() {
        assert!(set("", "jobs", "many").unwrap_err().contains("`jobs`"));
        assert!(set("", "lease", "soon").unwrap_err().contains("`lease`"));
        assert!(set("", "leese", "1h").unwrap_err().contains("leese"));
        assert!(set("jobs = \n", "lease", "1h").unwrap_err().contains("config.toml"));
        assert_eq!(set("run = 3\n", "run.timeout", "1h").unwrap_err(), "form");
    }
}
