//! A plan as an MCP server: the state that its connections share.

use std::sync::Arc;

use taskpawl::Taskpawl;
use taskpawl::model::rules::Means;
use taskpawl::model::task::ActorKind;
use taskpawl::tools::{Registry, RegistryError};

use super::options::ServerOptions;
use super::runs::Runs;
use super::subscriptions::Subscriptions;

/// A plan as an MCP server.
///
/// Cheap to clone: all connections share one.
#[derive(Debug, Clone)]
pub struct McpServer {
    pub(super) inner: Arc<Inner>,
    /// Subscriptions of the connection's client, in the era with sessions; `None` for single requests.
    pub(super) subscriptions: Option<Arc<Subscriptions>>,
}

/// The parts that all connections share.
#[derive(Debug)]
pub(super) struct Inner {
    plans: Taskpawl,
    options: ServerOptions,
    runs: Arc<Runs>,
    /// Tools of the sets.
    pub(super) others: Registry,
}

impl McpServer {
    /// Returns a server of a plan. Values from its clients have the origin of `plans`, which should be
    /// [`Origin::Mcp`](taskpawl::model::task::Origin::Mcp). The clients act as agents, regardless of the actor kind of
    /// `plans` and of the names they give.
    ///
    /// # Errors
    /// Two tools of the sets have the same name, or the schema of a tool is invalid.
    #[expect(clippy::needless_pass_by_value, reason = "a server takes its plan over")]
    pub fn new(plans: Taskpawl, options: ServerOptions) -> Result<Self, RegistryError> {
        let mut others = Registry::new();
        for tool in options.sets.iter().flat_map(|set| &set.tools) {
            others.register(Arc::clone(tool))?;
        }
        let plans = plans.acting_as_kind(ActorKind::Agent);
        Ok(Self {
            inner: Arc::new(Inner { plans, options, runs: Arc::default(), others }),
            subscriptions: None,
        })
    }

    pub(super) fn plans(&self) -> &Taskpawl {
        &self.inner.plans
    }

    pub(super) fn options(&self) -> &ServerOptions {
        &self.inner.options
    }

    /// Returns the tools and resources of this server's runs.
    pub(super) fn means(&self) -> Means {
        self.options().means(self.plans())
    }

    pub(super) fn runs(&self) -> &Arc<Runs> {
        &self.inner.runs
    }

    /// Asks every run of this server to stop. The first request lets running calls end; the second kills them.
    pub fn stop_runs(&self) {
        self.runs().stop_all();
    }

    /// Waits until all runs of this server have ended. No run can be started afterwards.
    pub async fn wait_for_runs(&self) {
        self.runs().wait().await;
    }
}

/// Runs blocking work on a thread for it. A panic continues in the caller.
pub(super) async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(value) => value,
        Err(error) if error.is_panic() => std::panic::resume_unwind(error.into_panic()),
        // The runtime is shutting down, so nothing waits for the answer.
        Err(_) => std::future::pending().await,
    }
}
