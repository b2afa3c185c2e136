use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::builtin;
#[cfg(feature = "http")]
use crate::builtin::http::HttpAccess;
use crate::error::{RegistryError, ToolError};
use crate::foresee::Foreseen;
use crate::root::is_surely_outside;
use crate::schema::{Schema, SchemaError, Violation, nearest};
use crate::tool::{Tool, ToolSpec};

/// Tools by their unique names.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: BTreeMap<String, RegisteredTool>,
}

impl Registry {
    /// Makes a registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a registry of the built-in tools; `http_request` reaches every public host.
    ///
    /// # Panics
    ///
    /// Only if a built-in tool is invalid, which the tests exclude.
    pub fn builtin() -> Self {
        #[cfg(feature = "http")]
        let registry = Self::builtin_reaching(HttpAccess::public());
        #[cfg(not(feature = "http"))]
        let registry = Self::of(builtin::local());
        registry
    }

    /// Makes a registry of the built-in tools; `http_request` reaches the hosts that `access` grants.
    ///
    /// # Panics
    ///
    /// Only if a built-in tool is invalid, which the tests exclude.
    #[cfg(feature = "http")]
    pub fn builtin_reaching(access: HttpAccess) -> Self {
        let mut tools = builtin::local();
        tools.push(builtin::http_request(access));
        Self::of(tools)
    }

    fn of(tools: Vec<Arc<dyn Tool>>) -> Self {
        let mut registry = Self::new();
        for tool in tools {
            registry.register_tested(tool).expect("BUG: a built-in tool cannot be registered");
        }
        registry
    }

    /// Adds a tool and compiles its schemas.
    ///
    /// # Errors
    ///
    /// The name is taken or invalid, or a schema cannot be compiled.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let args = if tool.is_foreign() { Args::later() } else { Args::now(tool.spec())? };
        self.insert(tool, args)
    }

    /// Adds a tool whose schemas are known to be valid, since a test has passed it to [`register`](Self::register).
    /// They are compiled on first use, for most commands and runs need only a few.
    ///
    /// # Errors
    ///
    /// The name is taken or invalid.
    pub fn register_tested(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        self.insert(tool, Args::later())
    }

    fn insert(&mut self, tool: Arc<dyn Tool>, args: Args) -> Result<(), RegistryError> {
        let name = tool.spec().name.clone();
        if !is_name(&name) {
            return Err(RegistryError::InvalidName { name });
        }
        if self.tools.contains_key(&name) {
            return Err(RegistryError::Duplicate { name });
        }
        self.tools.insert(name, RegisteredTool { tool, args: Arc::new(args) });
        Ok(())
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.get(name)
    }

    /// Returns the tools, sorted by name.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.tools.values()
    }

    /// Returns the names of the tools, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

/// Returns whether a name is valid: a plain name, or `SERVER/TOOL` for the tool of a server.
fn is_name(name: &str) -> bool {
    match name.split_once('/') {
        None => is_word(name, 64, b"._-"),
        Some((server, tool)) => is_word(server, 64, b"._-") && is_word(tool, 128, b"._-/"),
    }
}

fn is_word(text: &str, most: usize, marks: &[u8]) -> bool {
    (1..=most).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || marks.contains(&byte))
}

fn invalid(name: &str, which: &'static str, error: SchemaError) -> RegistryError {
    RegistryError::InvalidSchema { name: name.to_owned(), which, at: error.at, problem: error.problem }
}

/// Registered tool with the compiled schema of its arguments; cheap to clone.
#[derive(Clone, Debug)]
pub struct RegisteredTool {
    tool: Arc<dyn Tool>,
    args: Arc<Args>,
}

/// Schema of arguments. A foreign schema, or one known to be valid, is compiled on first use, for most are never used.
#[derive(Debug)]
struct Args(OnceLock<Schema>);

impl Args {
    fn later() -> Self {
        Self(OnceLock::new())
    }

    fn now(spec: &ToolSpec) -> Result<Self, RegistryError> {
        let args =
            Schema::of_object(&spec.args_schema).map_err(|error| invalid(&spec.name, "args", error))?;
        if let Some(schema) = &spec.result_schema {
            Schema::compile(schema).map_err(|error| invalid(&spec.name, "result", error))?;
        }
        Ok(Self(OnceLock::from(args)))
    }

    fn get(&self, spec: &ToolSpec) -> &Schema {
        self.0.get_or_init(|| Schema::lenient(&spec.args_schema))
    }
}

impl RegisteredTool {
    /// Returns the bare tool. Calling it directly skips the checks of [`call_guarded`](crate::call_guarded).
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Returns the name, the schemas and the hints of the tool.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Returns whether a call with these arguments may be repeated when its outcome is unknown.
    pub fn is_repeatable(&self, args: &Value) -> bool {
        self.tool.is_repeatable(args)
    }

