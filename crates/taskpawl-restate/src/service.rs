//! Workers as services of a Restate server.

use hyper::Method;
use serde::Serialize;
use serde_json::{Value, json};
use taskpawl::Offer;

use crate::http::{Http, HttpError};

/// The version of the protocol between coordinators and workers. It is a part of the names of services, so that workers of two
/// versions exist side by side.
pub const PROTOCOL: u32 = 1;

/// The largest window: the number of calls that a run has with the engine at once.
pub const MAX_WINDOW: usize = 1000;

const PREFIX: &str = "TaskpawlCall";

/// The key of the metadata of a service that holds the offer of its worker.
const OFFER: &str = "taskpawl.offer";

/// A worker that is registered with the server.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Worker {
    /// Its pool.
    pub pool: String,
    /// Its services.
    pub offer: Offer,
    /// The reason why this program sends it no calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unusable: Option<String>,
}

/// Returns the name of the service of a worker.
pub fn service_name(pool: &str, worker: &str) -> String {
    format!("{PREFIX}{PROTOCOL}.{pool}.{worker}")
}

/// Returns the metadata with which a worker registers its service.
///
/// # Panics
/// Never: an offer is plain data.
pub fn kept_service(offer: &Offer) -> (String, String) {
    (OFFER.to_owned(), serde_json::to_string(offer).expect("BUG: an offer is plain data"))
}

/// Registers the services behind an address with the server at `admin`.
///
/// # Errors
/// The server does not answer, or cannot reach the address.
pub async fn register(admin: &str, uri: &str) -> Result<(), HttpError> {
    // `force`: a restarted worker may have other labels, and the server otherwise refuses an address that it knows.
    let body = json!({"uri": uri, "force": true});
    Http::new(admin).json(Method::POST, "/deployments", &body).await.map(drop)
}

/// Returns the workers that are registered with the server at `admin`, by pool and name.
///
/// # Errors
/// The server does not answer.
pub async fn workers(admin: &str) -> Result<Vec<Worker>, HttpError> {
    workers_of(&Http::new(admin)).await
}

pub(crate) async fn workers_of(admin: &Http) -> Result<Vec<Worker>, HttpError> {
    let answer = admin.json(Method::GET, "/services", &Value::Null).await?;
    let services = answer["services"].as_array().cloned().unwrap_or_default();
    let mut workers: Vec<Worker> = services.iter().filter_map(worker_of).collect();
    workers.sort_by(|a, b| (&a.pool, &a.offer.worker).cmp(&(&b.pool, &b.offer.worker)));
    Ok(workers)
}

fn worker_of(service: &Value) -> Option<Worker> {
    let mut parts = service["name"].as_str()?.strip_prefix(PREFIX)?.splitn(3, '.');
    let (protocol, pool, name) = (parts.next()?, parts.next()?, parts.next()?);
    let offer = service["metadata"][OFFER].as_str().and_then(|text| serde_json::from_str::<Offer>(text).ok());
    let unusable = if protocol.parse() != Ok(PROTOCOL) {
        Some(format!("it speaks protocol {protocol}, and this program {PROTOCOL}"))
    } else if offer.is_none() {
        Some("its offer cannot be read".to_owned())
    } else {
        None
    };
    let unknown = || Offer { worker: name.to_owned(), slots: 0, labels: [].into(), tools: [].into() };
    Some(Worker { pool: pool.to_owned(), offer: offer.unwrap_or_else(unknown), unusable })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_worker_of_another_protocol_is_listed_with_the_reason() {
        let offer =
            Offer { worker: "w".to_owned(), slots: 2, labels: ["gpu".to_owned()].into(), tools: [].into() };
        let metadata = |offer: &Offer| {
            Value::Object([kept_service(offer)].map(|(key, text)| (key, json!(text))).into_iter().collect())
        };
        let service = json!({"name": service_name("p", "w"), "metadata": metadata(&offer)});
        assert_eq!(worker_of(&service), Some(Worker { pool: "p".to_owned(), offer, unusable: None }));
        let newer = worker_of(&json!({"name": "TaskpawlCall2.p.w"})).unwrap();
        assert_eq!(newer.unusable.as_deref(), Some("it speaks protocol 2, and this program 1"));
        assert_eq!(worker_of(&json!({"name": "Greeter"})), None);
    }
}
