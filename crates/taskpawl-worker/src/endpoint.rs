//! The listener of a worker, and its registration with the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use restate_sdk::endpoint::ServiceOptions;
use restate_sdk::hyper::HyperEndpoint;
use restate_sdk::prelude::Endpoint;
use taskpawl_restate::{MAX_AGE, kept_service, register};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::JoinSet;

use crate::service::{Bound, CallService};
use crate::tell;

/// Flow-control windows. The default of 64 KiB stalls the one connection of the server when a call has a large result.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// The pauses between deliveries to a worker that does not answer. A worker that is gone for half an hour loses its calls.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LAST_PAUSE: Duration = Duration::from_secs(2);
const MAX_DELIVERIES: u64 = 900;

/// The time between two tries to register.
const REGISTER_PAUSE: Duration = Duration::from_secs(2);

/// Serves calls until SIGTERM or SIGINT; then ends them.
pub(crate) async fn serve(
    worker: Arc<CallService>,
    listen: SocketAddr,
    identity_key: Option<&str>,
    admin: &str,
    uri: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let (key, offer) = kept_service(worker.executor().offer());
    let options = ServiceOptions::new()
        .metadata(key, offer)
        .idempotency_retention(MAX_AGE)
        .journal_retention(MAX_AGE)
        // A tool may be silent for longer than the server waits by default.
        .inactivity_timeout(MAX_AGE)
        .abort_timeout(MAX_AGE)
        .retry_policy_initial_interval(FIRST_PAUSE)
        .retry_policy_exponentiation_factor(2.0)
        .retry_policy_max_interval(LAST_PAUSE)
        .retry_policy_max_attempts(MAX_DELIVERIES)
        .retry_policy_kill_on_max_attempts();
    let endpoint = Endpoint::builder().bind_with_options(Bound(Arc::clone(&worker)).definition()?, options);
    let endpoint = match identity_key {
        Some(key) => endpoint.identity_key(key)?,
        None => endpoint,
    };
    let endpoint = HyperEndpoint::new(endpoint.build());
    let listener = TcpListener::bind(listen).await?;
    let (mut terminate, mut interrupt) = (signal(SignalKind::terminate())?, signal(SignalKind::interrupt())?);
    let mut connections = JoinSet::new();
    let mut registration = Box::pin(registered(admin, uri));
    let mut is_registered = false;
    loop {
        tokio::select! {
            Ok((stream, _)) = listener.accept() => {
                let _ = stream.set_nodelay(true);
                let served = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .serve_connection(TokioIo::new(stream), endpoint.clone());
                // A broken connection is the server's to repair: it delivers again.
                connections.spawn(async move { drop(served.await) });
            }
            () = &mut registration, if !is_registered => {
                is_registered = true;
                let offer = worker.executor().offer();
                tell(&format!("worker @{} of pool {} is ready: {} slots at {uri}", offer.worker, worker.pool(), offer.slots));
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
    }
    // Calls that end by the stop are reported before the connections close.
    worker.executor().stop_all();
    let drained = async {
        while worker.executor().running() > 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    };
    let _ = tokio::time::timeout(Duration::from_secs(15), drained).await;
    connections.abort_all();
    Ok(())
}

/// Registers the worker; a server that does not run yet is waited for.
async fn registered(admin: &str, uri: &str) {
    let mut is_told = false;
    while let Err(error) = register(admin, uri).await {
        if !is_told {
            tell(&format!("failed to register with the server, which is tried again: {error}"));
            is_told = true;
        }
        tokio::time::sleep(REGISTER_PAUSE).await;
    }
}
