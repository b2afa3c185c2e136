//! Who gets anything from the port: pages of a browser do not, and programs only with the token.

use std::net::SocketAddr;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Uri};
use sha2::{Digest, Sha256};

/// By which browsers say that another site asks.
const FETCH_SITE: &str = "sec-fetch-site";

/// What becomes of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// It has not the token.
    NoToken,
    /// It is none that a client of ours makes.
    Refused(&'static str),
}

/// Looks at requests before anything else does.
#[derive(Debug)]
pub(super) struct Guard {
    /// What requests may call this server.
    hosts: Vec<String>,
    token: [u8; 32],
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: &str) -> Self {
        let port = address.port();
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        Self { hosts, token: Sha256::digest(token).into() }
    }

    /// Says what becomes of a request. Where it comes from is looked at first: whoever guesses tokens from a page learns nothing.
    pub(super) fn look(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        // A page of another site that has its name point to this machine still names itself.
        if !self.is_own_host(uri, headers) {
            return Verdict::Refused("the request is for another host");
        }
        if !self.is_own_origin(headers) {
            return Verdict::Refused("the request comes from a page of another origin");
        }
        if !self.has_token(headers) {
            return Verdict::NoToken;
        }
        // Pages send other types without asking first.
        let is_json = one(headers, &CONTENT_TYPE).is_some_and(is_json);
        if method == Method::POST && !is_json {
            return Verdict::Refused("the content type is not `application/json`");
        }
        Verdict::Pass
    }

    fn is_own_host(&self, uri: &Uri, headers: &HeaderMap) -> bool {
        let is_own = |host: &str| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host));
        one(headers, &HOST).is_some_and(is_own) && uri.authority().is_none_or(|named| is_own(named.as_str()))
    }

    fn is_own_origin(&self, headers: &HeaderMap) -> bool {
        let from_other_site =
            headers.get(FETCH_SITE).is_some_and(|site| site != "same-origin" && site != "none");
        if from_other_site {
            return false;
        }
        if !headers.contains_key(ORIGIN) {
            return true;
        }
        let host = one(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        host.is_some_and(|host| self.hosts.iter().any(|own| own.eq_ignore_ascii_case(host)))
    }

    fn has_token(&self, headers: &HeaderMap) -> bool {
        let Some((scheme, token)) = one(headers, &AUTHORIZATION).and_then(|said| said.split_once(' ')) else {
            return false;
        };
        // Of hashes the time that a comparison takes tells nothing about the token.
        let given: [u8; 32] = Sha256::digest(token).into();
        scheme.eq_ignore_ascii_case("bearer") && given == self.token
    }
}

fn is_json(value: &str) -> bool {
    value.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the value of a header that stands there once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
