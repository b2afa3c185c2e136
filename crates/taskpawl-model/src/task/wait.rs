//! Durable waits: until a time, or for a signal. No process and no slot of a run belongs to them.

use std::fmt;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::task::ActorKind;
use crate::task::spec::Origin;
use crate::value::{CallId, Map, Period, TaskId, Timestamp, format_time};

/// Name of the tool whose calls are durable waits. The rules carry them out, so that no run starts them.
pub const WAIT_TOOL: &str = "wait";

/// The longest name of a signal, in bytes.
const MAX_SIGNAL_NAME: usize = 64;

/// The largest data of a signal, in bytes of JSON text.
pub const MAX_SIGNAL_DATA: usize = 64 * 1024;

/// The longest `for` and `timeout`: 100 years. Stores count time in nanoseconds, which end in the year 2262.
const MAX_PERIOD: Duration = Duration::from_secs(100 * 365 * 24 * 60 * 60);

/// The number of signals that are kept until a task takes them. Without a bound, a sender in a loop would fill the store.
pub const MAX_SIGNALS: usize = 10_000;

/// The end that a waiting task waits for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WaitingFor {
    /// The call that waits; absent for `notBefore`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub call: Option<CallId>,
    /// The time at which the wait ends. For a signal, it is the end of the `timeout`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<Timestamp>,
    /// The name of the signal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signal: Option<String>,
    /// The waits of other calls of the task, which is in parallel mode. None of them ends before `time`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<Self>,
}

impl WaitingFor {
    /// Returns the wait of a task that may not start before a time.
    pub fn until(time: Timestamp) -> Self {
        Self { time: Some(time), ..Self::default() }
    }

    /// Joins the waits of parallel calls: the first end of any of them wakes the task. The one that ends first comes first, so that
    /// `time` is the next moment of the whole.
    pub(crate) fn or(self, other: Self) -> Self {
        let mut waits: Vec<Self> = self.into_single().chain(other.into_single()).collect();
        waits.sort_by_key(|wait| wait.time.unwrap_or(Timestamp::MAX_UTC));
        let mut waits = waits.into_iter();
        let first = waits.next().unwrap_or_default();
        Self { also: waits.collect(), ..first }
    }

    fn into_single(mut self) -> impl Iterator<Item = Self> {
        let also = std::mem::take(&mut self.also);
        std::iter::once(self).chain(also)
    }

    /// Returns the names of the signals, each of which wakes the task.
    pub fn signals(&self) -> impl Iterator<Item = &str> {
        std::iter::once(self).chain(&self.also).filter_map(|wait| wait.signal.as_deref())
    }
}

impl fmt::Display for WaitingFor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.write_own(f)?;
        match self.also.as_slice() {
            [] => Ok(()),
            [other] => {
                f.write_str("; also ")?;
                other.write_own(f)
            }
            others => write!(f, "; {} other calls wait, too", others.len()),
        }
    }
}

impl WaitingFor {
    /// Writes the wait without those of other calls.
    fn write_own(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.signal, self.time.map(format_time)) {
            (Some(signal), Some(end)) => write!(f, "waits for the signal `{signal}`, at most until {end}"),
            (Some(signal), None) => write!(f, "waits for the signal `{signal}`"),
            (None, Some(time)) => write!(f, "waits until {time}"),
            (None, None) => f.write_str("waits"),
        }
    }
}

/// The arguments of a call of [`WAIT_TOOL`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WaitRequest {
    /// `for`: a period from the start of the call.
    For(Period),
    /// `until`: a time.
    Until(Timestamp),
    /// `signal`, with `timeout`.
    Signal {
        /// The name.
        name: String,
        /// The longest wait.
        timeout: Option<Period>,
    },
}

/// Fields of [`WaitRequest`].
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WaitArgs {
    r#for: Option<Period>,
    until: Option<String>,
    signal: Option<String>,
    timeout: Option<Period>,
}

impl WaitRequest {
    /// Reads the arguments of a call.
    ///
    /// # Errors
    /// The arguments do not name exactly one end, or a value is invalid. The text says which.
    pub fn read(args: &Map) -> Result<Self, String> {
        let read = serde_json::from_value::<WaitArgs>(Value::Object(args.clone()));
        let args = read.map_err(|error| format!("invalid arguments: {error}"))?;
        if args.timeout.is_some() && args.signal.is_none() {
            return Err("`timeout` is only for `signal`: a time needs none".to_owned());
        }
        if let Some((name, period)) = too_long(&args) {
            return Err(format!("`{name}` is longer than 100 years: {period}"));
        }
        match args {
            WaitArgs { r#for: Some(period), until: None, signal: None, .. } => Ok(Self::For(period)),
            WaitArgs { r#for: None, until: Some(text), signal: None, .. } => {
                let problem =
                    || format!("`until` is not a time: `{text}`; write it as `2030-01-31T09:00:00Z`");
                Ok(Self::Until(time(&text).ok_or_else(problem)?))
            }
            WaitArgs { r#for: None, until: None, signal: Some(name), timeout } => {
                check_signal_name(&name)?;
                Ok(Self::Signal { name, timeout })
            }
            _ => Err("expected one of `for`, `until` and `signal`".to_owned()),
        }
    }

    /// Checks the arguments that an author wrote. Values with expressions are known only when the call starts.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    pub fn check(args: &Map) -> Result<(), String> {
        let placeholder = |name: &str| match name {
            "for" | "timeout" => Some("1s"),
            "until" => Some("2030-01-31"),
            "signal" => Some("go"),
            _ => None,
        };
        let mut args = args.clone();
        for (name, value) in &mut args {
            let is_template = value.as_str().is_some_and(|text| text.contains("${"));
            if let Some(known) = placeholder(name).filter(|_| is_template) {
                *value = known.into();
            }
        }
        Self::read(&args).map(drop)
    }

