//! The routes: which path is for which holder of a token.

use hyper::Method;

use crate::request::decoded;
use crate::scope::Right;

/// The right that a route needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Access {
    /// No token: the answer has no data.
    Open,
    /// A token whose scope has this right.
    Token(Right),
}

/// The part of the server that answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Target {
    Shell,
    Asset,
    Events,
    /// A fragment of HTML.
    Fragment(Screen),
    /// A part of the JSON API that only reads.
    Data(Data),
    Command,
    StartRun,
    StopRun,
    Approve,
    Signal,
    ApprovalState,
    Metrics,
    /// The MCP server, which takes every method.
    Mcp,
}

/// A screen, or a part of one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Screen {
    Overview,
    Outlook,
    List,
    Task,
    Log,
    Lines,
    Questions,
    Runs,
    Run,
    Graph,
    History,
    Undo,
    Consequences,
    Diff,
    PlanFile,
    Plans,
}

/// Data of the JSON API.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Data {
    Description,
    OpenApi,
    State,
    Overview,
    Tasks,
    Task,
    Graph,
    Timeline,
    Runs,
    Run,
    History,
    Output,
    Find,
    Questions,
}

/// A route. In its path `{}` stands for one segment.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) method: Method,
    pub(crate) path: &'static str,
    pub(crate) access: Access,
    pub(crate) target: Target,
}

const fn open(path: &'static str, target: Target) -> Route {
    Route { method: Method::GET, path, access: Access::Open, target }
}

const fn read(path: &'static str, target: Target) -> Route {
    Route { method: Method::GET, path, access: Access::Token(Right::Read), target }
}

const fn mcp(method: Method) -> Route {
    Route { method, path: "/mcp", access: Access::Token(Right::Mcp), target: Target::Mcp }
}

const fn act(path: &'static str, target: Target) -> Route {
    Route { method: Method::POST, path, access: Access::Token(Right::Act), target }
}

const fn signal(path: &'static str) -> Route {
    let (method, access) = (Method::POST, Access::Token(Right::Signal));
    Route { method, path, access, target: Target::Signal }
}

/// All routes. The matrix test asks each of them with each token.
pub(crate) const ROUTES: &[Route] = &[
    open("/", Target::Shell),
    open("/tasks", Target::Shell),
    open("/task/{}", Target::Shell),
    open("/log/{}", Target::Shell),
    open("/graph/{}", Target::Shell),
    open("/questions", Target::Shell),
    open("/runs", Target::Shell),
    open("/run/{}", Target::Shell),
    open("/history", Target::Shell),
    open("/undo/{}", Target::Shell),
    open("/plans", Target::Shell),
    open("/assets/{}", Target::Asset),
    read("/events", Target::Events),
    read("/metrics", Target::Metrics),
    mcp(Method::GET),
    mcp(Method::POST),
    mcp(Method::DELETE),
    read("/fragment/", Target::Fragment(Screen::Overview)),
    read("/fragment/outlook", Target::Fragment(Screen::Outlook)),
    read("/fragment/tasks", Target::Fragment(Screen::List)),
    read("/fragment/task/{}", Target::Fragment(Screen::Task)),
    read("/fragment/log/{}", Target::Fragment(Screen::Log)),
    read("/fragment/lines/{}", Target::Fragment(Screen::Lines)),
    read("/fragment/graph/{}", Target::Fragment(Screen::Graph)),
    read("/fragment/questions", Target::Fragment(Screen::Questions)),
    read("/fragment/runs", Target::Fragment(Screen::Runs)),
    read("/fragment/run/{}", Target::Fragment(Screen::Run)),
    read("/fragment/history", Target::Fragment(Screen::History)),
    read("/fragment/undo/{}", Target::Fragment(Screen::Undo)),
    read("/fragment/consequences/{}", Target::Fragment(Screen::Consequences)),
    read("/fragment/diff/{}", Target::Fragment(Screen::Diff)),
    read("/fragment/plan/{}", Target::Fragment(Screen::PlanFile)),
    read("/fragment/plans", Target::Fragment(Screen::Plans)),
    read("/api/v1", Target::Data(Data::Description)),
    read("/api/v1/openapi.json", Target::Data(Data::OpenApi)),
    read("/api/v1/state", Target::Data(Data::State)),
    read("/api/v1/overview", Target::Data(Data::Overview)),
    read("/api/v1/tasks", Target::Data(Data::Tasks)),
    read("/api/v1/tasks/{}", Target::Data(Data::Task)),
    read("/api/v1/tasks/{}/graph", Target::Data(Data::Graph)),
    read("/api/v1/tasks/{}/output", Target::Data(Data::Output)),
    read("/api/v1/tasks/{}/output/find", Target::Data(Data::Find)),
    read("/api/v1/runs", Target::Data(Data::Runs)),
    read("/api/v1/runs/{}", Target::Data(Data::Run)),
    read("/api/v1/runs/{}/timeline", Target::Data(Data::Timeline)),
    read("/api/v1/history", Target::Data(Data::History)),
    read("/api/v1/questions", Target::Data(Data::Questions)),
    act("/api/v1/commands", Target::Command),
    act("/api/v1/runs", Target::StartRun),
    act("/api/v1/runs/{}/stop", Target::StopRun),
    signal("/api/v1/signals/{}"),
    act("/api/v1/approvals", Target::Approve),
    read("/api/v1/approvals/{}", Target::ApprovalState),
];

/// Finds the route of a request, with the decoded value of its `{}`.
pub(crate) fn find(method: &Method, path: &str) -> Option<(&'static Route, String)> {
    ROUTES
        .iter()
        .filter(|route| route.method == method)
        .find_map(|route| Some((route, value_in(route.path, path)?)))
}

/// Returns whether a path has a route for another method.
pub(crate) fn is_known(path: &str) -> bool {
    ROUTES.iter().any(|route| value_in(route.path, path).is_some())
}

fn value_in(pattern: &str, path: &str) -> Option<String> {
    let (mut wanted, mut given) = (pattern.split('/'), path.split('/'));
    let mut value = String::new();
    loop {
        match (wanted.next(), given.next()) {
            (None, None) => return Some(value),
            (Some("{}"), Some(segment)) if !segment.is_empty() => value = decoded(segment)?,
            (Some(word), Some(segment)) if word == segment => {}
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_matched_whole() {
        let of = |method: &Method, path: &str| find(method, path).map(|(route, value)| (route.target, value));
        assert_eq!(of(&Method::GET, "/task/a%2Fb"), Some((Target::Shell, "a/b".to_owned())));
        assert_eq!(
            of(&Method::GET, "/api/v1/tasks/x/output/find"),
            Some((Target::Data(Data::Find), "x".to_owned()))
        );
        assert_eq!(of(&Method::POST, "/api/v1/runs"), Some((Target::StartRun, String::new())));
        for path in ["/task/", "/task/a/b", "/assets/../Cargo.toml", "/api/v1/", "//"] {
            assert_eq!(of(&Method::GET, path), None, "{path}");
        }
        assert!(is_known("/api/v1/commands") && !is_known("/x"));
    }
}
