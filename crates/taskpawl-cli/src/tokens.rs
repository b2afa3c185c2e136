//! Tokens for the page that outlive its server.
//!
//! The user's state directory, which programs cannot reach, has their hashes. A token is valid for one project until it expires.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use taskpawl::model::value::Timestamp;
use taskpawl::{Source as _, SystemSource};
use taskpawl_http::{StoredTokens, TokenHash, token_hash};
use taskpawl_web::Scope;

use crate::context::Context;
use crate::error::CliError;
use crate::grants::Project;
use crate::state_files::{change_own, change_state, read_state, state_file};

/// The largest file that is read, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Characters of the hash that name a token.
const ID: usize = 8;

/// The tokens of all projects.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Record {
    tokens: Vec<StoredToken>,
}

/// A token as it is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct StoredToken {
    project: Project,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) name: Option<String>,
    pub(crate) scope: Scope,
    pub(crate) created_at: Timestamp,
    pub(crate) expires_at: Timestamp,
    /// The SHA-256 of the token, in hexadecimal.
    hash: String,
}

impl StoredToken {
    pub(crate) fn new(project: Project, token: &str, scope: Scope, at: Timestamp, end: Timestamp) -> Self {
        let hash = hexadecimal(&token_hash(token));
        Self { project, name: None, scope, created_at: at, expires_at: end, hash }
    }

    /// Returns the beginning of the hash, which names the token.
    pub(crate) fn id(&self) -> &str {
        self.hash.get(..ID).unwrap_or_default()
    }
}

fn hexadecimal(hash: &TokenHash) -> String {
    hash.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

fn path(context: &Context) -> Result<PathBuf, CliError> {
    state_file(context, "tokens.json")
        .ok_or_else(|| CliError::usage_with("there is no place for tokens that outlive a server", "set HOME"))
}

/// Returns the tokens of this project, also those that have expired.
pub(crate) fn of_project(context: &Context) -> Result<Vec<StoredToken>, CliError> {
    let path = path(context)?;
    let record: Record =
        read_state(&path, MAX_BYTES).map_err(|source| CliError::File { action: "read", path, source })?;
    let project = Project::of(context)?;
    Ok(record.tokens.into_iter().filter(|token| token.project == project).collect())
}

/// Changes the tokens of this project, and drops those of all projects that have expired. A lock keeps two commands from undoing each
/// other's change.
pub(crate) fn change<T>(
    context: &Context,
    change: impl FnOnce(&mut Vec<StoredToken>) -> T,
) -> Result<T, CliError> {
    let path = path(context)?;
    let project = Project::of(context)?;
    let changed = change_state(&path, MAX_BYTES, |record: &mut Record| {
        let now = SystemSource.now();
        record.tokens.retain(|token| token.expires_at > now);
        change_own(&mut record.tokens, |token| token.project == project, change)
    });
    changed.map_err(|source| CliError::File { action: "write", path, source })
}

/// Returns the tokens of this project for a server, which reads the file for each request with a token that it did not make itself: so
/// a revoked token is refused at once. A file that cannot be read admits no request.
pub(crate) fn for_server(
    context: &Context,
    is_read_only: bool,
) -> Result<Option<StoredTokens<Scope>>, CliError> {
    let Some(path) = state_file(context, "tokens.json") else { return Ok(None) };
    let project = Project::of(context)?;
    let find = move |hash: &TokenHash| {
        let hash = hexadecimal(hash);
        // Not the clock of tests: a caller could move it.
        let now = SystemSource.now();
        let record: Record = read_state(&path, MAX_BYTES).ok()?;
        let found = record
            .tokens
            .into_iter()
            .find(|token| token.hash == hash && token.project == project && token.expires_at > now)?;
        if is_read_only { found.scope.for_reading() } else { Some(found.scope) }
    };
    Ok(Some(StoredTokens(Arc::new(find))))
}
