use taskpawl::model::task::ActorKind;
use taskpawl::{Error, Manager, Taskpawl};
use tokio_util::sync::CancellationToken;

use crate::answer::Problem;
use crate::live::Hub;
use crate::options::PageOptions;
use crate::outlook::Outlooks;

/// Everything that the screens read.
pub(crate) struct Page {
    /// Gives commands as the program `page`.
    pub(crate) plans: Taskpawl,
    /// Reads for the person at the browser, so that advice is what a person may do. Nothing is written through it.
    pub(crate) reader: Manager,
    pub(crate) options: PageOptions,
    pub(crate) hub: Hub,
    pub(crate) outlooks: Outlooks,
}

impl Page {
    /// Reads the plan, and follows it until `stop` fires.
    pub(crate) fn new(
        plans: &Taskpawl,
        options: PageOptions,
        stop: CancellationToken,
    ) -> Result<Self, Error> {
        let plans = plans.acting_as("page").acting_as_kind(ActorKind::Program);
        let reader = plans.manager().clone().with_kind(ActorKind::Person);
        let hub = Hub::start(reader.clone(), stop)?;
        Ok(Self { plans, reader, options, hub, outlooks: Outlooks::default() })
    }

    /// Converts an error of the plan.
    pub(crate) fn known<T>(&self, result: Result<T, Error>) -> Result<T, Problem> {
        result.map_err(|error| Problem::of(&error, &self.options.line))
    }
}
