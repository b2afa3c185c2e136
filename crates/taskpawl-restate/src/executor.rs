//! Executes calls on the workers of a Restate server.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use hyper::Method;
use hyper::body::Bytes;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};
use taskpawl::{
    CallExecutor, ExecuteError, Offer, SentCall, SentEnd, SentOutcome, Source as _, SystemSource, Ticket,
    TicketStatus,
};
use tokio::sync::Semaphore;

use crate::envelope::SigningKey;
use crate::http::{Http, HttpError, message_of};
use crate::service::{MAX_WINDOW, service_name, workers_of};
use crate::silence::{Notice, Silence};

/// The time after which the list of workers is read again.
const FRESH: Duration = Duration::from_secs(10);

/// The first and the longest pause between two tries of a request.
const PAUSES: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(2));

/// The time in which a worker answers a request to stop a call, before the engine kills the call.
const STOP_PATIENCE: Duration = Duration::from_secs(5);

/// The time in which the admin interface answers.
const ADMIN_PATIENCE: Duration = Duration::from_secs(10);

/// Options of a [`RestateExecutor`].
#[derive(Debug)]
pub struct RestateOptions {
    /// The address of the ingress.
    pub ingress: String,
    /// The address of the admin interface.
    pub admin: String,
    /// The pool of workers.
    pub pool: String,
    /// The number of calls that the engine has at once; more than [`MAX_WINDOW`] count as that.
    pub window: usize,
    /// The longest silence of the server.
    pub patience: Duration,
    /// The key that signs calls.
    pub key: SigningKey,
    /// Told about a silent server.
    pub notice: Notice,
}

/// Executes calls on the workers of a Restate server.
#[derive(Debug)]
pub struct RestateExecutor {
    ingress: Http,
    admin: Http,
    pool: String,
    key: SigningKey,
    window: Semaphore,
    silence: Silence,
    offers: Mutex<(Instant, Arc<[Offer]>)>,
    refreshing: tokio::sync::Mutex<()>,
}

/// An answer of the ingress.
enum Answer {
    End(Box<SentEnd>),
    /// The request is worth another try; `true` if the server may have seen it.
    Again(String, bool),
}

impl RestateExecutor {
    /// Connects to the server and reads the list of workers.
    ///
    /// # Errors
    /// The admin interface does not answer.
    pub async fn connect(options: RestateOptions) -> Result<Arc<Self>, HttpError> {
        let RestateOptions { ingress, admin, pool, window, patience, key, notice } = options;
        let executor = Self {
            ingress: Http::new(&ingress),
            admin: Http::new(&admin),
            pool,
            key,
            window: Semaphore::new(window.clamp(1, MAX_WINDOW)),
            silence: Silence::new(notice, patience),
            offers: Mutex::new((Instant::now(), Arc::default())),
            refreshing: tokio::sync::Mutex::default(),
        };
        executor.read_workers().await?;
        Ok(Arc::new(executor))
    }

    async fn read_workers(&self) -> Result<(), HttpError> {
        let reading = tokio::time::timeout(ADMIN_PATIENCE, workers_of(&self.admin));
        let silent = || HttpError::Answer(self.admin.base().to_owned(), "time is over".to_owned());
        let workers = reading.await.map_err(|_| silent())??;
        let usable =
            workers.into_iter().filter(|worker| worker.pool == self.pool && worker.unusable.is_none());
        let offers = usable.map(|worker| worker.offer).collect();
        *self.offers.lock().unwrap_or_else(PoisonError::into_inner) = (Instant::now(), offers);
        Ok(())
    }

    /// Reads the list of workers if it is old and no other call reads it.
    async fn refresh(&self) {
        let is_old = {
            let offers = self.offers.lock().unwrap_or_else(PoisonError::into_inner);
            offers.0.elapsed() > FRESH
        };
        if is_old && let Ok(_reading) = self.refreshing.try_lock() {
            // The old list stays: a server that is silent here is noticed by the call itself.
            let _ = self.read_workers().await;
        }
    }

    async fn ask(&self, service: &str, key: &str, body: Bytes, is_repeatable: bool) -> Answer {
        let path = format!("/{service}/call");
        match self.ingress.send(Method::POST, &path, Some(key), body).await {
            Ok((200, answer)) => match serde_json::from_slice(&answer) {
                Ok(end) => Answer::End(Box::new(end)),
                Err(error) => Answer::End(Box::new(SentEnd::refused("engine", error.to_string(), ""))),
            },
            Ok((status, answer)) => {
                let message = message_of(&answer);
                match status {
                    // The engine has killed or cancelled the call, because nothing answered for it or a user said so.
                    408..=410 => {
                        let why = Some(format!("the engine ended the call: {message}"));
                        let outcome = SentOutcome::Interrupted { repeatable: is_repeatable, why };
                        Answer::End(Box::new(SentEnd::new(outcome, "")))
                    }
                    // A server that has just started may not know its services yet.
                    404 | 429 => Answer::Again(message, false),
                    400..500 => {
                        let why = format!("the engine refuses the call: {message}");
                        Answer::End(Box::new(SentEnd::refused("engine", why, "")))
                    }
                    _ => Answer::Again(message, true),
                }
            }
            Err(error @ HttpError::Connect(..)) => Answer::Again(error.to_string(), false),
            Err(error) => Answer::Again(error.to_string(), true),
        }
    }

