//! Differences between two versions of a file, for people.

use crate::shown::{Shown, shown};
use crate::text::{Paint, Style, style};
use clap::builder::styling::AnsiColor;

const ADDED: Style = AnsiColor::Green.on_default();
const REMOVED: Style = AnsiColor::Red.on_default();

/// The number of unchanged lines shown around the changed ones.
const AROUND: usize = 3;

/// Returns the changed lines with their context. All changes are shown as one hunk, because they are always close
/// together.
pub(super) fn diff(path: &str, before: &str, after: &str, paint: Paint) -> Shown {
    let (old, new) = (lines(before), lines(after));
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let most = old.len().min(new.len()) - same;
    let same_end =
        old.iter().rev().zip(new.iter().rev()).take(most).take_while(|(old, new)| old == new).count();
    let mut text = shown![paint.style(style::BOLD, path), "\n"];
    let mut add = |mark: &str, lines: &[&str], of: Style| {
        for line in lines {
            let line = format!("{mark} {}", line.trim_end_matches('\r'));
            text.push(paint.style(of, line.trim_end()));
            text.push("\n");
        }
    };
    add(" ", &old[same.saturating_sub(AROUND)..same], style::PLAIN);
    add("-", &old[same..old.len() - same_end], REMOVED);
    add("+", &new[same..new.len() - same_end], ADDED);
    let rest = &old[old.len() - same_end..];
    add(" ", &rest[..rest.len().min(AROUND)], style::PLAIN);
    text
}

fn lines(text: &str) -> Vec<&str> {
    if text.is_empty() { Vec::new() } else { text.strip_suffix('\n').unwrap_or(text).split('\n').collect() }
}
