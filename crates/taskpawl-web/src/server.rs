use std::fmt;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::header::IF_NONE_MATCH;
use hyper::{Method, Request, StatusCode};
use serde_json::json;
use taskpawl::model::value::{RunId, format_time};
use taskpawl::{Error, HistoryFilter, RunState, Taskpawl, digest::RunNow};
use taskpawl_http::{Answer, Guard, Listener, Place, Service, body_of};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::act::{self, Command};
use crate::answer::{Problem, Reply, secure};
use crate::approvals::Approvals;
use crate::asked::Asked;
use crate::assets;
use crate::board::Cell;
use crate::metrics::Metrics;
use crate::openapi;
use crate::options::{PageOptions, Tokens};
use crate::output;
use crate::page::Page;
use crate::past;
use crate::request::Query;
use crate::routes::{self, Access, Data, Target};
use crate::runs::Runs;
use crate::scope::Scope;
use crate::signals;
use crate::timeline::Timeline;
use crate::view;

/// Serves the page of a plan.
///
/// Cheap to clone. Commands are given as the program `page`, under the rules for programs.
#[derive(Clone)]
pub struct PageServer(Arc<Inner>);

struct Inner {
    page: Page,
    runs: Runs,
    approvals: Approvals,
    metrics: Metrics,
    stop: CancellationToken,
    streams: TaskTracker,
}

impl fmt::Debug for PageServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PageServer").field("options", &self.0.page.options).finish_non_exhaustive()
    }
}

impl PageServer {
    /// Reads the plan. Blocks the thread.
    ///
    /// # Errors
    /// The store cannot be read.
    pub fn new(plans: &Taskpawl, options: PageOptions) -> Result<Self, Error> {
        let stop = CancellationToken::new();
        let page = Page::new(plans, options, stop.clone())?;
        let metrics = Metrics::new(page.hub.board().revision());
        let (runs, approvals, streams) = (Runs::default(), Approvals::default(), TaskTracker::new());
        Ok(Self(Arc::new(Inner { page, runs, approvals, metrics, stop, streams })))
    }

    /// Serves holders of the tokens until `stop` fires.
    pub async fn serve(&self, listener: Listener, tokens: &Tokens, stop: CancellationToken) {
        let guard = Guard::new(listener.address(), tokens.scopes()).with_stored(tokens.stored.clone());
        let guard = Arc::new(guard);
        let endpoint = Endpoint { page: self.clone(), guard };
        // Streams end first: a connection with an open stream would never finish.
        let ended = self.0.stop.clone();
        tokio::select! {
            () = listener.serve(endpoint, stop.clone()) => {}
            () = async { stop.cancelled().await; ended.cancel(); std::future::pending::<()>().await } => {}
        }
        self.0.stop.cancel();
    }

    /// Asks the runs that the page has started to stop. The second request ends their calls.
    pub fn stop_runs(&self) {
        self.0.runs.stop_all();
    }

    /// Waits until these runs have ended.
    pub async fn wait_for_runs(&self) {
        self.0.runs.wait().await;
    }
}

static GET: Method = Method::GET;

#[derive(Clone)]
struct Endpoint {
    page: PageServer,
    guard: Arc<Guard<Scope>>,
}

impl Service for Endpoint {
    async fn answer(&self, request: Request<Incoming>, place: &Place) -> Answer {
        let answer = self.routed(request, place).await;
        let mut answer = answer.unwrap_or_else(|refused| *refused);
        secure(answer.headers_mut());
        answer
    }
}

