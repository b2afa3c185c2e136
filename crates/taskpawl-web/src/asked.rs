use crate::request::Query;
use crate::routes::Target;
use crate::scope::Scope;

/// A request whose token was accepted.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) target: Target,
    /// The value of `{}` in the path.
    pub(crate) value: String,
    pub(crate) query: Query,
    pub(crate) scope: Scope,
    /// The beginning of the hash of the token, which names it in `taskpawl token list`.
    pub(crate) token: String,
}
