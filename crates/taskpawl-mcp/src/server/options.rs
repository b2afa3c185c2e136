use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use taskpawl::model::advice::CommandLine;
use taskpawl::model::rules::{AbsentTools, Means};
use taskpawl::model::task::PlanAccess;
use taskpawl::tools::Tool;
use taskpawl::{RunOptions, Taskpawl};

/// Default duration of a claim, unless its holder renews it.
const LEASE: Duration = Duration::from_mins(30);

/// Settings of a server and of its runs.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct ServerOptions {
    /// Offers only tools that read: nothing is written, claimed or run.
    pub read_only: bool,
    /// Plan access, for a server that runs inside a call: the plan is that of the call. Tools that read are offered
    /// and, with [`PlanAccess::Add`], tools that add tasks. Nothing can be claimed, decided or run.
    pub within: Option<PlanAccess>,
    /// Passes the questions of a run on to the person at the client, if the client supports it.
    pub approve_elicited: bool,
    /// Sends no signals, because a policy leaves them to people.
    pub refuses_signals: bool,
    /// Default duration of a claim.
    pub lease: Duration,
    /// Options of runs, unless the call sets others.
    pub run: RunOptions,
    /// The parts before the slash in names of tools that tool lookup can find during a run. Such tools do not count
    /// as missing.
    pub found_later: BTreeSet<String>,
    /// Reasons why some tools are absent.
    pub absent: Option<Arc<dyn AbsentTools>>,
    /// The flags for commands that a person is asked to run. They select the store of the plan.
    pub line: CommandLine,
    /// Offers the tools, prompts and resources of the plan.
    pub has_plan: bool,
    /// Which tools of the plan are offered.
    pub offer: Offer,
    /// Tools, prompts and resources in addition to those of the plan.
    pub sets: Vec<ToolSet>,
    /// The project, for a server that started where there was none.
    pub project: Option<Arc<dyn AbsentProject>>,
}

/// The tools of the plan that a server offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Offer {
    /// All of them.
    All,
    /// Those for one worker: taking a task, looking at it, reporting on it. The plan itself cannot change.
    Work,
}

/// A project that did not exist when the server started. The methods block.
pub trait AbsentProject: fmt::Debug + Send + Sync {
    /// Called before tools that only read. Fails with a sentence for the caller if the server cannot know the plan,
    /// because another process made the project.
    fn before_reading(&self) -> Result<(), String>;

    /// Called before tools that write. Makes the project and returns a sentence about it, `None` if it was made before.
    /// Fails with a sentence for the caller if the project cannot be made from here.
    fn before_writing(&self) -> Result<Option<String>, String>;
}

impl Default for ServerOptions {
    fn default() -> Self {
        Self {
            read_only: false,
            within: None,
            approve_elicited: false,
            refuses_signals: false,
            lease: LEASE,
            run: RunOptions::default(),
            found_later: BTreeSet::new(),
            absent: None,
            line: CommandLine::default(),
            has_plan: true,
            offer: Offer::All,
            sets: Vec::new(),
            project: None,
        }
    }
}

impl ServerOptions {
    /// Returns the tools and resources for runs of a server of `plans`.
    pub(super) fn means(&self, plans: &Taskpawl) -> Means {
        Means {
            tools: Some(plans.engine().tools().names().map(str::to_owned).collect()),
            found_later: self.found_later.clone(),
            capacities: self.run.resources.clone(),
            jobs: None,
            absent: self.absent.clone(),
            given: Some(Arc::new(plans.engine().remembered_grants())),
        }
    }

    /// Returns whether claims, decisions and runs are excluded.
    pub(super) fn claims_nothing(&self) -> bool {
        self.read_only || self.within.is_some()
    }
}

/// Additional tools of a server, with prompts that explain their use.
#[derive(Debug, Clone, Default)]
pub struct ToolSet {
    /// The tools. Their names are unique within a server.
    pub tools: Vec<Arc<dyn Tool>>,
    /// Prompts that explain the tools.
    pub prompts: Vec<PromptText>,
    /// Texts that clients can read.
    pub resources: Vec<ResourceText>,
}

/// A text that clients can read. It is generated for each read.
#[derive(Clone)]
pub struct ResourceText {
    /// Its address, unique within a server.
    pub uri: String,
    /// The name that clients show.
    pub name: String,
    /// A description for clients and models.
    pub description: String,
    /// Generates the text.
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
    /// Its name, unique within a server.
    pub name: String,
    /// A description for the person who chooses it.
    pub description: String,
    /// The text that the model gets.
    pub text: String,
}