    /// Returns the end of a wait that begins at `now`; `None` if only a signal ends it.
    pub(crate) fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let after = |period: &Period| {
            let period = chrono::TimeDelta::from_std(period.0).ok();
            period.and_then(|period| now.checked_add_signed(period)).unwrap_or(Timestamp::MAX_UTC)
        };
        match self {
            Self::For(period) => Some(after(period)),
            Self::Until(time) => Some(*time),
            Self::Signal { timeout, .. } => timeout.as_ref().map(after),
        }
    }

    /// Returns the name of the signal.
    pub(crate) fn signal(&self) -> Option<&str> {
        if let Self::Signal { name, .. } = self { Some(name) } else { None }
    }
}

fn too_long(args: &WaitArgs) -> Option<(&'static str, Period)> {
    let periods = [("for", args.r#for), ("timeout", args.timeout)];
    periods
        .into_iter()
        .find_map(|(name, period)| Some((name, period.filter(|period| period.0 > MAX_PERIOD)?)))
}

/// Parses a time with its offset from UTC, or a date, which is its first moment in UTC.
fn time(text: &str) -> Option<Timestamp> {
    let time = chrono::DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
    time.or_else(|| format!("{text}T00:00:00Z").parse().ok())
}

/// Checks the name of a signal.
///
/// # Errors
/// The name is empty, too long, or has characters other than ASCII letters, digits, `.`, `_` and `-`.
pub fn check_signal_name(name: &str) -> Result<(), String> {
    let is_known = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '_' | '-');
    if !name.is_empty() && name.len() <= MAX_SIGNAL_NAME && name.chars().all(is_known) {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_SIGNAL_NAME).collect();
    Err(format!(
        "`{shown}` is no name of a signal: it has 1 to {MAX_SIGNAL_NAME} letters, digits, `.`, `_` or `-`"
    ))
}

/// A signal that was sent and that no task has taken yet.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SignalRecord {
    /// Its id.
    pub id: String,
    /// Its name.
    pub name: String,
    /// Its data, which becomes the result of the call that takes it.
    #[serde(default, skip_serializing_if = "Value::is_null")]
    pub data: Value,
    /// The only task that may take it; absent if any may.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<TaskId>,
    /// The actor that sent it.
    pub actor: String,
    /// The kind of that actor.
    pub kind: ActorKind,
    /// The origin of its data.
    pub origin: Origin,
    /// The time of sending.
    pub at: Timestamp,
}

#[cfg(test)]
mod tests {
    use super::{WaitRequest, WaitingFor};
    use serde_json::json;

    #[expect(clippy::needless_pass_by_value, reason = "the values are literals")]
    fn read(args: serde_json::Value) -> Result<WaitRequest, String> {
        WaitRequest::read(args.as_object().unwrap())
    }

    #[test]
    fn a_wait_names_exactly_one_end() {
        assert!(matches!(read(json!({"for": "2h"})), Ok(WaitRequest::For(_))));
        assert!(matches!(read(json!({"until": "2030-01-31T09:00:00+02:00"})), Ok(WaitRequest::Until(_))));
        assert!(matches!(read(json!({"until": "2030-01-31"})), Ok(WaitRequest::Until(_))));
        assert!(matches!(
            read(json!({"signal": "go", "timeout": "1m"})),
            Ok(WaitRequest::Signal { timeout: Some(_), .. })
        ));
        for args in [
            json!({}),
            json!({"for": "2h", "signal": "go"}),
            json!({"for": "2h", "timeout": "1m"}),
            json!({"for": "soon"}),
            json!({"until": "tomorrow"}),
            json!({"signal": ""}),
            json!({"signal": "a b"}),
            json!({"signal": "x".repeat(65)}),
            json!({"signal": "go", "timeot": "1m"}),
            json!({"for": "18446744073709551615ms"}),
            json!({"signal": "go", "timeout": "876001h"}),
        ] {
            assert!(read(args.clone()).is_err(), "{args}");
        }
    }

    #[test]
    fn values_with_expressions_are_not_checked_before_the_call_starts() {
        let check = |args: serde_json::Value| WaitRequest::check(args.as_object().unwrap());
        assert_eq!(check(json!({"until": "${{ tasks.a.result.at }}"})), Ok(()));
        assert!(check(json!({"until": "${{ tasks.a.result.at }}", "signal": "go"})).is_err());
        assert!(check(json!({"until": "tomorrow"})).is_err());
    }

    #[test]
    fn parallel_waits_keep_what_each_waits_for() {
        let early = WaitingFor::until("2030-01-01T00:00:00Z".parse().unwrap());
        let late = WaitingFor::until("2031-01-01T00:00:00Z".parse().unwrap());
        let signal = |name: &str| WaitingFor { signal: Some(name.to_owned()), ..WaitingFor::default() };
        let joined = late.clone().or(signal("go")).or(early.clone());
        assert_eq!(joined.time, early.time);
        assert_eq!(joined.signal, None);
        assert_eq!(joined.also, [late.clone(), signal("go")]);
        assert_eq!(
            late.or(signal("go")).to_string(),
            "waits until 2031-01-01T00:00:00Z; also waits for the signal `go`"
        );
        assert_eq!(signal("a").or(signal("b")).signals().collect::<Vec<_>>(), ["a", "b"]);
    }
}
