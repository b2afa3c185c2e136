use std::convert::Infallible;

use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt as _, Full, LengthLimitError, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::{Response, StatusCode};

/// An answer to a request.
pub type Answer = Response<BoxBody<Bytes, Infallible>>;

/// Returns an answer with a plain text.
pub fn plain(status: StatusCode, text: &'static str) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from_static(text.as_bytes())).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    answer
}

/// Reads the body of a request of at most `max_bytes`.
///
/// # Errors
/// The answer to a body that is larger, for which `too_large` is the text, or that broke off.
pub async fn body_of(
    body: Incoming,
    max_bytes: usize,
    too_large: &'static str,
) -> Result<Bytes, Box<Answer>> {
    let refused = match Limited::new(body, max_bytes).collect().await {
        Ok(body) => return Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => plain(StatusCode::PAYLOAD_TOO_LARGE, too_large),
        Err(_) => plain(StatusCode::BAD_REQUEST, "the request broke off"),
    };
    Err(Box::new(refused))
}
