//! Tools that are defined by configuration: a program with a template of its arguments.

pub use error::DefinitionError;
use std::collections::BTreeMap;

use async_trait::async_trait;
use serde_json::Value;

use crate::builtin::exec::{Options, run};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::tool::{Tool, ToolCommand, ToolSpec};

mod definition;
mod env;
mod error;
mod fields;
mod param;
mod template;

use env::{Variable, secrets_of};
use param::Param;
use template::{Argv, Template, Unfit};

/// Tool that runs a program with arguments from a template, without a shell.
///
/// It is defined by an object with the fields of `[tools.NAME]` in a configuration. The sandbox, the environment, the
/// limits and the result are the same as for `exec`. In the values of `env`, `${secret:NAME}` stands for a secret of
/// the run.
///
/// ```
/// use serde_json::json;
/// use taskpawl_tools::CommandTool;
///
/// let tool = CommandTool::new("pods", &json!({
///     "description": "Lists pods.",
///     "argv": ["kubectl", "get", "pods", "--namespace={namespace}", ["--selector", "{labels}"]],
///     "params": {
///         "namespace": {"description": "Where."},
///         "labels": {"type": "array", "required": false},
///     },
///     "readOnly": true,
/// })).unwrap();
///
/// let argv = tool.argv(&json!({"namespace": "a b; rm", "labels": ["x=1", "y=2"]})).unwrap();
/// assert_eq!(argv[3..], ["--namespace=a b; rm", "--selector", "x=1", "--selector", "y=2"]);
/// ```
#[derive(Clone, Debug)]
pub struct CommandTool {
    spec: ToolSpec,
    params: BTreeMap<String, Param>,
    argv: Argv,
    stdin: Option<Template>,
    cwd: Option<Template>,
    env: BTreeMap<String, Variable>,
    is_json: bool,
    ok_exit_codes: Vec<i32>,
    output_bytes: Option<u64>,
}

impl CommandTool {
    /// Fields of a definition.
    pub const FIELDS: &'static [&'static str] = definition::FIELDS;

    /// Makes a tool from its definition.
    ///
    /// # Errors
    /// A field is missing, unknown or invalid, or a placeholder names no parameter.
    pub fn new(name: &str, description: &Value) -> Result<Self, DefinitionError> {
        definition::read(name, description)
    }

    /// Returns the template of the arguments as it was written, one text for each element or group.
    pub fn template(&self) -> Vec<String> {
        self.argv.shown()
    }

    /// Returns the limit of output bytes per call, if the definition sets one.
    pub fn output_bytes(&self) -> Option<u64> {
        self.output_bytes
    }

    /// Returns the program and the arguments that a call would run.
    ///
    /// # Errors
    /// A value would be read as an option, or cannot be an argument.
    pub fn argv(&self, args: &Value) -> Result<Vec<String>, ToolError> {
        let values = self.values(args);
        self.argv.fill(&self.params, &values).map_err(|unfit| self.refused(unfit))
    }

    /// Returns the parameters that have a value or a default. `null` counts as absent.
    fn values<'a>(&'a self, args: &'a Value) -> BTreeMap<&'a str, &'a Value> {
        let value = |(name, param): (&'a String, &'a Param)| {
            let value = args.get(name).or(param.default.as_ref());
            Some((name.as_str(), value.filter(|value| !value.is_null())?))
        };
        self.params.iter().filter_map(value).collect()
    }

    fn refused(&self, unfit: Unfit) -> ToolError {
        let Unfit { param, problem } = unfit;
        ToolError::InvalidArgs { tool: self.spec.name.clone(), field: format!("args.{param}"), problem }
    }

    fn options(
        &self,
        values: &BTreeMap<&str, &Value>,
        secrets: &BTreeMap<String, String>,
    ) -> Result<Options, Unfit> {
        let filled =
            |template: &Option<Template>| template.as_ref().and_then(|template| template.fill(values));
        let mut env = BTreeMap::new();
        for (name, template) in &self.env {
            let Some(value) = template.fill(values, secrets) else { continue };
            if value.contains('\0') {
                return Err(Unfit::nul(template.params().next().unwrap_or_default()));
            }
            env.insert(name.clone(), value);
        }
        Ok(Options::new(
            filled(&self.cwd),
            env,
            filled(&self.stdin),
            self.is_json,
            self.ok_exit_codes.clone(),
        ))
    }
}

#[async_trait]
impl Tool for CommandTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn command(&self, args: &Value) -> Option<ToolCommand> {
        // Invalid values have no command: such a call fails before a program starts.
        let words = self.argv(args).ok()?;
        let values = self.values(args);
        let filled = |template: &Option<Template>| template.as_ref()?.fill(&values);
        let set =
            |(name, variable): (&String, &Variable)| Some((name.clone(), variable.fill_shown(&values)?));
        let env = self.env.iter().filter_map(set).collect();
        Some(ToolCommand { argv: words, input: filled(&self.stdin), cwd: filled(&self.cwd), env })
    }

    async fn call(&self, mut cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let words = self.argv(&args)?;
        let secrets = secrets_of(&self.env, &cx).await?;
        let options = self.options(&self.values(&args), &secrets).map_err(|unfit| self.refused(unfit))?;
        let program = words.first().cloned().unwrap_or_default();
        cx.limits.output_bytes = self.output_bytes.unwrap_or(cx.limits.output_bytes);
        run(&cx, &program, words, options).await
    }
}
