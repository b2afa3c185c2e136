//! Models behind HTTP, over the client that `http_request` uses too. The libraries for models bring `reqwest` and at least 43 further
//! crates for two requests.

use std::fmt;
use std::thread;
use std::time::Duration;

use serde_json::Value;
use taskpawl_text::{cut, duration, plain_line};
use taskpawl_tools::Redactor;
use ureq::http::{StatusCode, Uri};
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, parse_pem};
use ureq::{Agent, Proxy};

use crate::planner::{Planner, PlannerError, Reply, Request};

/// The most bytes of an answer.
const MAX_ANSWER_BYTES: u64 = 1 << 20;

/// The most characters of an error of a server in a message.
const MAX_SAID: usize = 300;

/// The number of repeated requests for one answer.
const MAX_RETRIES: u32 = 2;

/// The pause before a repeated request, unless the server says how long.
const PAUSE: Duration = Duration::from_secs(1);

/// The format of requests and answers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum WireFormat {
    /// Chat completions, which most servers of models offer.
    #[default]
    OpenAi,
    /// The Messages API.
    Anthropic,
}

/// The settings of a model.
#[derive(Clone, Default)]
pub struct HttpSettings {
    /// The address, with or without the path of the format.
    pub url: String,
    /// The name of the model.
    pub model: String,
    /// The format.
    pub format: WireFormat,
    /// The key. It is sent, and appears nowhere else.
    pub key: Option<String>,
    /// Certificates in PEM that are trusted instead of the public ones.
    pub own_certificates: Option<Vec<u8>>,
    /// The proxy. Addresses of this machine are reached without it.
    pub proxy: Option<Proxy>,
}

impl fmt::Debug for HttpSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpSettings")
            .field("url", &self.url)
            .field("model", &self.model)
            .finish_non_exhaustive()
    }
}

/// The settings of a model are wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidModel {
    /// The address is not one of HTTP.
    #[error("`{0}` is not an address such as https://models.example.org/v1")]
    Url(String),
    /// The key would travel in the clear.
    #[error("`{0}` would get the key without encryption")]
    Unencrypted(String),
    /// The certificates cannot be read.
    #[error("the own certificates are not PEM")]
    Certificates,
}

/// A model behind HTTP.
#[derive(Debug)]
pub struct HttpModel {
    settings: HttpSettings,
    agent: Agent,
    host: String,
    redactor: Redactor,
}

impl HttpModel {
    /// Makes a planner of a model.
    ///
    /// # Errors
    /// The address or the certificates are invalid.
    pub fn new(settings: HttpSettings) -> Result<Self, InvalidModel> {
        let invalid = || InvalidModel::Url(settings.url.clone());
        let uri: Uri = settings.url.parse().map_err(|_| invalid())?;
        let host = uri.host().filter(|host| !host.is_empty()).ok_or_else(invalid)?.to_owned();
        let is_encrypted = match uri.scheme_str() {
            Some("https") => true,
            Some("http") => false,
            _ => return Err(invalid()),
        };
        // A key in the address would be in every message about it.
        if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) {
            return Err(InvalidModel::Url("…@".to_owned()));
        }
        if settings.key.is_some() && !is_encrypted && !is_loopback(&host) {
            return Err(InvalidModel::Unencrypted(settings.url));
        }
        let proxy = settings.proxy.clone().filter(|_| !is_loopback(&host));
        let config = Agent::config_builder().http_status_as_error(false).max_redirects(0).proxy(proxy);
        let config = config.user_agent(concat!("taskpawl/", env!("CARGO_PKG_VERSION")));
        let config = match &settings.own_certificates {
            Some(pem) => config.tls_config(TlsConfig::builder().root_certs(roots(pem)?).build()),
            None => config,
        };
        let redactor = Redactor::new(settings.key.iter().map(|key| ("planner", key.as_str())));
        Ok(Self { agent: config.build().into(), host, redactor, settings })
    }

    /// Returns whether the address is of another machine.
    pub fn is_remote(&self) -> bool {
        !is_loopback(&self.host)
    }

    /// Returns the address of requests.
    pub fn address(&self) -> String {
        self.settings.format.endpoint(&self.settings.url)
    }

    fn failed(&self, problem: &str) -> PlannerError {
        let problem = plain_line(&self.redactor.text(problem));
        PlannerError::Failed { planner: self.name(), problem }
    }

    /// Sends one request; the body is read up to the limit.
    fn send(&self, body: &[u8], left: Duration) -> Result<Answer, ureq::Error> {
        let mut request = self.agent.post(self.address()).header("content-type", "application/json");
        for (name, value) in self.settings.format.headers(self.settings.key.as_deref()) {
            request = request.header(name, value);
        }
        let response = request.config().timeout_global(Some(left)).build().send(body)?;
        let status = response.status();
        let seconds =
            response.headers().get("retry-after").and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let mut body = response.into_body();
        let body = body.with_config().limit(MAX_ANSWER_BYTES).read_to_vec()?;
        Ok(Answer { status, pause: seconds.map(Duration::from_secs), body })
    }

    fn read(&self, answer: &Answer) -> Result<Reply, PlannerError> {
        let value: Option<Value> = taskpawl_json::read(&answer.body).ok();
        if !answer.status.is_success() {
            let said = value.as_ref().and_then(|value| value["error"]["message"].as_str().map(str::to_owned));
            let said = said.map(|said| format!(": {}", cut(&said, MAX_SAID))).unwrap_or_default();
            return Err(self.failed(&format!("it answers {}{said}", answer.status)));
        }
        let value = value.ok_or_else(|| self.failed("its answer is not JSON"))?;
        let (text, ending, usage) =
            self.settings.format.read(&value).map_err(|problem| self.failed(&problem))?;
        // A server could return the key in its answer, which is stored.
        Ok(Reply { text: self.redactor.text(&text).into_owned(), ending, usage, requests: 1 })
    }

    fn error(&self, error: &ureq::Error, given: Duration) -> PlannerError {
        if let ureq::Error::Timeout(_) = error {
            return PlannerError::Timeout { planner: self.name(), after: duration(given) };
        }
        if let ureq::Error::BodyExceedsLimit(_) = error {
            return self.failed("its answer is larger than 1 MiB");
        }
        self.failed(&error.to_string())
    }
}

