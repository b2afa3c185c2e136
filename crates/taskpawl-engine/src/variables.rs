//! Environment variables that a run passes to the programs of its calls.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::fmt;
use std::sync::Arc;

use taskpawl_model::task::is_identifier;
use taskpawl_tools::{CallContext, Environment, MIN_SECRET_BYTES};

use crate::env_file::{self, EnvFileError};
use crate::variable_key::VariableKey;

/// Longest value, in bytes. The kernel refuses longer ones together with their names.
const MAX_VALUE_BYTES: usize = 64 << 10;

/// Shortest value of a file that counts as random, in bytes.
const MIN_RANDOM_BYTES: usize = 16;

/// Least entropy of a random value, in bits a byte. Words and paths have less, hexadecimal digits have up to 4.
const MIN_ENTROPY: f64 = 3.0;

/// Environment variables for the programs of `exec` and `shell` calls, for one run. They are stored nowhere.
///
/// Variables that a call sets itself win. The values of secret variables are redacted in everything that the run
/// stores, unless they are shorter than six bytes: such values occur by chance in ordinary text.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct RunVariables(BTreeMap<String, Variable>);

#[derive(Clone, PartialEq, Eq)]
struct Variable {
    value: String,
    is_secret: bool,
}

/// Error of a variable for a run. It never contains a value.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum VariableError {
    /// The name is no name of a variable.
    #[error("`{}` is not a name of a variable: expected letters, digits and `_`", .name.escape_debug())]
    Name {
        /// The name.
        name: String,
    },
    /// The value cannot be passed to a program.
    #[error("the value of `{name}` {problem}")]
    Value {
        /// Name of the variable.
        name: String,
        /// Description of the problem.
        problem: &'static str,
    },
    /// The file cannot be parsed.
    #[error(transparent)]
    File(#[from] EnvFileError),
}

impl RunVariables {
    /// Sets a variable that is not secret.
    ///
    /// # Errors
    /// The name or the value is invalid.
    pub fn set(&mut self, name: &str, value: impl Into<String>) -> Result<(), VariableError> {
        self.insert(name, value.into(), false)
    }

    /// Sets a variable whose value is redacted.
    ///
    /// # Errors
    /// The name or the value is invalid.
    pub fn set_secret(&mut self, name: &str, value: impl Into<String>) -> Result<(), VariableError> {
        self.insert(name, value.into(), true)
    }

    /// Sets the variables in the text of a file with lines of the form `NAME=VALUE`.
    ///
    /// Secret are those whose names match `*KEY*`, `*TOKEN*`, `*SECRET*`, `*PASS*` or `*_URL`, and those whose values
    /// look random.
    ///
    /// # Errors
    /// A line cannot be parsed, or a name or a value is invalid. Then nothing is set.
    pub fn set_from_file(&mut self, text: &str) -> Result<(), VariableError> {
        let mut read = Self::default();
        for (name, value) in env_file::parse(text)? {
            let is_secret = has_secret_name(&name) || is_random(&value);
            read.insert(&name, value, is_secret)?;
        }
        self.0.extend(read.0);
        Ok(())
    }

