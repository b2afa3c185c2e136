use std::collections::BTreeMap;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use taskpawl_json::{JsonError, JsonFault};
use tokio::time::Instant;
use ureq::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use ureq::http::{Method, Request, Response, Uri};
use ureq::{Agent, AsSendBody, Body};

use crate::builtin::common::{blocking, invalid, parse};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::foresee::Foreseen;
use crate::root::{Root, io_error, write_all};
use crate::tool::{Hints, Tool, ToolSpec};

mod access;
#[cfg(any(test, feature = "fuzz"))]
pub(crate) mod fuzz;
mod net;
mod redirect;
mod target;
#[cfg(test)]
mod tests;

pub use access::{HttpAccess, InvalidHost};

use net::{Guard, System};
use redirect::Hop;
use target::Target;

/// Descriptors that a request opens at once: its connection, one for the name, and a file with its directory.
const FOR_A_REQUEST: u64 = 4;

/// Time limit of a request if the call has no deadline.
const TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// Headers that control the connection. With them a caller could address another host, or smuggle a second request.
const RESERVED: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Tool that sends an HTTP request to an allowed host. Proxies from the environment are not used: they would hide the
/// address that is checked.
#[derive(Debug)]
pub(super) struct HttpRequest {
    spec: ToolSpec,
    guard: Guard,
}

impl HttpRequest {
    pub(super) fn new(access: HttpAccess) -> Self {
        Self::with(Guard { access, net: Arc::new(System) })
    }

    fn with(guard: Guard) -> Self {
        let about = "Sends an HTTP request to a public host, or to one that the configuration lists.";
        let spec = ToolSpec::new("http_request", about, args_schema());
        let hints = Hints { destructive: true, open_world: true, ..Hints::default() };
        Self { spec: spec.with_result(result_schema()).with_hints(hints), guard }
    }
}

fn args_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "url": {"type": "string", "pattern": "^https?://", "examples": ["https://example.org/"]},
            "method": {"enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"], "default": "GET"},
            "headers": {
                "type": "object",
                "additionalProperties": {"type": "string"},
                "description": "Only harmless headers are kept on a redirect to another host.",
            },
            "body": {"type": "string", "description": "Text to send; excludes `json`."},
            "json": {"description": "A value to send as JSON."},
            "saveTo": {
                "type": "string",
                "minLength": 1,
                "description": "A file inside the project root for the body (up to 64 MiB), instead of the result.",
            },
        },
        "required": ["url"],
        "additionalProperties": false,
    })
}

fn result_schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "status": {"type": "integer", "description": "The call fails at 400 or above."},
            "headers": {"type": "object", "additionalProperties": {"type": "string"}},
            "body": {"type": "string", "description": "Empty with `saveTo`."},
            "json": {"description": "The body, if its content type is JSON and it is valid."},
            "truncated": {"const": true, "description": "Set if only the head of the body is included: it exceeds 256 KiB, or `keep` of the call."},
            "bytes": {"type": "integer", "description": "Bytes that were saved, with `saveTo`."},
            "url": {"type": "string", "description": "The final URL, after redirects."},
        },
        "required": ["status", "headers", "body"],
        "additionalProperties": false,
    })
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    url: String,
    #[serde(default = "get")]
    method: String,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    body: Option<String>,
    #[serde(default, deserialize_with = "given")]
    json: Option<Value>,
    save_to: Option<String>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Distinguishes `null`, which is a valid body, from an absent field.
fn given<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

#[async_trait]
impl Tool for HttpRequest {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn reaches_plan(&self) -> bool {
        false
    }

    fn file_beneath_root<'a>(&self, args: &'a Value) -> Option<&'a str> {
        args.get("saveTo")?.as_str()
    }

    fn foresee(&self, args: &Value) -> Vec<Foreseen> {
        let url = args.get("url").and_then(Value::as_str).filter(|url| !url.contains("${"));
        let target = url.and_then(|url| Target::of(&url.parse().ok()?).ok());
        let refused = target.and_then(|target| self.guard.access.check_target(&target).err());
        let blocked = |error: ToolError| Foreseen {
            code: "blocked_address",
            field: "url".to_owned(),
            message: error.to_string(),
            is_certain: true,
        };
        refused.map(blocked).into_iter().collect()
    }

    async fn call(&self, cx: CallContext, args: Value) -> Result<Value, ToolError> {
        let args: Args = parse("http_request", args)?;
        let guard = self.guard.clone();
        let agent = Agent::with_parts(config(), guard.connector(), guard.clone());
        // Aborts the request, which blocks on another thread, when this future completes or is dropped.
        let _hang_up = HangUp(agent.clone());
        let work = blocking(cx.clone(), FOR_A_REQUEST, move |cx| send(cx, &guard, &agent, &args));
        cx.until_interrupted(work).await?
    }

    fn is_repeatable(&self, args: &Value) -> bool {
        let method = args.get("method").and_then(Value::as_str).unwrap_or("GET");
        matches!(method, "GET" | "HEAD" | "OPTIONS")
    }
}

