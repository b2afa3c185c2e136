//! Hostile input at what reads URLs, hosts and redirects.

use taskpawl_fuzz::Target as Fed;
use ureq::http::header::LOCATION;
use ureq::http::{HeaderMap, HeaderValue, Method, Response, Uri};

use super::access::HttpAccess;
use super::redirect::Hop;
use super::target::{Host, Target};

const URL: Fed<'_> = Fed {
    name: "URLs, hosts and redirects",
    corpus: &[
        "http://127.0.0.1:8080/a?b#c",
        "https://example.org",
        "http://[::ffff:127.0.0.1]:80/",
        "http://0x7f.1/",
        "http://017700000001/",
        "http://2130706433",
        "http://user@host/",
        "//x.example/y",
        "/a/../b/./c?d=..",
        "?q",
        "#f",
        "http://a.example.:443/",
        "http://xn--bcher-kva.example",
        "*.example.org",
        "[::1]:443",
        "localhost:1",
        "http://1.2.3.4.5/",
        "http://256.1.1.1",
        "http://[fe80::1%25eth0]/",
        "javascript:x",
    ],
    words: &[
        "http://",
        "https://",
        "//",
        "@",
        ":",
        "[",
        "]",
        "::",
        "0x",
        "127",
        "1",
        ".",
        "..",
        "%2e",
        "%00",
        "#",
        "?",
        "\\",
        "localhost",
        "example.org",
        "65536",
        "080",
        "é",
        "xn--",
        "*.",
    ],
};

fn url(text: &str) -> bool {
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

/// Follows a redirect, whose target has to be what its URL says.
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

#[test]
fn the_corpus_is_read_or_refused() {
    URL.corpus(url);
}

#[test]
fn hostile_urls_panic_nothing() {
    URL.fuzz(url);
}
