//! A checklist as lines of text.

use clap::builder::styling::{Ansi256Color, AnsiColor};
use taskpawl_todo::plain_title;
use unicode_width::UnicodeWidthStr;

use super::fit::fit;
use super::item::{Checklist, Item, Mark, Sheet};
use crate::shown::{Shown, shown};
use crate::text::{Paint, Style, clean, cut, style};

/// The pictures of the spinner; each is shown for [`TURN`](super::screen::TURN).
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

const GREY: Style = AnsiColor::BrightBlack.on_default();
const ORANGE: Style = Ansi256Color(208).on_default();
const GREEN: Style = AnsiColor::Green.on_default();

/// The size and state of the view.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct View {
    /// The available columns; `None` means unlimited.
    pub(crate) width: Option<usize>,
    /// The available lines; `None` means unlimited.
    pub(crate) height: Option<usize>,
    /// The number of turns of the spinner so far.
    pub(crate) turn: usize,
    /// True if only the headers are shown.
    pub(crate) is_collapsed: bool,
    /// True if all items are shown, not only the most important ones.
    pub(crate) shows_all: bool,
    /// The number of lines scrolled past at the top, if all items are shown.
    pub(crate) scroll: usize,
    /// True if keys are read, so that the frame ends with a line about them.
    pub(crate) has_keys: bool,
}

impl View {
    /// Returns the number of lines below the first header, without the line about keys.
    pub(crate) fn room(&self) -> Option<usize> {
        let others = 1 + usize::from(self.has_keys);
        self.height.map(|height| height.saturating_sub(others))
    }

    /// Returns the maximum of `scroll`.
    pub(crate) fn furthest(&self, sheet: &Sheet) -> usize {
        self.room().map_or(0, |room| lines_below(&panels(sheet, self)).saturating_sub(room))
    }
}

/// One list with its header.
#[derive(Debug)]
struct Panel<'a> {
    title: String,
    owner: Option<&'a str>,
    has_ended: bool,
    list: &'a Checklist,
}

impl Panel<'_> {
    /// Returns the start of the header.
    fn title(&self, view: &View) -> String {
        if self.list.is_empty() {
            return "No tasks yet".to_owned();
        }
        let chevron = if view.is_collapsed { "▸" } else { "▾" };
        let Checklist { completed, total, .. } = self.list;
        let end = if self.has_ended { ", ended" } else { "" };
        format!("{chevron} {} ({completed}/{total} completed{end})", self.title)
    }
}

/// Returns the panels: the plan first, then the lists of models. An empty plan is left out if there is a list.
fn panels<'a>(sheet: &'a Sheet, view: &View) -> Vec<Panel<'a>> {
    let plan = Panel { title: "Tasks".to_owned(), owner: None, has_ended: false, list: &sheet.plan };
    let has_plan = sheet.lists.is_empty() || plan.list.lines() > 0;
    let scope = view.width.map_or(MAX_SCOPE, |width| (width / 4).clamp(MIN_SCOPE, MAX_SCOPE));
    let kept = sheet.lists.iter().map(|kept| Panel {
        title: format!("Tasks of {}", cut(&clean(&kept.scope), scope)),
        owner: Some(&kept.owner),
        has_ended: kept.ended,
        list: &kept.list,
    });
    Some(plan).filter(|_| has_plan).into_iter().chain(kept).collect()
}

/// The minimum of columns for the name of an owner; with fewer the name is left out.
const MIN_OWNER: usize = 6;

/// The columns of a scope's name, on narrow and on wide terminals: 36 is the length of a UUID.
const MIN_SCOPE: usize = 16;
const MAX_SCOPE: usize = 36;

