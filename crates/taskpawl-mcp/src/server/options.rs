use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use taskpawl::model::{AbsentTools, CommandLine, Means, PlanAccess};
use taskpawl::tools::Tool;
use taskpawl::{RunOptions, Taskpawl};

/// How long a claim lasts unless its holder renews it.
const LEASE: Duration = Duration::from_mins(30);

/// What a server offers, and how its runs go.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// Only tools that read: nothing is written, claimed or run.
    pub read_only: bool,
    /// Where the plan is that of a call which this program belongs to: what that call may do. Then there is what looks at the plan
    /// and, with [`PlanAccess::Add`], what adds tasks to it; nothing is claimed, decided or run.
    pub within: Option<PlanAccess>,
    /// Whether clients are asked what runs ask before they go on, where they can pass a question on to a person.
    pub approve_elicited: bool,
    /// How long a claim lasts where nobody says.
    pub lease: Duration,
    /// How runs go, but for what the caller says.
    pub run: RunOptions,
    /// What stands before the slash in the names of tools that a run finds when it needs them: these are missing to nobody.
    pub found_later: BTreeSet<String>,
    /// What is known of tools that are not there.
    pub absent: Option<Arc<dyn AbsentTools>>,
    /// The flags of commands that a person is asked to run: those that name the store of the plan.
    pub line: CommandLine,
    /// Whether it has the tools, prompts and resources of the plan.
    pub has_plan: bool,
    /// Tools, prompts and resources beside those of the plan.
    pub sets: Vec<ToolSet>,
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            within: None,
            approve_elicited: false,
            lease: LEASE,
            run: RunOptions::default(),
            found_later: BTreeSet::new(),
            absent: None,
            line: CommandLine::default(),
            has_plan: true,
            sets: Vec::new(),
        }
    }
}

impl ServerOptions {
    /// Returns what runs of a server of `plans` have.
    pub(super) fn means(&self, plans: &Taskpawl) -> Means {
        Means {
            tools: Some(plans.engine().tools().names().map(str::to_owned).collect()),
            found_later: self.found_later.clone(),
            capacities: self.run.resources.clone(),
            jobs: None,
            absent: self.absent.clone(),
        }
    }

    /// Returns whether nothing is claimed by way of the server, decided or run.
    pub(super) fn claims_nothing(&self) -> bool {
        self.read_only || self.within.is_some()
    }
}

/// Tools that a server offers beside those of the plan, with the prompts that say how they are used.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    /// The tools; their names are unique among all of a server.
    pub tools: Vec<Arc<dyn Tool>>,
    /// The prompts.
    pub prompts: Vec<PromptText>,
    /// What can be read.
    pub resources: Vec<ResourceText>,
}

/// A text that can be read, as it is at that time.
#[derive(Clone)]
pub struct ResourceText {
    /// Its address, unique among all of a server.
    pub uri: String,
    /// Its name.
    pub name: String,
    /// What it is.
    pub description: String,
    /// Returns the text.
    pub read: Arc<dyn Fn() -> String + Send + Sync>,
}

impl fmt::Debug for ResourceText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ResourceText")
            .field("uri", &self.uri)
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// A prompt without arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromptText {
    /// Its name, unique among all of a server.
    pub name: String,
    /// What it is for.
    pub description: String,
    /// What it says.
    pub text: String,
}