    fn insert(&mut self, name: &str, value: String, is_secret: bool) -> Result<(), VariableError> {
        if !is_identifier(name) {
            return Err(VariableError::Name { name: name.to_owned() });
        }
        let problem = if value.contains('\0') {
            "contains a NUL byte, which cannot be passed to a program"
        } else if value.len() > MAX_VALUE_BYTES {
            "is longer than 64 KiB"
        } else {
            self.0.insert(name.to_owned(), Variable { value, is_secret });
            return Ok(());
        };
        Err(VariableError::Value { name: name.to_owned(), problem })
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns whether a variable of this name is set.
    pub fn contains(&self, name: &str) -> bool {
        self.0.contains_key(name)
    }

    /// Returns the names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Returns the names of the variables whose values are redacted.
    pub fn redacted_names(&self) -> impl Iterator<Item = &str> {
        self.secrets().filter(|(_, value)| is_redactable(value)).map(|(name, _)| name)
    }

    /// Returns the names of secret variables whose values are too short to be redacted.
    pub fn unredacted_names(&self) -> impl Iterator<Item = &str> {
        self.secrets().filter(|(_, value)| !is_redactable(value)).map(|(name, _)| name)
    }

    pub(crate) fn secrets(&self) -> impl Iterator<Item = (&str, &str)> {
        let secret = self.0.iter().filter(|(_, variable)| variable.is_secret);
        secret.map(|(name, variable)| (name.as_str(), variable.value.as_str()))
    }

    /// Adds the variables to the environment of a call, if its tool runs programs that the plan names.
    pub(crate) fn fill(&self, tool: &str, context: &mut CallContext) {
        if self.is_empty() || !matches!(tool, "exec" | "shell") {
            return;
        }
        let variables = self.0.iter();
        let variables =
            variables.map(|(name, variable)| (OsString::from(name), OsString::from(&variable.value)));
        let environment = Arc::unwrap_or_clone(std::mem::take(&mut context.environment));
        context.environment = Arc::new(environment.with(variables));
    }
}

/// Values of the environment variables that arguments can name in a run: those that programs have, and those that were
/// passed to the run.
#[derive(Clone, Default)]
pub(crate) struct VariableValues(Arc<BTreeMap<String, String>>);

impl VariableValues {
    pub(crate) fn new(environment: &Environment, variables: &RunVariables) -> Self {
        let text =
            |(name, value): (OsString, OsString)| Some((name.into_string().ok()?, value.into_string().ok()?));
        let mut values: BTreeMap<String, String> = environment
            .variables()
            .into_iter()
            .filter_map(text)
            .filter(|(name, _)| is_identifier(name))
            .collect();
        let passed = variables.0.iter();
        values.extend(passed.map(|(name, variable)| (name.clone(), variable.value.clone())));
        Self(Arc::new(values))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Returns a digest of each value, by name. Without the key of the store, a value cannot be found by trying.
    pub(crate) fn digests(&self, key: &VariableKey) -> BTreeMap<String, String> {
        self.0.iter().map(|(name, value)| (name.clone(), key.digest(name, value))).collect()
    }
}

impl fmt::Debug for VariableValues {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl fmt::Debug for RunVariables {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.names()).finish()
    }
}

fn is_redactable(value: &str) -> bool {
    value.len() >= MIN_SECRET_BYTES
}

fn has_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    ["KEY", "TOKEN", "SECRET", "PASS"].iter().any(|part| name.contains(part)) || name.ends_with("_URL")
}

/// Returns whether a value looks like a generated key: long, without blanks, and with evenly distributed characters.
fn is_random(value: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'=' | b'_' | b'-');
    let has_digit = value.bytes().any(|byte| byte.is_ascii_digit());
    let is_long = value.len() >= MIN_RANDOM_BYTES;
    // Base64 contains slashes, and so do paths: at most every eighth character may be one.
    let slashes = value.bytes().filter(|byte| *byte == b'/').count();
    let is_dense = value.bytes().all(|byte| is_word(byte) || byte == b'/') && slashes * 8 <= value.len();
    is_long && is_dense && has_digit && entropy(value) >= MIN_ENTROPY
}

/// Returns the Shannon entropy of the bytes, in bits a byte.
fn entropy(value: &str) -> f64 {
    let bytes: BTreeSet<u8> = value.bytes().collect();
    let count = |byte: u8| value.bytes().filter(|other| *other == byte).count();
    let length = f64::from(u32::try_from(value.len()).unwrap_or(u32::MAX));
    let shares =
        bytes.into_iter().map(|byte| f64::from(u32::try_from(count(byte)).unwrap_or(u32::MAX)) / length);
    shares.map(|share| -share * share.log2()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_of_a_file_are_secret_by_name_or_by_value() {
        let mut variables = RunVariables::default();
        let text = "API_KEY=abcdefgh\nDATABASE_URL=postgres://a\nDB_PASSWORD=short\nMODE=production\n\
                    SESSION=9f86d081884c7d659a2feaa0c55ad015\nDIR=/usr/local/share/taskpawl/plans/2026\n\
                    URL_OF_DOCS=https://example.org/docs\nTEXT=the quick brown fox jumps\n";
        variables.set_from_file(text).unwrap();
        assert_eq!(variables.redacted_names().collect::<Vec<_>>(), ["API_KEY", "DATABASE_URL", "SESSION"]);
        assert_eq!(variables.unredacted_names().collect::<Vec<_>>(), ["DB_PASSWORD"]);
        assert_eq!(variables.names().count(), 8);
    }

    #[test]
    fn errors_and_debug_output_contain_no_value() {
        let mut variables = RunVariables::default();
        variables.set_secret("A", "hidden-value").unwrap();
        assert_eq!(format!("{variables:?}"), r#"{"A"}"#);
        let errors = [
            variables.set("A B", "hidden-value"),
            variables.set("", "hidden-value"),
            variables.set("A", "hidden-value\0"),
            variables.set_from_file("B=1\nA 'hidden-value'"),
            variables.set_from_file("A='hidden-value"),
        ];
        let texts: Vec<String> = errors.into_iter().map(|error| error.unwrap_err().to_string()).collect();
        assert!(!texts.iter().any(|text| text.contains("hidden-value")), "{texts:?}");
        assert!(!variables.contains("B"));
    }
}
