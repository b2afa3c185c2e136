//! Fuzzing of the parsers for URLs, hosts and redirects.

#[cfg(test)]
mod tests;

use ureq::http::header::LOCATION;
use ureq::http::{HeaderMap, HeaderValue, Method, Response, Uri};

use super::access::HttpAccess;
use super::redirect::Hop;
use super::target::{Host, Target};

pub(crate) fn url(text: &str) -> bool {
    let host = Host::parse(text);
    if let Some(host) = &host {
        assert_eq!(
            Host::parse(&host.to_string()).as_ref(),
            Some(host),
            "a host is another when it is read again"
        );
    }
    let access = HttpAccess::only([text]).is_ok() | HttpAccess::public().narrowed_to([text]).is_ok();
    let target = text.parse::<Uri>().ok().and_then(|uri| Target::of(&uri).ok());
    host.is_some() | access | target.is_some() | redirect(text)
}

/// Follows a redirect and checks that its target agrees with its URL.
fn redirect(location: &str) -> bool {
    let uri = Uri::from_static("http://a.example:8080/b/c?d");
    let headers = HeaderMap::from_iter([(LOCATION, HeaderValue::from_static("x"))]);
    let hop = Hop { method: Method::POST, uri, headers, body: Some(b"x".to_vec()) };
    let Ok(location) = HeaderValue::from_bytes(location.as_bytes()) else { return false };
    let mut response = Response::new(());
    *response.status_mut() = ureq::http::StatusCode::FOUND;
    response.headers_mut().insert(LOCATION, location);
    let Ok(Some((next, target))) = hop.next(&response) else { return false };
    assert_eq!(Target::of(&next.uri).as_ref(), Ok(&target));
    assert!(next.body.is_none() && next.method == Method::GET);
    true
}
