use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::builtin;
#[cfg(feature = "http")]
use crate::builtin::http::HttpAccess;
use crate::error::{RegistryError, ToolError};
use crate::schema::{Schema, SchemaError, nearest};
use crate::tool::{Tool, ToolSpec};

/// The tools that calls may name, each under a unique name.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    tools: BTreeMap<String, RegisteredTool>,
}

impl Registry {
    /// Makes a registry without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Makes a registry of the built-in tools, whose `http_request` reaches every public host.
    ///
    /// # Panics
    ///
    /// Only if a built-in tool is wrong, which the tests exclude.
    pub fn builtin() -> Self {
        #[cfg(feature = "http")]
        let registry = Self::builtin_reaching(HttpAccess::public());
        #[cfg(not(feature = "http"))]
        let registry = Self::of(builtin::local());
        registry
    }

    /// Makes a registry of the built-in tools, whose `http_request` reaches what `access` grants.
    ///
    /// # Panics
    ///
    /// Only if a built-in tool is wrong, which the tests exclude.
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

    /// Adds a tool, whose schemas are compiled here once and for all.
    pub fn register(&mut self, tool: Arc<dyn Tool>) -> Result<(), RegistryError> {
        let args = if tool.is_foreign() { Args::later() } else { Args::now(tool.spec())? };
        self.insert(tool, args)
    }

    /// Adds a tool whose schemas are known to be right, because a test has registered it otherwise: they are compiled when they are needed,
    /// for most commands and runs need few of them.
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

    /// Returns the tool of this name.
    pub fn get(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.get(name)
    }

    /// Returns the tools in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &RegisteredTool> {
        self.tools.values()
    }

    /// Returns the names of the tools in order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.keys().map(String::as_str)
    }
}

/// A name, or that of a server, a slash, and what the server calls the tool.
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

/// A tool together with the compiled schema of its arguments; cheap to clone.
#[derive(Clone, Debug)]
pub struct RegisteredTool {
    tool: Arc<dyn Tool>,
    args: Arc<Args>,
}

/// The schema of arguments; one that comes from elsewhere, or is known to be right, is compiled when it is first needed, for most are not.
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
    /// Returns the tool itself, to be called without any of the guards of [`call_guarded`](crate::call_guarded).
    pub fn tool(&self) -> &Arc<dyn Tool> {
        &self.tool
    }

    /// Returns what the tool is called, what it takes and how it behaves.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Returns whether a call with these arguments may be run again when nobody knows how it ended.
    pub fn is_repeatable(&self, args: &Value) -> bool {
        self.tool.is_repeatable(args)
    }

    /// Refuses `planAccess` of a call that could do nothing with it.
    pub fn check_plan_access(&self) -> Result<(), ToolError> {
        if self.tool.reaches_plan() {
            return Ok(());
        }
        Err(ToolError::InvalidArgs {
            tool: self.spec().name.clone(),
            field: "planAccess".to_owned(),
            problem: "is for tools that start a program for each call: `shell`, `exec`, and your own of `[tools.NAME]`; leave it out"
                .to_owned(),
        })
    }

    /// Checks arguments as somebody wrote them; the error names the first field that does not fit. They are held against the
    /// schema, but for tools that [answer wrong arguments themselves](Tool::judged_args): of those a misspelt name alone is refused.
    pub fn check_args(&self, args: &Value) -> Result<(), ToolError> {
        match self.tool.judged_args() {
            Some(names) => check_names(&self.spec().name, &names, args),
            None => check(self.args.get(self.spec()), &self.spec().name, args),
        }
    }

    /// Checks arguments as they go to the tool: as [`check_args`](Self::check_args), but a tool that answers wrong arguments itself
    /// gets whatever there is.
    pub fn check_call(&self, args: &Value) -> Result<(), ToolError> {
        if self.tool.judged_args().is_some() { Ok(()) } else { self.check_args(args) }
    }
}

/// Refuses the first name that is near enough to one of `names` that is free to be a slip. Others may be there: a tool passes over what
/// it does not know.
fn check_names(tool: &str, names: &[&str], args: &Value) -> Result<(), ToolError> {
    let Value::Object(args) = args else { return Ok(()) };
    let free = || names.iter().copied().filter(|name| !args.contains_key(*name));
    let mut unknown = args.keys().filter(|name| !names.contains(&name.as_str()));
    let slip = unknown.find_map(|name| Some((name, nearest(name, free())?)));
    slip.map_or(Ok(()), |(name, near)| {
        Err(ToolError::InvalidArgs {
            tool: tool.to_owned(),
            field: format!("args.{name}"),
            problem: format!("is no field; did you mean `{near}`?"),
        })
    })
}

fn check(schema: &Schema, tool: &str, args: &Value) -> Result<(), ToolError> {
    schema.check(args).map_err(|violation| ToolError::InvalidArgs {
        tool: tool.to_owned(),
        field: format!("args{}", violation.at),
        problem: violation.problem,
    })
}

/// Checks arguments of `tool` against a schema that comes from elsewhere: what this version does not know in it is left to
/// whoever wrote it.
pub fn check_foreign(tool: &str, schema: &Value, args: &Value) -> Result<(), ToolError> {
    check(&Schema::lenient(schema), tool, args)
}