/// An answer of a server.
struct Answer {
    status: StatusCode,
    /// The pause that the server demands.
    pause: Option<Duration>,
    body: Vec<u8>,
}

impl Answer {
    /// Returns the pause after which the request may be repeated; `None` if repeating it is useless.
    fn pause(&self) -> Option<Duration> {
        let is_passing = matches!(self.status.as_u16(), 429 | 500 | 502 | 503 | 504 | 529);
        is_passing.then(|| self.pause.unwrap_or(PAUSE))
    }
}

impl Planner for HttpModel {
    fn name(&self) -> String {
        format!("{} at {}", self.settings.model, self.host)
    }

    fn ask(&self, request: &Request<'_>) -> Result<Reply, PlannerError> {
        let body = self.settings.format.body(&self.settings.model, request).to_string();
        let mut requests = 0;
        loop {
            requests += 1;
            let sent = self.send(body.as_bytes(), request.time_left());
            let answer = sent.map_err(|error| self.error(&error, request.limit))?;
            match answer.pause() {
                Some(pause) if requests <= MAX_RETRIES && pause < request.time_left() => thread::sleep(pause),
                _ => return self.read(&answer).map(|reply| Reply { requests, ..reply }),
            }
        }
    }
}

fn is_loopback(host: &str) -> bool {
    let address = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || address.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

/// Returns the certificates of a text in PEM.
fn roots(pem: &[u8]) -> Result<RootCerts, InvalidModel> {
    let items = parse_pem(pem).collect::<Result<Vec<_>, _>>().map_err(|_| InvalidModel::Certificates)?;
    let certificate =
        |item| if let PemItem::Certificate(certificate) = item { Some(certificate) } else { None };
    let own: Vec<Certificate<'static>> = items.into_iter().filter_map(certificate).collect();
    if own.is_empty() { Err(InvalidModel::Certificates) } else { Ok(RootCerts::new_with_certs(&own)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(url: &str, key: Option<&str>) -> HttpSettings {
        HttpSettings {
            url: url.to_owned(),
            model: "m".to_owned(),
            key: key.map(str::to_owned),
            ..HttpSettings::default()
        }
    }

    #[test]
    fn a_key_does_not_travel_in_the_clear() {
        for (url, is_valid) in [
            ("https://models.example.org/v1", true),
            ("http://127.0.0.1:8080/v1", true),
            ("http://[::1]:8080", true),
            ("http://localhost", true),
            ("http://models.example.org", false),
            ("https://user:pass@models.example.org", false),
            ("ftp://models.example.org", false),
            ("models.example.org", false),
            ("", false),
        ] {
            assert_eq!(HttpModel::new(settings(url, Some("a-long-key"))).is_ok(), is_valid, "{url}");
        }
        assert!(HttpModel::new(settings("http://models.example.org", None)).is_ok());
    }

    #[test]
    fn an_address_is_whole_or_the_beginning_of_one() {
        let whole = |format: WireFormat, url| format.endpoint(url);
        for url in ["https://a.org/v1", "https://a.org/v1/", "https://a.org/v1/chat/completions"] {
            assert_eq!(whole(WireFormat::OpenAi, url), "https://a.org/v1/chat/completions");
        }
        for url in ["https://a.org", "https://a.org/v1", "https://a.org/v1/messages"] {
            assert_eq!(whole(WireFormat::Anthropic, url), "https://a.org/v1/messages");
        }
    }

    #[test]
    fn own_certificates_are_pem() {
        let wrong =
            HttpSettings { own_certificates: Some(b"no".to_vec()), ..settings("https://a.org", None) };
        assert!(matches!(HttpModel::new(wrong), Err(InvalidModel::Certificates)));
    }
}
