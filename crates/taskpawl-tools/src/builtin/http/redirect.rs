//! Requests that follow redirects.

use ureq::http::header::{CONTENT_TYPE, HeaderMap, HeaderName, LOCATION};
use ureq::http::{Method, Request, Response, StatusCode, Uri};

use super::target::Target;

/// Most redirects that are followed.
pub(super) const MAX_REDIRECTS: usize = 10;

/// Headers that are also sent to another host. Any other header may contain a secret for the first host.
const HARMLESS: &[&str] = &[
    "accept",
    "accept-language",
    "content-language",
    "content-type",
    "idempotency-key",
    "range",
    "user-agent",
];

/// Request that can be sent several times.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) headers: HeaderMap,
    pub(super) body: Option<Vec<u8>>,
}

impl Hop {
    /// Returns the request without its body.
    pub(super) fn head(&self) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = self.headers.clone();
        request
    }

    /// Returns the next request and its target if a response redirects. The error describes an invalid redirect.
    pub(super) fn next<T>(&self, response: &Response<T>) -> Result<Option<(Self, Target)>, String> {
        let is_redirect = matches!(
            response.status(),
            StatusCode::MOVED_PERMANENTLY
                | StatusCode::FOUND
                | StatusCode::SEE_OTHER
                | StatusCode::TEMPORARY_REDIRECT
                | StatusCode::PERMANENT_REDIRECT
        );
        let location = response.headers().get(LOCATION).filter(|_| is_redirect);
        let Some(location) = location else { return Ok(None) };
        let location = escaped(location.as_bytes());
        let uri = join(&self.uri, &location);
        let uri = uri.ok_or_else(|| format!("it redirects to `{location}`, which is not a valid URL"))?;
        let new = Target::of(&uri).map_err(|problem| format!("it redirects to a URL that {problem}"))?;
        let mut next = Self { uri, ..self.clone() };
        if self.uri.scheme() != next.uri.scheme() || Target::of(&self.uri).as_ref() != Ok(&new) {
            next.headers = self.headers.iter().filter(|(name, _)| is_harmless(name)).map(owned).collect();
        }
        let keeps_method =
            matches!(response.status(), StatusCode::TEMPORARY_REDIRECT | StatusCode::PERMANENT_REDIRECT);
        // A redirect other than 307 and 308 turns every method but `HEAD` into a `GET` without a body.
        if !keeps_method && !matches!(self.method, Method::GET | Method::HEAD) {
            next.method = Method::GET;
            next.body = None;
            next.headers.remove(CONTENT_TYPE);
            next.headers.remove("idempotency-key");
        }
        Ok(Some((next, new)))
    }
}

fn is_harmless(name: &HeaderName) -> bool {
    HARMLESS.contains(&name.as_str())
}

fn owned<T: Clone>((name, value): (&HeaderName, &T)) -> (HeaderName, T) {
    (name.clone(), value.clone())
}

/// Returns a header as text that is valid in a URL.
fn escaped(location: &[u8]) -> String {
    use std::fmt::Write;

    let mut text = String::new();
    for byte in location.trim_ascii() {
        if byte.is_ascii_graphic() {
            text.push(char::from(*byte));
        } else {
            let _ = write!(text, "%{byte:02X}");
        }
    }
    text
}

/// Resolves a relative reference against the URL that it came from.
fn join(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    let (scheme, authority) = (base.scheme_str()?, base.authority()?);
    let head = reference.split(['/', '?']).next().unwrap_or_default();
    let absolute = if head.contains(':') {
        reference.to_owned()
    } else if reference.starts_with("//") {
        format!("{scheme}:{reference}")
    } else if reference.starts_with('/') {
        format!("{scheme}://{authority}{reference}")
    } else if reference.is_empty() {
        return Some(base.clone());
    } else if reference.starts_with('?') {
        format!("{scheme}://{authority}{}{reference}", base.path())
    } else {
        let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
        format!("{scheme}://{authority}{}", without_dots(&format!("{directory}/{reference}")))
    };
    absolute.parse().ok().filter(|uri: &Uri| uri.scheme().is_some())
}

/// Resolves `.` and `..` in a path with an optional query.
fn without_dots(path: &str) -> String {
    let (path, query) = path.find('?').map_or((path, ""), |at| path.split_at(at));
    let mut segments: Vec<&str> = Vec::new();
    for segment in path.split('/').skip(1) {
        match segment {
            "." => {}
            ".." => {
                segments.pop();
            }
            _ => segments.push(segment),
        }
    }
    if path.ends_with("/.") || path.ends_with("/..") {
        segments.push("");
    }
    format!("/{}{query}", segments.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_are_resolved() {
        let base = Uri::from_static("http://a.example:8080/b/c/d?q");
        for (reference, expected) in [
            ("https://x.example/y#z", Some("https://x.example/y")),
            ("//x.example/y", Some("http://x.example/y")),
            ("/y", Some("http://a.example:8080/y")),
            ("", Some("http://a.example:8080/b/c/d?q")),
            ("?y", Some("http://a.example:8080/b/c/d?y")),
            ("y", Some("http://a.example:8080/b/c/y")),
            ("./y?z=..", Some("http://a.example:8080/b/c/y?z=..")),
            ("../y", Some("http://a.example:8080/b/y")),
            ("../../../y", Some("http://a.example:8080/y")),
            ("..", Some("http://a.example:8080/b/")),
            ("y:z", None),
            ("http://", None),
            (&escaped("/ä b".as_bytes()), Some("http://a.example:8080/%C3%A4%20b")),
        ] {
            let joined = join(&base, reference).map(|uri| uri.to_string());
            assert_eq!(joined.as_deref(), expected, "{reference}");
        }
    }
}