struct HangUp(Agent);

impl Drop for HangUp {
    fn drop(&mut self) {
        self.0.clone().shutdown();
    }
}

/// Returns the configuration of the client. Its own redirects are off, so that each target is checked here.
fn config() -> ureq::config::Config {
    let config = Agent::config_builder().http_status_as_error(false).allow_non_standard_methods(true);
    let config = config.proxy(None).max_redirects(0);
    config.user_agent(concat!("taskpawl/", env!("CARGO_PKG_VERSION"))).build()
}

fn send(cx: &CallContext, guard: &Guard, agent: &Agent, args: &Args) -> Result<Value, ToolError> {
    let end = cx.deadline.unwrap_or_else(|| Instant::now() + TIMEOUT);
    let mut hop = request(cx, args)?;
    let mut target = Target::of(&hop.uri).map_err(|problem| invalid("http_request", "url", problem))?;
    // Checked before sending: the effects of a request cannot be undone if its response has no place to go.
    if let Some(path) = &args.save_to {
        Root::open(cx)?.check_replaceable(Path::new(path))?;
    }
    for followed in 0..=redirect::MAX_REDIRECTS {
        cx.check()?;
        guard.check_target(&target)?;
        let response = exchange(agent, &hop, end).map_err(|error| no_answer(args, error))?;
        let problem = |problem| ToolError::Http { url: args.url.clone(), problem };
        let Some((next, to)) = hop.next(&response).map_err(problem)? else {
            let from = (followed > 0).then_some(&hop.uri);
            return answer(cx, args, from, response);
        };
        (hop, target) = (next, to);
    }
    let problem = format!("it redirects more than {} times", redirect::MAX_REDIRECTS);
    Err(ToolError::Http { url: args.url.clone(), problem })
}

fn exchange(agent: &Agent, hop: &Hop, end: Instant) -> Result<Response<Body>, ureq::Error> {
    // An empty body would still be sent as `content-length: 0`.
    match &hop.body {
        Some(body) => run(agent, hop.head().map(|()| body), end),
        None => run(agent, hop.head(), end),
    }
}

fn run(
    agent: &Agent,
    request: Request<impl AsSendBody>,
    end: Instant,
) -> Result<Response<Body>, ureq::Error> {
    let left = end.saturating_duration_since(Instant::now());
    agent.run(agent.configure_request(request).timeout_global(Some(left)).build())
}

fn request(cx: &CallContext, args: &Args) -> Result<Hop, ToolError> {
    let method = Method::from_bytes(args.method.as_bytes())
        .map_err(|_| invalid("http_request", "method", "is not an HTTP method"))?;
    let uri = Uri::try_from(&args.url);
    let uri = uri.map_err(|error| invalid("http_request", "url", format!("is not a valid URL: {error}")))?;
    let mut headers = HeaderMap::new();
    for (name, value) in &args.headers {
        let (name, value) = header(name, value)?;
        headers.insert(name, value);
    }
    if !method.is_safe() && !headers.contains_key("idempotency-key") {
        // The key is the same for every attempt of the call, so that the server can drop a repetition.
        let key = HeaderValue::try_from(&cx.idempotency_key).ok().filter(|key| !key.is_empty());
        headers.extend(key.map(|key| (HeaderName::from_static("idempotency-key"), key)));
    }
    if !headers.contains_key("traceparent") {
        let trace = HeaderValue::try_from(&cx.traceparent).ok().filter(|context| !context.is_empty());
        headers.extend(trace.map(|context| (HeaderName::from_static("traceparent"), context)));
    }
    if args.json.is_some() && !headers.contains_key(CONTENT_TYPE) {
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    Ok(Hop { method, uri, headers, body: body(args)? })
}

fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), ToolError> {
    let field = format!("headers[{name:?}]");
    if RESERVED.iter().any(|reserved| name.eq_ignore_ascii_case(reserved)) {
        return Err(invalid("http_request", &field, "is set by the tool itself; leave it out"));
    }
    let unfit = || invalid("http_request", &field, "is not a valid header");
    let value = HeaderValue::try_from(value).map_err(|_| unfit())?;
    Ok((HeaderName::try_from(name).map_err(|_| unfit())?, value))
}

fn body(args: &Args) -> Result<Option<Vec<u8>>, ToolError> {
    match (&args.body, &args.json) {
        (Some(_), Some(_)) => Err(invalid("http_request", "body", "excludes `args.json`; give one of them")),
        (Some(body), None) => Ok(Some(body.clone().into_bytes())),
        (None, Some(json)) => Ok(Some(json.to_string().into_bytes())),
        (None, None) => Ok(None),
    }
}

