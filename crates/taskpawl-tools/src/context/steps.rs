//! Steps of a call that survive a crash, and details that the next start of the call reads.

use std::future::Future;
use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::CallContext;
use crate::error::ToolError;
use crate::steps::SharedJournal;

impl CallContext {
    /// Does a step of the call once: if an earlier start of the call has recorded its result, that is returned, and `work` is dropped.
    ///
    /// The name is unique within the call. The records belong to the arguments of the call: with others it begins again, and so it does
    /// after `reopen`. A call starts again after a crash only if its tool is `idempotent`; with steps a tool can be. A kill between the
    /// effect of a step and its record repeats that one step. Outside of a run nothing is recorded.
    ///
    /// # Errors
    /// The step failed, which is not recorded, or the record cannot be written or read.
    pub async fn step<T, E>(
        &self,
        name: &str,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, ToolError>
    where
        T: Serialize + DeserializeOwned,
        E: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let step = name.to_owned();
        if let Some(Some(result)) = self.journal(move |journal| journal.result(&step)).await? {
            let done = serde_json::from_value(result)?;
            self.note_step();
            return Ok(done);
        }
        let done = work.await.map_err(ToolError::other)?;
        let (step, result) = (name.to_owned(), serde_json::to_value(&done)?);
        self.journal(move |journal| journal.record(&step, result)).await?;
        self.note_step();
        Ok(done)
    }

    fn note_step(&self) {
        if let Some(questions) = &self.questions {
            questions.note_step();
        }
    }

    /// Keeps details of the work, such as a position, for the next start of the call; see [`last_details`](Self::last_details).
    ///
    /// # Errors
    /// The details cannot be written.
    pub async fn heartbeat(&self, details: impl Serialize) -> Result<(), ToolError> {
        let details = serde_json::to_value(details)?;
        self.journal(move |journal| journal.replace_details(details)).await?;
        Ok(())
    }

    /// Returns the details that an earlier start of the call has kept last.
    ///
    /// # Errors
    /// The details cannot be read, or have another type.
    pub async fn last_details<T: DeserializeOwned>(&self) -> Result<Option<T>, ToolError> {
        let details = self.journal(|journal| journal.details()).await?.flatten();
        Ok(details.map(serde_json::from_value).transpose()?)
    }

    /// Uses the journal on a blocking thread, if there is one.
    async fn journal<T: Send + 'static>(
        &self,
        use_it: impl FnOnce(&SharedJournal) -> io::Result<T> + Send + 'static,
    ) -> Result<Option<T>, ToolError> {
        let Some(journal) = self.journal.clone() else { return Ok(None) };
        let done = tokio::task::spawn_blocking(move || use_it(&journal)).await;
        Ok(Some(done.map_err(io::Error::from)??))
    }
}