impl Endpoint {
    async fn routed(&self, request: Request<Incoming>, place: &Place) -> Result<Answer, Box<Answer>> {
        // The headers of an answer to `HEAD` are those to `GET`; the connection leaves the body out.
        let method = Some(request.method()).filter(|method| **method != Method::HEAD).unwrap_or(&GET);
        let (uri, headers) = (request.uri(), request.headers());
        let found = routes::find(method, uri.path());
        if let Some((route, value)) = &found
            && route.access == Access::Open
        {
            let refused = |why| Box::new(Problem::new(StatusCode::FORBIDDEN, why).into_answer());
            self.guard.check_site(uri, headers).map_err(refused)?;
            let reply = if route.target == Target::Asset { assets::find(value) } else { Ok(view::shell()) };
            return Ok(reply.map_or_else(Problem::into_answer, |reply| reply.into_answer(None)));
        }
        // Without a token a client does not learn which paths there are.
        let scope = self.guard.look(method, uri, headers).admit(place)?;
        let Some((route, value)) = found else { return Ok(unknown(uri.path())) };
        if let Access::Token(needed) = route.access
            && !scope.allows(needed, &value)
        {
            let why = format!("a token with the scope `{scope}` may not do this");
            return Ok(Problem::new(StatusCode::FORBIDDEN, why).into_answer());
        }
        if route.target == Target::Mcp {
            return Ok(match &self.page.0.page.options.mcp {
                Some(mount) => mount.answer(request).await,
                None => Problem::missing("start it with `taskpawl serve --mcp`").into_answer(),
            });
        }
        let known = headers.get(IF_NONE_MATCH).and_then(|tag| tag.to_str().ok()).map(str::to_owned);
        let token = self.guard.token_name(headers).unwrap_or_default();
        let asked = Asked { target: route.target, value, query: Query::of(uri.query()), scope, token };
        if asked.target == Target::Events {
            let inner = &self.page.0;
            let (guard, headers) = (Arc::clone(&self.guard), headers.clone());
            let is_current = move || guard.is_current(&headers);
            let events = inner.page.hub.events(&asked.query, &inner.streams, inner.stop.clone(), is_current);
            return Ok(events.unwrap_or_else(Problem::into_answer));
        }
        let body = if *method == Method::POST {
            body_of(request.into_body(), act::MAX_BYTES, "the request is larger than 64 KiB").await?.to_vec()
        } else {
            Vec::new()
        };
        let reply = self.page.reply(asked, body).await;
        Ok(reply.map_or_else(Problem::into_answer, |reply| reply.into_answer(known.as_deref())))
    }
}

fn unknown(path: &str) -> Answer {
    let problem = if routes::is_known(path) {
        Problem::new(StatusCode::METHOD_NOT_ALLOWED, "this path has another method")
    } else {
        Problem::missing("there is nothing here")
    };
    problem.into_answer()
}

