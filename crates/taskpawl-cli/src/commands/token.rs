use std::process::ExitCode;
use std::time::Duration;

use serde::Serialize;
use serde_json::json;
use taskpawl::model::advice::Hint;
use taskpawl::model::value::{Timestamp, format_time};
use taskpawl::{Source as _, SystemSource};
use taskpawl_http::new_token;
use taskpawl_web::Scope;

use crate::app::App;
use crate::audit::{self, Action};
use crate::commands::parse;
use crate::error::CliError;
use crate::grants::Project;
use crate::person;
use crate::text::{Cell, Table, clean, quoted};
use crate::tokens::{self, StoredToken};

/// The longest life of a token.
const MAX_LIFE: Duration = Duration::from_hours(24 * 366);

/// Make tokens for the page that outlive its server
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Programs that read the plan again and again, such as Prometheus, need a token that a restart of `taskpawl serve` does not \
change. It is valid for this project alone, and is printed once: your state directory has its hash. A person at a terminal \
creates tokens.

Examples:
  taskpawl token create --scope read --expires 90d --name prometheus
  taskpawl token create --scope signal:deployed --expires 30d --name ci
  taskpawl token list
  taskpawl token revoke 3f2a81c0")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: TokenCommand,
}

#[derive(Debug, clap::Subcommand)]
enum TokenCommand {
    /// Create a token and print it
    Create {
        /// Rights of the token: read (the page and /metrics), act (also commands, as a program), mcp (the MCP server of
        /// `serve --mcp`, as an agent), or signal:NAME (sends the signal NAME)
        #[arg(long, value_name = "SCOPE")]
        scope: Scope,
        /// Lifetime, such as 12h or 90d, at most 366d
        #[arg(long, value_name = "DURATION", value_parser = life)]
        expires: Duration,
        /// Name for the list of tokens
        #[arg(long, value_name = "NAME", value_parser = clap::builder::NonEmptyStringValueParser::new())]
        name: Option<String>,
    },
    /// List the tokens of this project, without the tokens themselves
    List,
    /// Revoke tokens at once, also in a server that runs
    Revoke {
        /// Ids or names, as `list` prints them
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
    },
}

/// Parses a lifetime. Tokens live longer than calls, so days are a unit as well.
fn life(text: &str) -> Result<Duration, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse::<u64>().ok());
    let life = match days {
        Some(days) => Duration::from_secs(days.saturating_mul(24 * 3600)),
        None => parse::duration(text)?,
    };
    match life {
        Duration::ZERO => Err("it must be longer than nothing".to_owned()),
        life if life > MAX_LIFE => Err("a token lives 366 days at most".to_owned()),
        life => Ok(life),
    }
}

/// A token in a list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'t> {
    id: &'t str,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'t str>,
    scope: &'t Scope,
    created_at: String,
    expires_at: String,
    is_expired: bool,
}

impl<'t> Listed<'t> {
    fn of(token: &'t StoredToken, now: Timestamp) -> Self {
        Self {
            id: token.id(),
            name: token.name.as_deref(),
            scope: &token.scope,
            created_at: format_time(token.created_at),
            expires_at: format_time(token.expires_at),
            is_expired: token.expires_at <= now,
        }
    }
}

/// Creates, lists or revokes tokens.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    match &args.command {
        TokenCommand::Create { scope, expires, name } => create(app, scope, *expires, name.clone()),
        TokenCommand::List => list(app),
        TokenCommand::Revoke { ids } => revoke(app, ids),
    }
}

fn create(app: &App, scope: &Scope, life: Duration, name: Option<String>) -> Result<ExitCode, CliError> {
    person::refuse_without_person(app, "token create")?;
    let (token, now) = (new_token(), SystemSource.now());
    let mut stored = StoredToken::new(Project::of(app)?, &token, scope.clone(), now, now + life);
    stored.name = name;
    let (id, end) = (stored.id().to_owned(), format_time(stored.expires_at));
    let exists = tokens::change(app, |tokens| {
        let is_taken = stored.name.is_some() && tokens.iter().any(|other| other.name == stored.name);
        if !is_taken {
            tokens.push(stored);
        }
        is_taken
    })?;
    if exists {
        return Err(CliError::usage_with(
            "a token with this name exists",
            Hint::default().command("token revoke NAME").text(" revokes it"),
        ));
    }
    audit::record(app, Action::Token, &format!("created {id}: {scope}"))?;
    let out = app.out();
    if out.is_json {
        return out.data(&json!({"id": id, "token": token, "scope": scope, "expiresAt": end}));
    }
    out.print(format!("{token}\n"))?;
    out.remark(&format!(
        "token {id} with the rights of `{scope}` is valid until {end}; it is not shown again"
    ));
    Ok(ExitCode::SUCCESS)
}

fn list(app: &App) -> Result<ExitCode, CliError> {
    let (tokens, now) = (tokens::of_project(app)?, SystemSource.now());
    let listed: Vec<Listed<'_>> = tokens.iter().map(|token| Listed::of(token, now)).collect();
    let out = app.out();
    if out.is_json {
        return out.data(&listed);
    }
    let mut table = Table::new(0);
    for token in &listed {
        let state = if token.is_expired { "expired " } else { "until " };
        let cells = [
            token.id.to_owned(),
            token.scope.to_string(),
            format!("{state}{}", token.expires_at),
            clean(token.name.unwrap_or_default()),
        ];
        table.row(cells.iter().map(Cell::new).collect());
    }
    out.print(table.render(out.paint, out.width))?;
    if listed.is_empty() {
        out.remark("this project has no tokens that outlive a server");
    }
    Ok(ExitCode::SUCCESS)
}

fn revoke(app: &App, ids: &[String]) -> Result<ExitCode, CliError> {
    person::refuse_within_call(app, "token revoke")?;
    let is_meant = |token: &StoredToken, id: &String| token.id() == id || token.name.as_ref() == Some(id);
    let unknown = tokens::change(app, |tokens| {
        let unknown = ids.iter().find(|id| !tokens.iter().any(|token| is_meant(token, id))).cloned();
        if unknown.is_none() {
            tokens.retain(|token| !ids.iter().any(|id| is_meant(token, id)));
        }
        unknown
    })?;
    if let Some(id) = unknown {
        let hint = Hint::default().command("token list").text(" lists them");
        return Err(CliError::usage_with(format!("no token is named {}", quoted(&id)), hint));
    }
    audit::record(app, Action::Token, &format!("revoked {}", ids.join(", ")))?;
    app.out().remark("revoked");
    Ok(ExitCode::SUCCESS)
}
