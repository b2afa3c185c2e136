//! Tools with typed arguments and results, made from async functions.
//!
//! [`tool`](macro@crate::tool) makes one from a function with named parameters, [`FnTool`] one from a closure. Both write the schemas from
//! the types, so that plans are checked against them before anything runs.

use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::time::Duration;

use async_trait::async_trait;
use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use taskpawl_model::task::{CallSpec, NewCall};
use taskpawl_tools::{CallContext, Hints, Tool, ToolError, ToolSpec};

/// Result of a function that becomes a tool: `Result<T, E>`, where `T` can be written as JSON and `E` is an error.
///
/// `E` is [`ToolError`], any other type of an error, `anyhow::Error`, a boxed error or a text. A [`ToolError`] keeps its class, unless
/// `anyhow` has wrapped it; the class of all others is `failed`.
#[diagnostic::on_unimplemented(
    message = "a tool returns a `Result`, and not `{Self}`",
    note = "the value implements `serde::Serialize` and `schemars::JsonSchema`, and the error converts into a boxed `std::error::Error`"
)]
pub trait CallResult {
    /// Value of a call that succeeded.
    type Value: Serialize + JsonSchema;

    /// Returns the value, or the error as that of a tool.
    fn into_result(self) -> Result<Self::Value, ToolError>;
}

impl<T, E> CallResult for Result<T, E>
where
    T: Serialize + JsonSchema,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Value = T;

    fn into_result(self) -> Result<T, ToolError> {
        self.map_err(ToolError::other)
    }
}

/// Tool made from a closure, whose arguments are one type: a struct with a field for each argument.
///
/// ```
/// use taskpawl::prelude::*;
///
/// #[derive(serde::Deserialize, schemars::JsonSchema)]
/// struct Sum {
///     /// The numbers to add.
///     numbers: Vec<i64>,
/// }
///
/// let sum = FnTool::new("sum", "Adds numbers.", async |_cx: CallContext, args: Sum| {
///     Ok::<_, ToolError>(args.numbers.iter().sum::<i64>())
/// });
/// let plans = Taskpawl::builder(":memory:").tool(sum.read_only()).open()?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct FnTool<F, A> {
    spec: ToolSpec,
    function: F,
    args: PhantomData<fn(A)>,
}

impl<F, A> FnTool<F, A> {
    /// Makes a tool without hints. The description is for people, and for models that choose among tools.
    pub fn new<Fut, R>(name: impl Into<String>, description: impl Into<String>, function: F) -> Self
    where
        F: Fn(CallContext, A) -> Fut,
        Fut: Future<Output = R>,
        A: JsonSchema,
        R: CallResult,
    {
        Self { spec: spec::<A, R>(name, description), function, args: PhantomData }
    }

    /// States that calls change nothing.
    #[must_use]
    pub fn read_only(mut self) -> Self {
        self.spec.hints.read_only = true;
        self
    }

    /// States that a repeated call has no further effect, so that an interrupted one starts again by itself.
    #[must_use]
    pub fn idempotent(mut self) -> Self {
        self.spec.hints.idempotent = true;
        self
    }

    /// Sets all hints.
    #[must_use]
    pub fn hints(mut self, hints: Hints) -> Self {
        self.spec.hints = hints;
        self
    }

    /// Limits the duration of a call.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.spec = self.spec.with_timeout(timeout);
        self
    }
}

impl<F, A> fmt::Debug for FnTool<F, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FnTool").field("spec", &self.spec).finish_non_exhaustive()
    }
}

#[async_trait]
impl<F, A, Fut, R> Tool for FnTool<F, A>
where
    F: Fn(CallContext, A) -> Fut + Send + Sync,
    Fut: Future<Output = R> + Send,
    A: DeserializeOwned + Send,
    R: CallResult + Send,
{
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args = arguments(&self.spec.name, args)?;
        result((self.function)(cx, args).await)
    }
}

/// Returns the description of a tool, with the schemas of its types.
#[doc(hidden)]
pub fn spec<A: JsonSchema, R: CallResult>(
    name: impl Into<String>,
    description: impl Into<String>,
) -> ToolSpec {
    let settings = || {
        let mut settings = SchemaSettings::draft2020_12();
        settings.meta_schema = None;
        settings
    };
    let args = schema::<A>(settings().for_deserialize().into_generator());
    let result = schema::<R::Value>(settings().for_serialize().into_generator());
    ToolSpec::new(name, description, args).with_result(result)
}

/// Returns a schema without the name of its Rust type, which says nothing to an author of a plan.
fn schema<T: JsonSchema>(generator: SchemaGenerator) -> Value {
    let mut schema: Schema = generator.into_root_schema_for::<T>();
    schema.remove("title");
    schema.to_value()
}

/// Reads the arguments of a call, which fit the schema.
#[doc(hidden)]
pub fn arguments<A: DeserializeOwned>(tool: &str, args: Value) -> Result<A, ToolError> {
    serde_json::from_value(args).map_err(|error| ToolError::InvalidArgs {
        tool: tool.to_owned(),
        field: "args".to_owned(),
        problem: format!("cannot be read: {error}"),
    })
}

/// Returns the outcome of a function as JSON.
#[doc(hidden)]
pub fn result<R: CallResult>(result: R) -> Result<Value, ToolError> {
    let value = result.into_result()?;
    serde_json::to_value(value)
        .map_err(|error| ToolError::failed(format!("failed to write the result as JSON: {error}")))
}

/// Makes a call of a tool for a task. Arguments without a value are left out.
#[doc(hidden)]
pub fn call(tool: &str, args: &impl Serialize) -> Result<NewCall, serde_json::Error> {
    let Value::Object(mut args) = serde_json::to_value(args)? else {
        return Err(serde::ser::Error::custom("the arguments of a tool are a struct"));
    };
    args.retain(|_, value| !value.is_null());
    let spec = CallSpec { tool_name: tool.to_owned(), args, ..CallSpec::default() };
    Ok(NewCall { id: None, spec: spec.into() })
}

/// Names for the code that [`tool`](macro@crate::tool) writes.
#[doc(hidden)]
pub mod macros {
    pub use schemars;
    pub use serde;
    pub use serde_json::{Error, Value};
}
