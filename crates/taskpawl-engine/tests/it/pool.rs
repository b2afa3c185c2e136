//! Several executors of this process, behind one seam.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use taskpawl_engine::{
    CallExecutor, Engine, ExecuteError, LocalExecutor, LocalOptions, Offer, SentCall, SentEnd, Ticket,
    TicketStatus,
};

/// Workers by name.
#[derive(Debug)]
pub(crate) struct Pool(Vec<Arc<LocalExecutor>>);

impl Pool {
    /// Returns workers with the tools of an engine, which keep their files below `files`.
    pub(crate) async fn open(engine: impl Fn(&Path) -> Engine, files: &Path, count: usize) -> Self {
        let mut workers = Vec::new();
        for number in 0..count {
            let directory = files.join(format!("w{number}"));
            std::fs::create_dir_all(&directory).unwrap();
            let engine = engine(&directory);
            let offer = Offer {
                worker: format!("w{number}"),
                slots: 2,
                labels: BTreeSet::new(),
                tools: engine.tools().names().map(str::to_owned).collect(),
            };
            workers.push(Arc::new(
                LocalExecutor::open(&engine, LocalOptions { offer, remote: None }).await.unwrap(),
            ));
        }
        Self(workers)
    }

    fn worker(&self, name: &str) -> &LocalExecutor {
        self.0.iter().find(|worker| worker.offer().worker == name).unwrap()
    }

    /// Ends the workers.
    pub(crate) async fn close(self) {
        for worker in self.0 {
            Arc::into_inner(worker).unwrap().close().await;
        }
    }
}

#[async_trait]
impl CallExecutor for Pool {
    fn offers(&self) -> Arc<[Offer]> {
        self.0.iter().map(|worker| worker.offer().clone()).collect()
    }

    async fn execute(&self, worker: &str, call: SentCall) -> Result<SentEnd, ExecuteError> {
        self.worker(worker).execute(worker, call).await
    }

    async fn status(&self, worker: &str, tickets: &[Ticket]) -> Result<Vec<TicketStatus>, ExecuteError> {
        self.worker(worker).status(worker, tickets).await
    }

    async fn find(&self, ticket: &Ticket) -> Result<Option<String>, ExecuteError> {
        for worker in &self.0 {
            if let Some(name) = worker.find(ticket).await? {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    async fn stop(&self, worker: &str, ticket: &Ticket) -> Result<(), ExecuteError> {
        self.worker(worker).stop(worker, ticket).await
    }
}
