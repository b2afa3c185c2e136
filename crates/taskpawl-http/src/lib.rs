//! HTTP on a port of this machine, for holders of a token only.
//!
//! [`Listener`] accepts connections and passes each request to a [`Service`]. A service asks its [`Guard`] first: whether the request is
//! for this server, whether it comes from a page of another origin, and which token it bears. The crate knows no routes.

mod answer;
mod guard;
mod listener;
mod mount;
mod pending;

pub use answer::{Answer, body_of, plain};
pub use guard::{Guard, StoredTokens, TokenHash, Verdict, token_hash};
pub use listener::{ListenError, Listener, Service, new_token};
pub use mount::Mount;
pub use pending::{HEAD_TIMEOUT, MAX_PENDING, Place};
