//! Sends calls of a run to workers through a Restate server.
//!
//! Only the ingress and the admin interface of the server are used, over plain HTTP. Each worker is a service of its own, so that the
//! coordinator knows the worker of each call. The idempotency key of a request is the ticket of its call: a request that is repeated
//! joins the call that the first one began.

mod envelope;
mod executor;
mod http;
mod service;
mod silence;

pub use envelope::{Envelope, EnvelopeError, KeyError, MAX_AGE, SigningKey};
pub use executor::{RestateExecutor, RestateOptions};
pub use http::HttpError;
pub use service::{MAX_WINDOW, PROTOCOL, Worker, kept_service, register, service_name, workers};
pub use silence::Notice;
