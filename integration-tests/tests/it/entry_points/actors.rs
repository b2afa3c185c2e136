//! Actors of every kind, and the entry points through which they give commands.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use taskpawl::model::task::ActorKind;
use taskpawl::{Ending, Error, Manager, Taskpawl};

use crate::support::{Home, McpClient, Random};

/// The commands that all entry points have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verb {
    Claim,
    Renew,
    Release,
    Done,
    Fail,
    Retry,
    Reopen,
    Cancel,
    Skip,
}

pub(super) const VERBS: [Verb; 9] = [
    Verb::Claim,
    Verb::Renew,
    Verb::Release,
    Verb::Done,
    Verb::Fail,
    Verb::Retry,
    Verb::Reopen,
    Verb::Cancel,
    Verb::Skip,
];

impl Verb {
    fn word(self) -> &'static str {
        match self {
            Self::Claim => "claim",
            Self::Renew => "renew",
            Self::Release => "release",
            Self::Done => "done",
            Self::Fail => "fail",
            Self::Retry => "retry",
            Self::Reopen => "reopen",
            Self::Cancel => "cancel",
            Self::Skip => "skip",
        }
    }
}

/// The entry point of an actor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Way {
    /// The command line with `--actor`, which makes the actor an agent.
    Cli,
    /// MCP, which makes the actor an agent.
    Mcp,
    /// The library, which sets the kind.
    Library(ActorKind),
}

impl Way {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Cli => "cli",
            Self::Mcp => "mcp",
            Self::Library(_) => "library",
        }
    }
}

/// An actor. Several share one name and differ only in their kind.
#[derive(Debug, Clone)]
pub(super) struct Actor {
    pub(super) way: Way,
    pub(super) name: String,
}

impl Actor {
    pub(super) fn draw(random: &mut Random) -> Self {
        let ways = [
            Way::Cli,
            Way::Mcp,
            Way::Library(ActorKind::Person),
            Way::Library(ActorKind::Program),
            Way::Library(ActorKind::Agent),
        ];
        let names = ["ann", "o'neil `x` y"];
        Self { way: ways[random.below(ways.len())], name: names[random.below(names.len())].to_owned() }
    }

    pub(super) fn kind(&self) -> ActorKind {
        match self.way {
            Way::Cli | Way::Mcp => ActorKind::Agent,
            Way::Library(kind) => kind,
        }
    }
}

/// The outcome of a command.
#[derive(Debug, Clone)]
pub(super) enum Outcome {
    Accepted,
    /// Refused, with the whole text of the refusal.
    Refused(String),
}

impl Outcome {
    pub(super) fn is_accepted(&self) -> bool {
        matches!(self, Self::Accepted)
    }
}

/// One store with every entry point to it.
#[derive(Debug)]
pub(super) struct World<'h> {
    home: &'h Home,
    mcp: Option<McpClient>,
    library: BTreeMap<(ActorKind, String), Manager>,
}

impl<'h> World<'h> {
    pub(super) fn new(home: &'h Home) -> Self {
        Self { home, mcp: None, library: BTreeMap::new() }
    }

    /// Runs a command of an actor through its entry point.
    pub(super) fn act(&mut self, actor: &Actor, verb: Verb, id: &str) -> Outcome {
        match actor.way {
            Way::Cli => self.by_cli(&actor.name, verb, id),
            Way::Mcp => self.by_mcp(&actor.name, verb, id),
            Way::Library(kind) => self.by_library(kind, &actor.name, verb, id),
        }
    }

    fn by_cli(&self, name: &str, verb: Verb, id: &str) -> Outcome {
        let run = self.home.run(&[verb.word(), id, "--actor", name]);
        match run.code {
            Some(0) => Outcome::Accepted,
            Some(6 | 7) => Outcome::Refused(run.stderr),
            _ => panic!("{verb:?} {id} by {name}: {run:?}"),
        }
    }

    fn by_mcp(&mut self, name: &str, verb: Verb, id: &str) -> Outcome {
        let home = self.home;
        let client = self.mcp.get_or_insert_with(|| McpClient::start(home.program(&["mcp"])));
        let answer = client.call("task_update", &json!({"id": id, "action": verb.word(), "agent": name}));
        if answer["isError"] == true {
            Outcome::Refused(answer["structuredContent"]["error"].to_string())
        } else {
            Outcome::Accepted
        }
    }

    fn by_library(&mut self, kind: ActorKind, name: &str, verb: Verb, id: &str) -> Outcome {
        const LEASE: Duration = Duration::from_mins(30);
        let home = self.home;
        let open = || {
            let plans = Taskpawl::builder(home.store()).actor(name).actor_kind(kind).open().unwrap();
            plans.manager().clone()
        };
        let manager = self.library.entry((kind, name.to_owned())).or_insert_with(open);
        let ids = [id.to_owned()];
        let done = |result: Result<_, Error>| result.map(|_: Vec<_>| ());
        let ended = match verb {
            Verb::Claim => manager.claim(id, LEASE).map(drop),
            Verb::Renew => manager.renew(id, LEASE).map(drop),
            Verb::Release => done(manager.release(&ids)),
            Verb::Done => done(manager.done(&ids, Ending::default())),
            Verb::Fail => done(manager.fail(&ids, Ending::default())),
            Verb::Retry => done(manager.retry(&ids, false)),
            Verb::Reopen => done(manager.reopen(&ids, false)),
            Verb::Cancel => done(manager.cancel(&ids, None)),
            Verb::Skip => done(manager.skip(&ids, None)),
        };
        match ended {
            Ok(()) => Outcome::Accepted,
            Err(error @ Error::Refused(_)) => {
                let hint = error.hint().map(|hint| Value::from(hint.to_string()).to_string());
                Outcome::Refused(format!("{error} {}", hint.unwrap_or_default()))
            }
            Err(error) => panic!("{verb:?} {id} by {name}: {error}"),
        }
    }
}
