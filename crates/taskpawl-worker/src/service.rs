//! The service of a worker: one handler runs a call, another one stops it.

use std::sync::Arc;

use restate_sdk::prelude::*;
use restate_sdk::service::Discoverable;
use restate_sdk::service::macro_support::service_definition;
use taskpawl::{LocalExecutor, SentCall, SentEnd, Source as _, SystemSource, Ticket};
use taskpawl_restate::{Envelope, service_name};

/// Runs calls of trusted coordinators.
#[derive(Debug)]
pub(crate) struct CallService {
    executor: LocalExecutor,
    pool: String,
    name: String,
    trusted: Vec<String>,
    /// Differs in each process, so that a journal tells whether another one has begun a call.
    incarnation: String,
}

impl CallService {
    pub(crate) fn new(executor: LocalExecutor, pool: String, trusted: Vec<String>) -> Self {
        let name = service_name(&pool, &executor.offer().worker);
        Self { executor, pool, name, trusted, incarnation: SystemSource.new_id() }
    }

    pub(crate) fn executor(&self) -> &LocalExecutor {
        &self.executor
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn pool(&self) -> &str {
        &self.pool
    }

    #[expect(clippy::result_large_err, reason = "the end of a refused call, which is sent at once")]
    fn opened(&self, envelope: &Envelope) -> Result<SentCall, SentEnd> {
        let opened = envelope.open(&self.name, &self.trusted, SystemSource.now());
        let worker = &self.executor.offer().worker;
        opened.map_err(|error| {
            SentEnd::refused("denied", format!("worker `{worker}` refuses the call: {error}"), worker)
        })
    }
}

/// The handlers of a worker. The form with a trait is deprecated, but only its generated types let a program choose the name of the
/// service when it starts.
#[restate_sdk::service]
pub(crate) trait CallHandlers {
    /// Runs a call, or joins it.
    async fn call(envelope: Json<Envelope>) -> Result<Json<SentEnd>, HandlerError>;
    /// Ends a call. The request of the call itself gets its end.
    async fn stop(ticket: Json<Ticket>) -> Result<(), HandlerError>;
}

/// The service as the SDK binds it.
pub(crate) struct Bound(pub(crate) Arc<CallService>);

impl Bound {
    /// Returns the service under the name of its worker.
    pub(crate) fn definition(self) -> Result<ServiceDefinition, Box<dyn std::error::Error>> {
        let name = self.0.name().to_owned();
        let mut discovery = <ServeCallHandlers<Self> as Discoverable>::discover();
        discovery.name = name.parse()?;
        Ok(service_definition(self.serve(), discovery))
    }
}

impl CallHandlers for Bound {
    async fn call(&self, ctx: Context<'_>, envelope: Json<Envelope>) -> Result<Json<SentEnd>, HandlerError> {
        let call = match self.0.opened(&envelope.into_inner()) {
            Ok(call) => call,
            Err(refused) => return Ok(Json(refused)),
        };
        let own = self.0.incarnation.clone();
        let invocation = ctx.invocation_id().to_owned();
        // The journal tells a later delivery that a process has begun the call, and which one.
        let began = ctx.run(|| async move { Ok(own) }).name("start").await?;
        let has_begun = began != self.0.incarnation;
        let service = Arc::clone(&self.0);
        let run = move || async move {
            let end = service.executor.run(call, &invocation, has_begun).await;
            Ok(Json(end))
        };
        Ok(ctx.run(run).name("tool").await?)
    }

    async fn stop(&self, _ctx: Context<'_>, ticket: Json<Ticket>) -> Result<(), HandlerError> {
        self.0.executor.kill(&ticket.into_inner());
        Ok(())
    }
}