impl PageServer {
    async fn reply(&self, asked: Asked, body: Vec<u8>) -> Result<Reply, Problem> {
        if asked.target == Target::StartRun {
            return self.start_run(&body).await;
        }
        let page = self.clone();
        // Reads of the store block.
        let reply = tokio::task::spawn_blocking(move || page.0.reply(&asked, &body)).await;
        reply.unwrap_or_else(|_| Err(Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the request failed")))
    }

    async fn start_run(&self, body: &[u8]) -> Result<Reply, Problem> {
        let wanted: act::StartRun = act::read(body)?;
        let id = RunId::from(uuid::Uuid::new_v4().to_string());
        let options = taskpawl::RunOptions { only: wanted.selectors(), ..self.0.page.options.run.clone() };
        self.0.runs.start(self.0.page.plans.clone(), id.clone(), options).await?;
        Ok(Reply::json(&json!({"run": id})))
    }
}

impl Inner {
    fn reply(&self, asked: &Asked, body: &[u8]) -> Result<Reply, Problem> {
        match asked.target {
            Target::Fragment(screen) => view::fragment(&self.page, screen, asked).map(Reply::Html),
            Target::Data(data) => self.data(data, asked),
            Target::Command => act::read::<Command>(body)?.give(&self.page),
            Target::Signal => signals::send(&self.page, asked, body),
            Target::StopRun => self.stop_run(&asked.value, act::read(body)?),
            Target::Approve => {
                let terminal = self.page.options.approvals.as_ref();
                self.approvals.ask(&self.page.reader, terminal, &act::read(body)?, &asked.token)
            }
            Target::ApprovalState => self.approvals.state(&asked.value),
            Target::Metrics => self
                .page
                .known(self.metrics.text(&self.page.reader, self.page.hub.board().count_ready()))
                .map(Reply::Metrics),
            Target::Shell | Target::Asset | Target::Events | Target::StartRun | Target::Mcp => {
                Err(Problem::missing("there is nothing here"))
            }
        }
    }

    fn stop_run(&self, id: &str, how: act::StopRun) -> Result<Reply, Problem> {
        let manager = self.page.plans.manager();
        let run = self.page.known(manager.find_run(id))?;
        self.page.known(manager.stop_run(&run, how.now))?;
        Ok(Reply::json(&json!({"run": run})))
    }

    fn data(&self, data: Data, asked: &Asked) -> Result<Reply, Problem> {
        let (reader, value) = (&self.page.reader, asked.value.as_str());
        Ok(match data {
            Data::Description => Reply::json(&describe()),
            Data::OpenApi => Reply::Json(openapi::TEXT.into()),
            Data::Overview => Reply::json(&past::shown(&self.page, &asked.query)?.columns()),
            Data::Task => {
                let mut task = self.page.known(reader.get(value))?;
                self.page.plans.engine().call_places().fill(&mut task);
                Reply::json(&task)
            }
            Data::Tasks => {
                let (tasks, total) = view::list::matching(&self.page, &asked.query)?;
                Reply::json(&json!({"tasks": tasks, "total": total}))
            }
            Data::Graph => Reply::json(&view::graph::cone(&self.page, value)?),
            Data::Timeline => {
                let run = self.page.known(reader.find_run(value))?;
                Reply::json(&self.page.known(Timeline::read(
                    reader,
                    &self.page.plans.engine().call_places(),
                    &run,
                ))?)
            }
            Data::Runs => {
                let at = past::past(&self.page, &asked.query)?.map(|past| past.at);
                Reply::json(&json!({"runs": past::runs(&self.page, at, 100)?}))
            }
            Data::Run => {
                let run = self.page.known(reader.find_run(value).and_then(|id| reader.run(&id)))?;
                Reply::json(&RunNow::new(reader, run))
            }
            Data::History => {
                let filter = HistoryFilter {
                    after: asked.query.number("after")?.unwrap_or_default(),
                    limit: asked.query.number("limit")?.unwrap_or(100).clamp(1, 1_000),
                    task: asked.query.text("task").map(str::to_owned),
                    ..HistoryFilter::default()
                };
                Reply::json(&json!({"events": self.page.known(reader.find_history(&filter))?}))
            }
            Data::Questions => {
                Reply::json(&json!({"questions": self.page.known(reader.approval_requests(&[]))?}))
            }
            Data::Output | Data::Find => self.output(data, asked)?,
            Data::State => Reply::json(&self.state(&asked.query)?),
        })
    }

    fn state(&self, query: &Query) -> Result<serde_json::Value, Problem> {
        if let Some(past) = past::past(&self.page, query)? {
            let mut runs = past::runs(&self.page, Some(past.at), 100)?;
            runs.retain(|run| run.state == RunState::Running);
            return Ok(json!({
                "revision": past.revision, "at": format_time(past.at), "counts": past.board().counts(),
                "states": past.board().count_cells(), "runs": runs,
            }));
        }
        let runs = self.page.known(self.page.reader.read(|view| Ok(view.open_runs()?)))?;
        let runs: Vec<RunNow> = runs.into_iter().map(|run| RunNow::new(&self.page.reader, run)).collect();
        let questions = self.page.known(self.page.reader.approval_requests(&[]))?.len();
        let board = self.page.hub.board();
        Ok(json!({
            "revision": board.revision(), "counts": board.counts(), "states": board.count_cells(),
            "runs": runs, "questions": questions,
        }))
    }

    fn output(&self, data: Data, asked: &Asked) -> Result<Reply, Problem> {
        let task = self.page.known(self.page.reader.get(&asked.value))?;
        let parts = output::parts(&self.page.plans, &task);
        let chosen = output::chosen(&parts, &task, &asked.query)?;
        let Some(part) = chosen else { return Err(Problem::missing("nothing was printed")) };
        if data == Data::Find {
            return Ok(Reply::json(&output::find(part, asked.query.text("q"))?));
        }
        let window = output::window(&self.page.plans, part, &asked.query)?;
        Ok(Reply::json(&json!({"part": part, "window": window, "parts": parts})))
    }
}

/// Describes the routes of the API: method, path and scope of each.
fn describe() -> serde_json::Value {
    let api = routes::ROUTES.iter().filter(|route| route.path.starts_with("/api/"));
    let routes: Vec<_> = api
        .map(|route| {
            let scope = if let Access::Token(right) = route.access { Some(right.as_str()) } else { None };
            json!({"method": route.method.as_str(), "path": route.path, "scope": scope})
        })
        .collect();
    let states: Vec<_> =
        Cell::ALL.iter().map(|(_, letter, name)| json!({"letter": letter, "name": name})).collect();
    json!({"version": 1, "routes": routes, "states": states})
}
