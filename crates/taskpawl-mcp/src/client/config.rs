use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taskpawl::tools::Widening;

use super::variables::{Name, Unfilled, expand, expand_value};

/// A server that is named by a configuration file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// What its tools have before the slash in their names.
    pub name: String,
    /// The file that names it.
    pub file: PathBuf,
    /// How it is reached, with variables as they are written.
    pub transport: Transport,
    /// The tools that it offers here; `None` stands for all.
    pub include: Option<Vec<String>>,
    /// Tools that it does not offer here.
    pub exclude: Vec<String>,
    /// How long one of its calls may take, if that is less than what the call may.
    pub timeout: Option<Duration>,
    /// What its sandbox allows beyond what programs of a run may.
    pub sandbox: Widening,
}

/// How a server is reached.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started, and talked to over its standard input and output.
    Stdio {
        /// The program.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Variables that it gets beside the usual ones.
        env: BTreeMap<String, String>,
        /// The directory in which it runs; without one the project's root.
        cwd: Option<String>,
    },
    /// A server somewhere, by HTTP.
    Http {
        /// Where it is.
        url: String,
        /// What is sent with each request.
        headers: BTreeMap<String, String>,
    },
}

/// Values may be secrets.
impl fmt::Debug for Transport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdio { command, args, .. } => {
                f.debug_struct("Stdio").field("command", command).field("args", args).finish_non_exhaustive()
            }
            Self::Http { url, .. } => f.debug_struct("Http").field("url", url).finish_non_exhaustive(),
        }
    }
}

/// A server that cannot be used, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerProblem {
    /// The server, as the file names it.
    pub server: String,
    /// The file.
    pub file: PathBuf,
    /// What is wrong, a lower-case fragment.
    pub problem: String,
}

impl fmt::Display for ServerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: MCP server `{}`: {}", self.file.display(), self.server, self.problem)
    }
}

