//! Subscriptions: changes of the store, by this process or another one, as addresses of resources.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ErrorData, ResourceUpdatedNotificationParam};
use rmcp::service::{Peer, RoleServer, SubscriptionContext};
use taskpawl::model::task::{Event, EventKind};
use taskpawl::{Error, Manager};
use taskpawl_text::error_chain;

use super::mcp_server::{McpServer, blocking};
use super::resources::{Place, is_subscribable, nothing_at, plan_names};
use super::subscriptions::Subscriptions;

/// Maximum time that one wait for changes blocks a thread. A change ends the wait at once.
const LOOK: Duration = Duration::from_secs(1);

/// Maximum number of events that are examined at once. With more, everything counts as changed.
const MAX_EVENTS: usize = 1_000;

/// The changes since the previous read.
#[derive(Debug, Default)]
struct News {
    /// Everything counts as changed: there were too many events to examine.
    is_all: bool,
    places: BTreeSet<Place>,
    /// True if plans were added or removed.
    has_other_plans: bool,
}

impl News {
    fn has(&self, place: &Place) -> bool {
        self.is_all || self.places.contains(place)
    }
}

/// Follows the store from one revision to the next.
#[derive(Debug, Clone)]
struct Lookout {
    manager: Manager,
    revision: u64,
    plans: Vec<String>,
}

impl Lookout {
    fn new(manager: Manager) -> Result<Self, Error> {
        let (revision, plans) = (manager.revision()?, plan_names(&manager)?);
        Ok(Self { manager, revision, plans })
    }

    /// Waits for a change, for at most `LOOK`. Blocks the thread.
    fn look(mut self) -> Result<(Self, News), Error> {
        let store = self.manager.store();
        if store.wait_change(self.revision, LOOK)? <= self.revision {
            return Ok((self, News::default()));
        }
        let events = store.events_since(self.revision, MAX_EVENTS)?;
        let plans = plan_names(&self.manager)?;
        let mut news = News { has_other_plans: plans != self.plans, ..News::default() };
        news.is_all = events.len() == MAX_EVENTS;
        self.revision = if news.is_all {
            self.manager.revision()?
        } else {
            events.last().map_or(self.revision, |event| event.revision)
        };
        self.plans = plans;
        for event in &events {
            self.add(event, &mut news.places)?;
        }
        Ok((self, news))
    }

    /// Adds the resources that an event changes.
    fn add(&self, event: &Event, places: &mut BTreeSet<Place>) -> Result<(), Error> {
        if let EventKind::Checklist(_) = &event.kind {
            places.insert(Place::Checklist);
            return Ok(());
        }
        places.extend([Place::Digest, Place::Ready]);
        if let Some(run) = &event.run {
            places.insert(Place::Run(run.to_string()));
        }
        let Some(task) = &event.task else { return Ok(()) };
        places.insert(Place::Task(task.to_string()));
        // A deleted task is gone from the store; the event has its last state.
        let plan = if let EventKind::Deleted { task } = &event.kind {
            task["plan"].as_str().map(str::to_owned)
        } else {
            self.manager.read(|view| {
                let key = view.key(task.as_str())?;
                let task = key.map(|key| view.task(key)).transpose()?.flatten();
                Ok(task.and_then(|task| task.plan).map(String::from))
            })?
        };
        places.extend(plan.map(Place::Plan));
        Ok(())
    }
}

/// Notifies a client of the newer era of changes to its subscriptions, until it ends them.
pub(super) async fn listen(server: &McpServer, context: SubscriptionContext) -> Result<(), ErrorData> {
    let failed = |error: Error| ErrorData::internal_error(error_chain(&error), None);
    let manager = server.plans().manager().clone();
    let mut lookout = blocking(move || Lookout::new(manager)).await.map_err(failed)?;
    // The client was told of the subscription before the lookout began. Everything counts as changed once, so that it
    // misses nothing.
    tell(&context, &News { is_all: true, ..News::default() }).await;
    loop {
        let now = lookout.clone();
        let (next, news) = tokio::select! {
            biased;
            () = context.cancelled() => return Ok(()),
            looked = blocking(move || now.look()) => looked.map_err(failed)?,
        };
        lookout = next;
        if !tell(&context, &news).await {
            return Ok(());
        }
    }
}

/// Returns false when the client has ended the subscription.
async fn tell(context: &SubscriptionContext, news: &News) -> bool {
    let (accepted, sink) = (context.accepted().clone(), context.sink());
    for uri in accepted.resource_subscriptions.into_iter().flatten() {
        let is_news = Place::of(&uri).is_some_and(|place| news.has(&place));
        if is_news && sink.notify_resource_updated(uri).await.is_err() {
            return false;
        }
    }
    let has_list = accepted.resources_list_changed == Some(true) && news.has_other_plans;
    !has_list || sink.notify_resource_list_changed().await.is_ok()
}

impl Subscriptions {
    /// Adds an address. The first one starts the notifications.
    pub(super) async fn add(
        self: &Arc<Self>,
        server: &McpServer,
        peer: Peer<RoleServer>,
        uri: String,
    ) -> Result<(), ErrorData> {
        if !is_subscribable(server, &uri) {
            return Err(ErrorData::resource_not_found(nothing_at(&uri), None));
        }
        let is_new = self.tracker.is_empty();
        self.uris().insert(uri);
        if is_new {
            let manager = server.plans().manager().clone();
            let lookout = blocking(move || Lookout::new(manager)).await;
            let lookout = lookout.map_err(|error| ErrorData::internal_error(error_chain(&error), None))?;
            let subscriptions = Arc::clone(self);
            self.tracker.spawn(async move { subscriptions.tell(lookout, peer).await });
        }
        Ok(())
    }

    /// Notifies the client until its connection is closed.
    async fn tell(&self, mut lookout: Lookout, peer: Peer<RoleServer>) {
        while !peer.is_transport_closed() {
            let now = lookout.clone();
            // A failing store also fails the client's calls, which report it.
            let Ok((next, news)) = blocking(move || now.look()).await else { return };
            lookout = next;
            let wanted: Vec<String> = self.uris().iter().cloned().collect();
            for uri in wanted.into_iter().filter(|uri| Place::of(uri).is_some_and(|place| news.has(&place))) {
                if peer.notify_resource_updated(ResourceUpdatedNotificationParam::new(uri)).await.is_err() {
                    return;
                }
            }
            if news.has_other_plans && peer.notify_resource_list_changed().await.is_err() {
                return;
            }
        }
    }
}
