//! Fragments of the page. maud escapes every value; nothing here writes HTML as text.

mod call;
mod consequences;
mod diff;
pub(crate) mod graph;
mod history;
pub(crate) mod list;
mod log;
mod outlook;
mod overview;
mod part;
mod plans;
mod questions;
mod runs;
mod task;
mod undo;

use maud::{DOCTYPE, Markup, html};

use crate::answer::{Problem, Reply};
use crate::asked::Asked;
use crate::page::Page;
use crate::routes::Screen;

/// Returns the page without data. Its scripts fetch the rest with the token.
pub(crate) fn shell() -> Reply {
    Reply::Html(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { "taskpawl" }
                link rel="icon" href="/assets/icon.svg";
                link rel="stylesheet" href="/assets/page.css";
                script type="module" src="/assets/app.js" {}
            }
            body {
                a.skip href="#main" { "Skip to content" }
                header.bar {
                    a.brand href="/" { "taskpawl" }
                    nav aria-label="Screens" {
                        @for (path, name) in SCREENS { a href=(path) { (name) } }
                    }
                    span #live.live role="status" { "connecting" }
                }
                main #main tabindex="-1" { p.quiet { "Loading" } }
                div #notice.notice role="alert" hidden {}
                dialog #dialog aria-labelledby="dialog-title" {}
            }
        }
    })
}

const SCREENS: [(&str, &str); 6] = [
    ("/", "Overview"),
    ("/tasks", "Tasks"),
    ("/questions", "Questions"),
    ("/runs", "Runs"),
    ("/history", "History"),
    ("/plans", "Plans"),
];

/// Returns the fragment that a request asks for.
pub(crate) fn fragment(page: &Page, screen: Screen, asked: &Asked) -> Result<Markup, Problem> {
    match screen {
        Screen::Overview => overview::fragment(page, asked),
        Screen::Outlook => outlook::fragment(page),
        Screen::List => list::fragment(page, asked),
        Screen::Task => task::fragment(page, asked),
        Screen::Log => log::fragment(page, asked),
        Screen::Lines => log::lines(page, asked),
        Screen::Questions => questions::fragment(page, asked),
        Screen::Runs => runs::fragment(page, asked),
        Screen::Run => runs::one(page, asked),
        Screen::Graph => graph::fragment(page, asked),
        Screen::PlanFile => plans::file(page, asked),
        Screen::Diff => diff::fragment(page, asked),
        Screen::Undo => undo::fragment(page, asked),
        Screen::Consequences => consequences::fragment(page, asked),
        Screen::History => history::fragment(page, asked),
        Screen::Plans => plans::fragment(page),
    }
}