/// Looks up the variables that configuration files may use.
pub type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Transport {
    /// Returns it with all names replaced by their values.
    pub(super) fn expanded(&self, look_up: &dyn Fn(Name<'_>) -> Option<String>) -> Result<Self, Unfilled> {
        let text = |text: &String| expand(text, look_up);
        let values = |map: &BTreeMap<String, String>| {
            let expanded = map.iter().map(|(name, value)| Ok((name.clone(), expand_value(value, look_up)?)));
            expanded.collect::<Result<BTreeMap<_, _>, _>>()
        };
        Ok(match self {
            Self::Stdio { command, args, env, cwd } => Self::Stdio {
                command: text(command)?,
                args: args.iter().map(text).collect::<Result<_, _>>()?,
                env: values(env)?,
                cwd: cwd.as_ref().map(text).transpose()?,
            },
            Self::Http { url, headers } => Self::Http { url: text(url)?, headers: values(headers)? },
        })
    }
}

impl ServerConfig {
    /// Reads what a file says about one server. `Ok(None)` is one that is switched off.
    pub(super) fn read(name: &str, file: &Path, value: &Value) -> Result<Option<Self>, String> {
        let fields = value.as_object().ok_or("it has to be an object")?;
        if fields.get("disabled") == Some(&Value::Bool(true))
            || fields.get("enabled") == Some(&Value::Bool(false))
        {
            return Ok(None);
        }
        let include = list(fields, &["includeTools", "enabled_tools"])?;
        let exclude = list(fields, &["excludeTools", "disabledTools", "disabled_tools"])?;
        let transport = transport(fields)?;
        // What it names is looked up when it is started; names that cannot be any are said now.
        transport.expanded(&|_| Some(String::new())).map_err(|unfilled| unfilled.to_string())?;
        Ok(Some(Self {
            name: fit_name(name)?,
            file: file.to_owned(),
            transport,
            include,
            exclude: exclude.unwrap_or_default(),
            timeout: timeout(fields)?,
            sandbox: Widening::default(),
        }))
    }

    /// Returns a word that changes with everything that decides which tools there are.
    pub(super) fn fingerprint(&self) -> String {
        let parts = match &self.transport {
            Transport::Stdio { command, args, env, cwd } => serde_json::json!([command, args, env, cwd]),
            Transport::Http { url, headers } => serde_json::json!([url, headers]),
        };
        let hash = Sha256::digest(serde_json::json!([1, self.name, parts]).to_string());
        hash.iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Returns whether a tool of the server is offered here.
    pub fn offers(&self, tool: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(is_in) && !is_in(&self.exclude)
    }
}

/// Makes the name of a server fit for the names of tools: some write spaces.
fn fit_name(name: &str) -> Result<String, String> {
    let fit = |char: char| {
        if char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-') { char } else { '-' }
    };
    let name: String = name.trim().chars().map(fit).collect();
    if (1..=64).contains(&name.len()) {
        Ok(name)
    } else {
        Err("its name needs 1 to 64 characters".to_owned())
    }
}

fn transport(fields: &Map<String, Value>) -> Result<Transport, String> {
    let kind = text(fields, "type")?.or(text(fields, "transport")?);
    let command = text(fields, "command")?;
    let url = match text(fields, "httpUrl")? {
        Some(url) => Some(url),
        None => text(fields, "url")?,
    };
    match (kind.as_deref(), command, url) {
        (Some("sse"), ..) => {
            Err("the transport `sse` was replaced by streamable HTTP: write `type` `http` and the address for that"
                .to_owned())
        }
        (Some("stdio") | None, Some(command), None) => Ok(Transport::Stdio {
            command,
            args: list(fields, &["args"])?.unwrap_or_default(),
            env: texts(fields, "env")?,
            cwd: text(fields, "cwd")?,
        }),
        (Some("http" | "streamable-http" | "streamableHttp" | "streamable_http") | None, None, Some(url)) => {
            Ok(Transport::Http { url, headers: texts(fields, "headers")? })
        }
        (_, Some(_), Some(_)) => Err("it has both `command` and `url`".to_owned()),
        (Some(kind), None, None) => Err(format!("of type `{kind}`, but without `command` or `url`")),
        (None, None, None) => Err("it has neither `command` nor `url`".to_owned()),
        (Some(kind), ..) => Err(format!("its type cannot be `{kind}`, expected `stdio` or `http`")),
    }
}

fn text(fields: &Map<String, Value>, name: &str) -> Result<Option<String>, String> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(format!("`{name}` has to be text")),
    }
}

/// Returns the first of these lists.
fn list(fields: &Map<String, Value>, names: &[&str]) -> Result<Option<Vec<String>>, String> {
    let Some((name, value)) = names.iter().find_map(|name| Some((name, fields.get(*name)?))) else {
        return Ok(None);
    };
    let texts = value.as_array().into_iter().flatten().map(|item| item.as_str().map(str::to_owned));
    let list: Option<Vec<_>> = value.is_array().then(|| texts.collect()).flatten();
    list.map(Some).ok_or_else(|| format!("`{name}` has to be a list of texts"))
}

fn texts(fields: &Map<String, Value>, name: &str) -> Result<BTreeMap<String, String>, String> {
    let wrong = || format!("`{name}` has to be an object of texts");
    let text = |value: &Value| match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(is_so) => Some(is_so.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    match fields.get(name) {
        None | Some(Value::Null) => Ok(BTreeMap::new()),
        Some(Value::Object(entries)) => {
            entries.iter().map(|(name, value)| Ok((name.clone(), text(value).ok_or_else(wrong)?))).collect()
        }
        Some(_) => Err(wrong()),
    }
}

/// Milliseconds, as others write them.
fn timeout(fields: &Map<String, Value>) -> Result<Option<Duration>, String> {
    match fields.get("timeout") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|millis| *millis > 0) {
            Some(millis) => Ok(Some(Duration::from_millis(millis))),
            None => Err("`timeout` has to be a number of milliseconds".to_owned()),
        },
    }
}