fn no_answer(args: &Args, error: ureq::Error) -> ToolError {
    if matches!(error, ureq::Error::Timeout(_)) {
        return ToolError::Timeout { result: None };
    }
    let problem = error.to_string();
    // A refusal by our connector arrives wrapped; it already has the right message.
    if let ureq::Error::Other(error) = error
        && let Ok(error) = error.downcast::<ToolError>()
    {
        return *error;
    }
    ToolError::Http { url: args.url.clone(), problem }
}

fn answer(
    cx: &CallContext,
    args: &Args,
    from: Option<&Uri>,
    response: Response<Body>,
) -> Result<Value, ToolError> {
    let (parts, mut body) = response.into_parts();
    let status = parts.status.as_u16();
    let (mut result, mut fault) = (Map::new(), None);
    result.insert("status".to_owned(), status.into());
    result.insert("headers".to_owned(), headers(&parts.headers));
    result.extend(from.map(|from| ("url".to_owned(), from.to_string().into())));
    match &args.save_to {
        Some(path) if status < 400 => {
            let bytes = save(cx, args, Path::new(path), &mut body)?;
            result.insert("body".to_owned(), "".into());
            result.insert("bytes".to_owned(), bytes.into());
        }
        Some(_) | None => fault = read(cx, args, &parts.headers, &mut body, &mut result)?,
    }
    if status < 400 {
        return match fault {
            None => Ok(result.into()),
            Some(fault) => Err(ToolError::InvalidJson {
                what: format!("the body from `{}`", args.url),
                problem: fault.to_string(),
                result: Box::new(result.into()),
            }),
        };
    }
    Err(ToolError::HttpStatus { url: args.url.clone(), status, result: Box::new(result.into()) })
}

/// Converts headers to JSON. Repeated ones are joined with a comma, as HTTP permits.
fn headers(headers: &HeaderMap) -> Value {
    let value = |name: &HeaderName| {
        let values = headers.get_all(name).iter().map(|value| String::from_utf8_lossy(value.as_bytes()));
        Value::from(values.collect::<Vec<_>>().join(", "))
    };
    Value::Object(headers.keys().map(|name| (name.as_str().to_owned(), value(name))).collect())
}

/// Reads the body into the result. It returns the reason why a body that is valid JSON cannot be represented.
fn read(
    cx: &CallContext,
    args: &Args,
    headers: &HeaderMap,
    body: &mut Body,
    result: &mut Map<String, Value>,
) -> Result<Option<JsonFault>, ToolError> {
    let (mut bytes, mut fault) = (Vec::new(), None);
    let keep_bytes = cx.limits.keep_bytes;
    let read = body.as_reader().take(keep_bytes as u64 + 1).read_to_end(&mut bytes);
    read.map_err(|error| no_answer(args, error.into()))?;
    let is_truncated = bytes.len() > keep_bytes;
    bytes.truncate(keep_bytes);
    if is_truncated {
        result.insert("truncated".to_owned(), true.into());
        cx.report_cut("/body");
        if is_json(headers) {
            cx.report_cut("/json");
        }
    } else if is_json(headers) {
        match taskpawl_json::read(&bytes) {
            Ok(json) => _ = result.insert("json".to_owned(), json),
            Err(JsonError::Fault(found)) => fault = Some(found),
            // Servers also send HTML error pages with this type, so that the body is kept as text.
            Err(JsonError::Syntax(_)) => {}
        }
    }
    result.insert("body".to_owned(), String::from_utf8_lossy(&bytes).into());
    Ok(fault)
}

fn is_json(headers: &HeaderMap) -> bool {
    let content_type = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let media_type = content_type.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    media_type == "application/json" || media_type.ends_with("+json")
}

fn save(cx: &CallContext, args: &Args, path: &Path, body: &mut Body) -> Result<u64, ToolError> {
    let mut total = 0;
    Root::open(cx)?.replace(path, None, |file| {
        total = copy(cx, args, path, body, file)?;
        file.flush().map_err(|error| io_error("write", path, error))?;
        cx.check()
    })?;
    Ok(total)
}

fn copy(
    cx: &CallContext,
    args: &Args,
    path: &Path,
    body: &mut Body,
    file: &mut File,
) -> Result<u64, ToolError> {
    let mut reader = body.as_reader();
    let mut buffer = vec![0; 64 << 10];
    let mut total = 0;
    loop {
        cx.check()?;
        let read = reader.read(&mut buffer).map_err(|error| no_answer(args, error.into()))?;
        if read == 0 {
            return Ok(total);
        }
        total += read as u64;
        if total > cx.limits.output_bytes {
            return Err(ToolError::OutputLimit { limit_bytes: cx.limits.output_bytes, result: None });
        }
        write_all(file, &buffer[..read], path)?;
    }
}
