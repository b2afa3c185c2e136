//! Access control of the port: pages in a browser are refused, and programs need the token.

use std::net::SocketAddr;

use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, ORIGIN};
use hyper::{Method, Uri};
use sha2::{Digest, Sha256};

/// The header in which browsers report that a request comes from another site.
const FETCH_SITE: &str = "sec-fetch-site";

/// The result of checking a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    Pass,
    /// The token is missing or wrong.
    NoToken,
    /// No client of this server sends such a request.
    Refused(&'static str),
}

/// Checks requests before anything else reads them.
#[derive(Debug)]
pub(super) struct Guard {
    /// Values of `Host` that stand for this server.
    hosts: Vec<String>,
    token: [u8; 32],
}

impl Guard {
    pub(super) fn new(address: SocketAddr, token: &str) -> Self {
        let port = address.port();
        // On a loopback address clients use any of its names.
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        Self { hosts, token: Sha256::digest(token).into() }
    }

    /// Checks a request. Its host and origin come first, so that a page cannot find out whether it guessed the token.
    pub(super) fn look(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict {
        // A page can let its host name resolve to this machine (DNS rebinding), but `Host` still has the page's name.
        if !self.is_own_host(uri, headers) {
            return Verdict::Refused("the request is for another host");
        }
        if !self.is_own_origin(headers) {
            return Verdict::Refused("the request comes from a page of another origin");
        }
        if !self.has_token(headers) {
            return Verdict::NoToken;
        }
        // Browsers let pages send other content types without asking the server first.
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
        // Programs other than browsers send no `Origin`.
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
        // Hashes are compared, so that the time of the comparison reveals nothing about the token.
        let given: [u8; 32] = Sha256::digest(token).into();
        scheme.eq_ignore_ascii_case("bearer") && given == self.token
    }
}

fn is_json(value: &str) -> bool {
    value.split(';').next().is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
}

/// Returns the value of a header that occurs exactly once.
fn one<'h>(headers: &'h HeaderMap, name: &HeaderName) -> Option<&'h str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