    /// Returns the ids of the invocations of a ticket that are not over.
    async fn invocations(&self, worker: &str, ticket: &Ticket) -> Result<Vec<String>, HttpError> {
        let rows = self.query(worker, ticket).await?;
        let is_open = |row: &&Value| row["status"] != "completed";
        Ok(rows.iter().filter(is_open).filter_map(|row| row["id"].as_str().map(str::to_owned)).collect())
    }

    async fn query(&self, worker: &str, ticket: &Ticket) -> Result<Vec<Value>, HttpError> {
        // Both texts have no quotes: the name of a service has none, and keys are encoded.
        let (service, key) = (service_name(&self.pool, worker), header_key(ticket));
        let query = format!(
            "SELECT id, status FROM sys_invocation WHERE target_service_name = '{service}' AND idempotency_key = '{key}'"
        );
        let answer = self.admin.json(Method::POST, "/query", &json!({"query": query})).await?;
        Ok(answer["rows"].as_array().cloned().unwrap_or_default())
    }
}

#[async_trait]
impl CallExecutor for RestateExecutor {
    fn offers(&self) -> Arc<[Offer]> {
        self.offers.lock().unwrap_or_else(PoisonError::into_inner).1.clone()
    }

    async fn execute(&self, worker: &str, call: SentCall) -> Result<SentEnd, ExecuteError> {
        self.refresh().await;
        // Never closed.
        let _place = self.window.acquire().await;
        let service = service_name(&self.pool, worker);
        let (key, is_repeatable) = (header_key(&call.ticket), call.is_repeatable);
        let envelope = self.key.seal(&service, &call, SystemSource.now());
        let body = Bytes::from(serde_json::to_vec(&envelope).expect("BUG: an envelope is plain data"));
        let (mut pause, mut was_seen) = (PAUSES.0, false);
        loop {
            match self.ask(&service, &key, body.clone(), is_repeatable).await {
                Answer::End(mut end) => {
                    self.silence.end();
                    if end.worker.is_empty() {
                        worker.clone_into(&mut end.worker);
                    }
                    return Ok(*end);
                }
                Answer::Again(why, is_seen) => {
                    was_seen |= is_seen;
                    if self.silence.is_too_long(&why) {
                        return Err(if was_seen {
                            ExecuteError::Unanswered(why)
                        } else {
                            ExecuteError::NotSent(why)
                        });
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(PAUSES.1);
        }
    }

    async fn status(&self, worker: &str, tickets: &[Ticket]) -> Result<Vec<TicketStatus>, ExecuteError> {
        let mut all = Vec::with_capacity(tickets.len());
        for ticket in tickets {
            let rows = self.query(worker, ticket).await;
            let rows = rows.map_err(|error| ExecuteError::NotSent(error.to_string()))?;
            all.push(match rows.first() {
                None => TicketStatus::Unknown,
                Some(row) if row["status"] == "completed" => TicketStatus::Ended,
                Some(_) => TicketStatus::Running,
            });
        }
        Ok(all)
    }

    async fn find(&self, ticket: &Ticket) -> Result<Option<String>, ExecuteError> {
        let query = format!(
            "SELECT target_service_name FROM sys_invocation WHERE idempotency_key = '{}'",
            header_key(ticket)
        );
        let asked = self.admin.json(Method::POST, "/query", &json!({"query": query})).await;
        let answer = asked.map_err(|error| ExecuteError::NotSent(error.to_string()))?;
        let rows = answer["rows"].as_array().into_iter().flatten();
        let own = service_name(&self.pool, "");
        let mut workers = rows.filter_map(|row| row["target_service_name"].as_str()?.strip_prefix(&own));
        Ok(workers.next().map(str::to_owned))
    }

    async fn stop(&self, worker: &str, ticket: &Ticket) -> Result<(), ExecuteError> {
        let path = format!("/{}/stop", service_name(&self.pool, worker));
        let body = json!(ticket).to_string();
        let asked = self.ingress.send(Method::POST, &path, None, body.into());
        if let Ok(Ok((200, _))) = tokio::time::timeout(STOP_PATIENCE, asked).await {
            return Ok(());
        }
        // The worker is gone: the engine ends what waits for it.
        let failed = |error: HttpError| ExecuteError::Unanswered(error.to_string());
        for id in self.invocations(worker, ticket).await.map_err(failed)? {
            let path = format!("/invocations/{id}/kill");
            self.admin.json(Method::PATCH, &path, &Value::Null).await.map_err(failed)?;
        }
        Ok(())
    }
}

/// Returns the idempotency key of a ticket, in characters that headers and queries take.
fn header_key(ticket: &Ticket) -> String {
    utf8_percent_encode(&ticket.to_string(), NON_ALPHANUMERIC).to_string()
}
