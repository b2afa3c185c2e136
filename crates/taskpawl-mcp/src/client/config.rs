use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use taskpawl::tools::Widening;

use super::variables::{Name, Unfilled, expand, expand_value};

/// A server from a configuration file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ServerConfig {
    /// The part before the slash in the names of its tools.
    pub name: String,
    /// The file that contains the server.
    pub file: PathBuf,
    /// The connection to the server, with variables not yet replaced.
    pub transport: Transport,
    /// The tools to offer; `None` offers all.
    pub include: Option<Vec<String>>,
    /// Tools that are not offered, even if `include` lists them.
    pub exclude: Vec<String>,
    /// Time limit for each call of its tools. The limit of the call itself counts as well, if it is shorter.
    pub timeout: Option<Duration>,
    /// Permissions of its sandbox beyond those of other programs of a run.
    pub sandbox: Widening,
}

/// The connection to a server.
#[derive(Clone, PartialEq)]
#[non_exhaustive]
pub enum Transport {
    /// A program that is started, with messages over its standard input and output.
    Stdio {
        /// The program, as a path or a name on `PATH`.
        command: String,
        /// Its arguments.
        args: Vec<String>,
        /// Environment variables beyond the usual ones.
        env: BTreeMap<String, String>,
        /// Its working directory, relative to the project's root. `None` stands for the root.
        cwd: Option<String>,
    },
    /// A server that is reached over HTTP.
    Http {
        /// Its address, which begins with `https://` or `http://`.
        url: String,
        /// Headers that are sent with each request.
        headers: BTreeMap<String, String>,
    },
}

/// Leaves out environment variables and headers, since their values may be secrets.
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

/// A server that cannot be used, with the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerProblem {
    /// The server's name in the file.
    pub server: String,
    /// The file that contains the server.
    pub file: PathBuf,
    /// The fault, as a lower-case fragment.
    pub problem: String,
}

impl fmt::Display for ServerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: MCP server `{}`: {}", self.file.display(), self.server, self.problem)
    }
}

/// Looks up the environment variables that configuration files may use.
pub type Variables = dyn Fn(&str) -> Option<String> + Send + Sync;

impl Transport {
    /// Returns the transport with all placeholders replaced by their values.
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
    /// Reads one server of a file. `Ok(None)` is a server that is switched off.
    pub(super) fn read(name: &str, file: &Path, value: &Value) -> Result<Option<Self>, String> {
        let fields = value.as_object().ok_or("it has to be an object")?;
        // Programs that share this format use one of these two fields.
        if fields.get("disabled") == Some(&Value::Bool(true))
            || fields.get("enabled") == Some(&Value::Bool(false))
        {
            return Ok(None);
        }
        let include = list(fields, &["includeTools", "enabled_tools"])?;
        let exclude = list(fields, &["excludeTools", "disabledTools", "disabled_tools"])?;
        let transport = transport(fields)?;
        // Values are looked up when the server is started. The empty value here only finds placeholders that are
        // malformed.
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

    /// Returns a hash of the name and the transport, which names the catalogue's file.
    pub(super) fn fingerprint(&self) -> String {
        // Placeholders are hashed as written: a new token does not make the catalogue stale. `include` and `exclude`
        // are left out, since they filter the catalogue when it is read.
        let parts = match &self.transport {
            Transport::Stdio { command, args, env, cwd } => serde_json::json!([command, args, env, cwd]),
            Transport::Http { url, headers } => serde_json::json!([url, headers]),
        };
        let hash = Sha256::digest(serde_json::json!([1, self.name, parts]).to_string());
        hash.iter().take(16).fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
    }

    /// Returns whether a tool of the server is offered, by `include` and `exclude`.
    pub fn offers(&self, tool: &str) -> bool {
        let is_in = |list: &[String]| list.iter().any(|name| name == tool);
        self.include.as_deref().is_none_or(is_in) && !is_in(&self.exclude)
    }
}

/// Replaces characters that names of tools cannot have. Some programs allow spaces in names of servers.
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
    // The settings of Gemini name streamable HTTP `httpUrl`; their `url` is the older transport.
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

/// Returns the first list that is present under one of these names.
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
        // Some files have numbers and booleans here, although environment variables are text.
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

/// Reads a time limit in milliseconds, the unit of the other programs.
fn timeout(fields: &Map<String, Value>) -> Result<Option<Duration>, String> {
    match fields.get("timeout") {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().filter(|millis| *millis > 0) {
            Some(millis) => Ok(Some(Duration::from_millis(millis))),
            None => Err("`timeout` has to be a number of milliseconds".to_owned()),
        },
    }
}
