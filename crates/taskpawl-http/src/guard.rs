//! Access control of the port: pages of other origins are refused, and data needs a token.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::header::{
    AUTHORIZATION, CONTENT_TYPE, HOST, HeaderMap, HeaderName, HeaderValue, ORIGIN, WWW_AUTHENTICATE,
};
use hyper::{Method, StatusCode, Uri};
use sha2::{Digest, Sha256};

use crate::answer::{Answer, plain};
use crate::pending::Place;

/// The header in which browsers report that a request comes from another site.
const FETCH_SITE: &str = "sec-fetch-site";

/// The result of checking a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict<S> {
    /// The request has a token with this scope.
    Pass(S),
    /// The token is missing or wrong.
    NoToken,
    /// No client of this server sends such a request.
    Refused(&'static str),
}

impl<S> Verdict<S> {
    /// Returns the scope of a request that passed, and counts its connection as one of a token's holder.
    ///
    /// # Errors
    /// The answer to a refused request, or to one on a connection too many.
    pub fn admit(self, place: &Place) -> Result<S, Box<Answer>> {
        let refused = match self {
            // Counted only after the token was checked, so that strangers cannot use up these connections.
            Self::Pass(scope) if place.authorize() => return Ok(scope),
            Self::Pass(_) => plain(
                StatusCode::SERVICE_UNAVAILABLE,
                "too many connections: close some, or use one for several requests",
            ),
            Self::NoToken => without_token(),
            Self::Refused(why) => plain(StatusCode::FORBIDDEN, why),
        };
        Err(Box::new(refused))
    }
}

fn without_token() -> Answer {
    let text = "the token is missing or wrong: send `Authorization: Bearer TOKEN`";
    let mut answer = plain(StatusCode::UNAUTHORIZED, text);
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    answer
}

/// The SHA-256 of a token.
pub type TokenHash = [u8; 32];

/// Returns the hash of a token, as it is stored and compared.
pub fn token_hash(token: &str) -> TokenHash {
    Sha256::digest(token).into()
}

/// Tokens that are kept outside of the server and may be created and revoked while it runs: returns the scope of a hash.
#[derive(Clone)]
pub struct StoredTokens<S>(pub Arc<ScopeOf<S>>);

type ScopeOf<S> = dyn Fn(&TokenHash) -> Option<S> + Send + Sync;

impl<S> fmt::Debug for StoredTokens<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("StoredTokens")
    }
}

/// Checks requests before anything else reads them. Each token has a scope of type `S`.
#[derive(Debug)]
pub struct Guard<S> {
    /// Values of `Host` that stand for this server.
    hosts: Vec<String>,
    tokens: Vec<(TokenHash, S)>,
    stored: Option<StoredTokens<S>>,
}

impl<S: Clone> Guard<S> {
    /// Creates the guard of a server at `address`, with its tokens and their scopes.
    pub fn new<'t>(address: SocketAddr, tokens: impl IntoIterator<Item = (&'t str, S)>) -> Self {
        let port = address.port();
        // On a loopback address clients use any of its names.
        let mut hosts = vec![address.to_string()];
        if address.ip().is_loopback() {
            hosts.extend([format!("localhost:{port}"), format!("127.0.0.1:{port}"), format!("[::1]:{port}")]);
        }
        let hashed = |(token, scope): (&str, S)| (token_hash(token), scope);
        Self { hosts, tokens: tokens.into_iter().map(hashed).collect(), stored: None }
    }

    /// Also accepts tokens that are kept elsewhere.
    #[must_use]
    pub fn with_stored(self, stored: Option<StoredTokens<S>>) -> Self {
        Self { stored, ..self }
    }

    /// Returns whether the token of a request that was accepted is still valid. Long answers ask from time to time.
    pub fn is_current(&self, headers: &HeaderMap) -> bool {
        self.scope_of(headers).is_some()
    }

    /// Checks a request. Its host and origin come first, so that a page cannot find out whether it guessed the token.
    pub fn look(&self, method: &Method, uri: &Uri, headers: &HeaderMap) -> Verdict<S> {
        if let Err(why) = self.check_site(uri, headers) {
            return Verdict::Refused(why);
        }
        let Some(scope) = self.scope_of(headers) else { return Verdict::NoToken };
        // Browsers let pages send other content types without asking the server first.
        let is_json = one(headers, &CONTENT_TYPE).is_some_and(is_json);
        if method == Method::POST && !is_json {
            return Verdict::Refused("the content type is not `application/json`");
        }
        Verdict::Pass(scope)
    }

    /// Checks that a request is for this server and comes from no page of another origin, as for files without data, which need no token.
    ///
    /// # Errors
    /// The reason for refusing the request.
    pub fn check_site(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), &'static str> {
        // A page can let its host name resolve to this machine (DNS rebinding), but `Host` still has the page's name.
        if !self.is_own_host(uri, headers) {
            return Err("the request is for another host");
        }
        if !self.is_own_origin(headers) {
            return Err("the request comes from a page of another origin");
        }
        Ok(())
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

    /// Returns the first 8 characters of the hash of a token, in hexadecimal. They name it without telling it.
    pub fn token_name(&self, headers: &HeaderMap) -> Option<String> {
        let (_, token) = one(headers, &AUTHORIZATION)?.split_once(' ')?;
        let [one, two, three, four, ..] = token_hash(token);
        Some(format!("{:08x}", u32::from_be_bytes([one, two, three, four])))
    }

    fn scope_of(&self, headers: &HeaderMap) -> Option<S> {
        let (scheme, token) = one(headers, &AUTHORIZATION)?.split_once(' ')?;
        // Hashes are compared, so that the time of the comparison reveals nothing about the token.
        let given = token_hash(token);
        if !scheme.eq_ignore_ascii_case("bearer") {
            return None;
        }
        let own = self.tokens.iter().find(|(hash, _)| *hash == given).map(|(_, scope)| scope.clone());
        own.or_else(|| self.stored.as_ref().and_then(|stored| stored.0(&given)))
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