/// Returns the number of lines that all panels need below the first header.
fn lines_below(panels: &[Panel<'_>]) -> usize {
    panels.iter().map(|panel| panel.list.lines() + 1).sum::<usize>().saturating_sub(1)
}

/// Returns the lines of a frame: at most `height`, and none wider than `width`.
pub(crate) fn frame(sheet: &Sheet, view: &View, paint: Paint) -> Vec<Shown> {
    let panels = panels(sheet, view);
    let mut lines = vec![header(&panels[0], view, paint)];
    let below = if view.is_collapsed { headers(&panels, view, paint) } else { rows(&panels, view, paint) };
    lines.extend(below);
    if view.has_keys && view.height.is_none_or(|height| height > 1) {
        lines.push(paint.style(GREY, &fitted(&keys(sheet, view), view.width)));
    }
    lines
}

fn header(panel: &Panel<'_>, view: &View, paint: Paint) -> Shown {
    const LONGEST: usize = 24;
    const SHORTEST: usize = 8;
    let title = panel.title(view);
    let width = view.width.unwrap_or(usize::MAX);
    let room = width.saturating_sub(title.width());
    let owner = panel.owner.map(|owner| format!("  {}", clean(owner))).unwrap_or_default();
    // On a narrow line the bar goes first, before the owner or the state is cut: the title already shows the progress
    // in numbers.
    let owner = if room >= MIN_OWNER { cut(&owner, room) } else { String::new() };
    let state = state(panel.list, view.turn, room.saturating_sub(owner.width()));
    let bar = room.saturating_sub(owner.width() + state.width() + 2).min(LONGEST);
    let mut line = paint.style(style::BOLD, &cut(&title, width));
    if bar >= SHORTEST && !panel.list.is_empty() {
        line = shown![line, "  ", self::bar(panel.list, bar, paint)];
    }
    let beside = format!("{owner}{state}");
    if beside.is_empty() { line } else { shown![line, paint.style(GREY, &beside)] }
}

/// Returns the numbers of failed, waiting and running items. They are written as words if these fit, else as signs,
/// as many as fit. The most urgent come first.
fn state(list: &Checklist, turn: usize, room: usize) -> String {
    let counts = [Mark::Failed, Mark::Waiting, Mark::InProgress].map(|mark| (mark, list.count(mark)));
    let counts: Vec<_> = counts.into_iter().filter(|(_, count)| *count > 0).collect();
    let words: Vec<String> = counts.iter().map(|(mark, count)| format!("{count} {}", mark.words())).collect();
    let words = format!("  {}", words.join(", "));
    if counts.is_empty() || words.width() <= room {
        return if counts.is_empty() { String::new() } else { words };
    }
    let mut signs = String::new();
    for (mark, count) in counts {
        let sign = format!("  {} {count}", look(mark, turn).0);
        if signs.width() + sign.width() <= room {
            signs.push_str(&sign);
        }
    }
    signs
}

fn bar(list: &Checklist, width: usize, paint: Paint) -> Shown {
    let share = list.completed.saturating_mul(width as u64).checked_div(list.total).unwrap_or(0);
    let full = usize::try_from(share).unwrap_or(width).min(width);
    shown![paint.style(GREEN, &"━".repeat(full)), paint.style(GREY, &"─".repeat(width - full))]
}

/// Returns the headers below the first.
fn headers(panels: &[Panel<'_>], view: &View, paint: Paint) -> Vec<Shown> {
    let others = panels.iter().skip(1).map(|panel| header(panel, view, paint));
    others.take(view.room().unwrap_or(usize::MAX)).collect()
}

/// Returns the lines below the first header.
fn rows(panels: &[Panel<'_>], view: &View, paint: Paint) -> Vec<Shown> {
    let Some(room) = view.room() else { return all_rows(panels, view, paint) };
    if view.shows_all {
        let most = lines_below(panels).saturating_sub(room);
        return all_rows(panels, view, paint).into_iter().skip(view.scroll.min(most)).take(room).collect();
    }
    let wanted = panels.iter().enumerate().map(|(at, panel)| panel.list.lines() + at.min(1));
    let shares = shares(&wanted.collect::<Vec<_>>(), room);
    let mut lines = Vec::new();
    for (at, (panel, share)) in panels.iter().zip(shares).enumerate() {
        let has_header = at > 0 && share > 0;
        lines.extend(has_header.then(|| header(panel, view, paint)));
        lines.extend(rows_of(panel.list, Some(share - usize::from(has_header)), view, paint));
    }
    lines
}

fn all_rows(panels: &[Panel<'_>], view: &View, paint: Paint) -> Vec<Shown> {
    let mut lines = Vec::new();
    for (at, panel) in panels.iter().enumerate() {
        lines.extend((at > 0).then(|| header(panel, view, paint)));
        lines.extend(rows_of(panel.list, None, view, paint));
    }
    lines
}

/// Distributes lines evenly, but gives no panel more than it wants.
fn shares(wanted: &[usize], room: usize) -> Vec<usize> {
    let mut given = vec![0; wanted.len()];
    let mut left = room;
    while left > 0 && given.iter().zip(wanted).any(|(given, wanted)| given < wanted) {
        for (given, wanted) in given.iter_mut().zip(wanted) {
            if *given < *wanted && left > 0 {
                *given += 1;
                left -= 1;
            }
        }
    }
    given
}

fn rows_of(list: &Checklist, room: Option<usize>, view: &View, paint: Paint) -> Vec<Shown> {
    let fit = fit(list, room);
    let shown = fit.items.iter().map(|position| row(&list.items[*position], view, paint));
    let hidden: Vec<String> =
        fit.hidden.iter().map(|(mark, count)| format!("{count} {}", mark.words())).collect();
    let rest = (!hidden.is_empty()).then(|| {
        let text = format!("  … and {}", hidden.join(", "));
        paint.style(GREY, &fitted(&text, view.width))
    });
    shown.chain(rest).take(room.unwrap_or(usize::MAX)).collect()
}

/// The columns of one indent, and the deepest level that is still indented further.
const INDENT: usize = 2;
const DEEPEST: usize = 8;

fn row(item: &Item, view: &View, paint: Paint) -> Shown {
    let indent = " ".repeat(2 + INDENT * item.depth.min(DEEPEST));
    let (glyph, glyph_style, title_style) = look(item.status, view.turn);
    let room = view.width.unwrap_or(usize::MAX).saturating_sub(indent.len() + 2);
    let title = plain_title(&clean(if item.title.is_empty() { &item.id } else { &item.title }));
    let worker = item.worker.as_ref().map(|worker| format!("@{worker}"));
    let beside: Vec<String> =
        [&item.owner, &worker, &item.detail].into_iter().flatten().map(|text| clean(text)).collect();
    let (title, beside) = share(&title, &beside.join(" · "), room);
    let mut line = shown![indent, paint.style(glyph_style, glyph), " ", paint.style(title_style, &title)];
    if !beside.is_empty() {
        line = shown![line, "  ", paint.style(GREY, &beside)];
    }
    if room == 0 { cut(&format!("{indent}{glyph}"), view.width.unwrap_or_default()).into() } else { line }
}

/// Distributes the columns of a line. The title gets as much as it needs, but leaves up to two fifths to a long text
/// beside it.
fn share(title: &str, beside: &str, room: usize) -> (String, String) {
    const MIN: usize = 6;
    let most =
        if beside.is_empty() { room } else { room.saturating_sub(beside.width() + 2).max(room / 5 * 3) };
    let title = cut(title, most);
    let left = room.saturating_sub(title.width() + 2);
    let beside = if left >= MIN.min(beside.width()) { cut(beside, left) } else { String::new() };
    (title, beside)
}

fn look(mark: Mark, turn: usize) -> (&'static str, Style, Style) {
    match mark {
        Mark::NotStarted => ("○", GREY, style::PLAIN),
        Mark::InProgress => (SPINNER[turn % SPINNER.len()], ORANGE, style::BOLD),
        Mark::Completed => ("✓", GREEN, style::DIM),
        Mark::Failed => ("✗", style::ERROR, style::PLAIN),
        Mark::Waiting => ("!", style::WARNING, style::PLAIN),
        Mark::Stopped => ("◐", GREY, style::PLAIN),
        Mark::Blocked => ("◌", GREY, style::DIM),
        Mark::Dropped => ("–", GREY, style::DIM),
    }
}

fn keys(sheet: &Sheet, view: &View) -> String {
    let lines = lines_below(&panels(sheet, view));
    let place = match view.room().filter(|_| view.shows_all && !view.is_collapsed) {
        Some(room) if lines > room => {
            let first = view.scroll.min(view.furthest(sheet));
            format!("{}-{} of {lines}  ", first + 1, first + room)
        }
        _ => String::new(),
    };
    let all = if view.shows_all { "a what matters" } else { "a all" };
    let fold = if view.is_collapsed { "c open" } else { "c fold" };
    format!("{place}q quit  {fold}  {all}  ↑↓ scroll")
}

fn fitted(text: &str, width: Option<usize>) -> String {
    width.map_or_else(|| text.to_owned(), |width| cut(text, width))
}