    /// Returns the problems that a call with these arguments would meet in the project at `root`. Arguments with
    /// expressions are known only when the call starts.
    pub fn foresee(&self, args: &Value, root: &Path) -> Vec<Foreseen> {
        let mut found = self.tool().foresee(args);
        let real = root.canonicalize().unwrap_or_else(|_| root.to_owned());
        if let Some(path) = self.tool().file_beneath_root(args)
            && !path.contains("${{")
            && is_surely_outside(Path::new(path), [root, &real])
        {
            let message =
                format!("`{path}` leads out of the project, where `{}` has no access", self.spec().name);
            let field = name_of(args, path).to_owned();
            found.push(Foreseen { code: "outside_root", field, message, is_certain: true });
        }
        found
    }

    /// Refuses `planAccess` for a tool that could not use it.
    ///
    /// # Errors
    ///
    /// [`ToolError::InvalidArgs`] if the tool starts no program.
    pub fn check_plan_access(&self) -> Result<(), ToolError> {
        if self.tool.reaches_plan() {
            return Ok(());
        }
        Err(ToolError::InvalidArgs {
            tool: self.spec().name.clone(),
            field: "planAccess".to_owned(),
            problem: "is only for tools that start a program for each call: `shell`, `exec`, `agent`, and custom tools in `[tools.NAME]`; remove it"
                .to_owned(),
        })
    }

    /// Checks the arguments in a plan; the error names the first field that does not fit.
    ///
    /// They are checked against the schema. A tool that [answers invalid arguments itself](Tool::policy_args) gets only
    /// a check for misspelt names.
    pub fn check_args(&self, args: &Value) -> Result<(), ToolError> {
        match self.tool.policy_args() {
            Some(names) => check_names(&self.spec().name, &names, args),
            None => self
                .args
                .get(self.spec())
                .check(args)
                .map_err(|violation| refusal(&self.spec().name, violation)),
        }
    }

    /// Checks the arguments that a plan gives to a call. A text with an expression, `${{ … }}`, may become any value when the call
    /// starts; all other values, the names of arguments and the required ones are checked.
    pub fn check_planned_args(&self, args: &Value) -> Result<(), ToolError> {
        if let Some(names) = self.tool.policy_args() {
            return check_names(&self.spec().name, &names, args);
        }
        let checked = self.args.get(self.spec()).check_parts(args, is_expression);
        checked.map_err(|violation| refusal(&self.spec().name, violation))
    }

    /// Checks the arguments of a call that is about to start. This is [`check_args`](Self::check_args), but a tool that
    /// answers invalid arguments itself gets them unchecked.
    pub fn check_call(&self, args: &Value) -> Result<(), ToolError> {
        if self.tool.policy_args().is_some() { Ok(()) } else { self.check_args(args) }
    }
}

/// Returns the name of the argument with this value.
fn name_of<'a>(args: &'a Value, value: &str) -> &'a str {
    let has_it = |(_, other): &(&String, &Value)| other.as_str() == Some(value);
    args.as_object().and_then(|args| args.iter().find(has_it)).map_or("path", |(name, _)| name)
}

/// Refuses the first unknown name that is similar to an unused one of `names`. Other unknown names are accepted, for
/// the tool ignores them.
fn check_names(tool: &str, names: &[&str], args: &Value) -> Result<(), ToolError> {
    let Value::Object(args) = args else { return Ok(()) };
    // A name that is already given is no candidate: a second spelling of it is not a typing error.
    let unused = || names.iter().copied().filter(|name| !args.contains_key(*name));
    let mut unknown = args.keys().filter(|name| !names.contains(&name.as_str()));
    let slip = unknown.find_map(|name| Some((name, nearest(name, unused())?)));
    slip.map_or(Ok(()), |(name, near)| {
        Err(ToolError::InvalidArgs {
            tool: tool.to_owned(),
            field: format!("args.{name}"),
            problem: format!("is not a known field; did you mean `{near}`?"),
        })
    })
}

/// Returns whether a value is a text with an expression.
fn is_expression(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("${{"))
}

fn refusal(tool: &str, Violation { at, problem }: Violation) -> ToolError {
    ToolError::InvalidArgs { tool: tool.to_owned(), field: format!("args{at}"), problem }
}

/// Checks arguments of `tool` against an external schema. Keywords that this version does not know are ignored, for the
/// owner of the schema checks the arguments as well.
pub fn check_foreign(tool: &str, schema: &Value, args: &Value) -> Result<(), ToolError> {
    Schema::lenient(schema).check(args).map_err(|violation| refusal(tool, violation))
}
