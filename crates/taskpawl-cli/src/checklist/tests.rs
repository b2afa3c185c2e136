//! Snapshots of frames.

use unicode_width::UnicodeWidthStr;

use super::item::{Checklist, Item, Kept, Mark, Sheet};
use super::{View, frame};
use crate::shown::Shown;
use crate::text::Paint;

/// Returns the lines as one text.
fn joined(lines: Vec<Shown>) -> String {
    Shown::joined(lines, "\n").as_str().to_owned()
}

const PLAIN: Paint = Paint { is_on: false };

fn item(id: &str, title: &str, status: Mark) -> Item {
    Item {
        id: id.to_owned(),
        title: title.to_owned(),
        status,
        owner: None,
        worker: None,
        detail: None,
        depth: 0,
    }
}

/// Returns a checklist with items of all marks but `Stopped`.
fn varied() -> Checklist {
    let running = Item {
        owner: Some("ann@host".to_owned()),
        detail: Some("exec: cargo test --workspace".to_owned()),
        depth: 1,
        ..item("test", "Run **all** `tests`", Mark::InProgress)
    };
    let failed = Item {
        detail: Some("exit code 1: no such file".to_owned()),
        ..item("docs", "Build the documentation", Mark::Failed)
    };
    let waiting = Item {
        owner: Some("for bob".to_owned()),
        detail: Some("asks: Publish?".to_owned()),
        ..item("publish", "Publish", Mark::Waiting)
    };
    Checklist::of(vec![
        item("fetch", "Fetch \u{1b}[2Jthe sources", Mark::Completed),
        item("build", "Build", Mark::Completed),
        item("check", "Check everything", Mark::NotStarted),
        running,
        Item { depth: 1, ..item("lint", "", Mark::NotStarted) },
        failed,
        waiting,
        Item { detail: Some("because of docs".to_owned()), ..item("site", "Upload the site", Mark::Blocked) },
        item("old", "Support the old format", Mark::Dropped),
        item("wide", "漢字を数える", Mark::NotStarted),
    ])
}

fn plan(list: &Checklist) -> Sheet {
    Sheet { plan: list.clone(), lists: Vec::new() }
}

fn text(list: &Checklist, view: &View) -> String {
    joined(frame(&plan(list), view, PLAIN))
}

fn kept(scope: &str, number: usize) -> Kept {
    let marks = [Mark::Completed, Mark::InProgress, Mark::NotStarted];
    let items = (0..number).map(|at| item("1", &format!("Step {at}"), marks[at.min(2)])).collect();
    let (scope, owner) = (scope.to_owned(), "ann@host".to_owned());
    Kept { scope, owner, ended: false, list: Checklist::of(items) }
}

#[test]
fn a_frame_shows_marks_owners_calls_and_subtasks() {
    insta::assert_snapshot!(text(&varied(), &View::default()), @r"
    ▾ Tasks (2/9 completed)  ━━━━━───────────────────  1 failed, 1 waiting, 1 in progress
      ✓ Fetch \u{1b}[2Jthe sources
      ✓ Build
      ○ Check everything
        ⠋ Run all tests  ann@host · exec: cargo test --workspace
        ○ lint
      ✗ Build the documentation  exit code 1: no such file
      ! Publish  for bob · asks: Publish?
      ◌ Upload the site  because of docs
      – Support the old format
      ○ 漢字を数える
    ");
}

#[test]
fn a_frame_has_colours() {
    let list = Checklist::of(vec![
        item("a", "Done", Mark::Completed),
        item("b", "Running", Mark::InProgress),
        item("c", "Open", Mark::NotStarted),
    ]);
    let view = View { width: Some(60), height: Some(10), turn: 3, has_keys: true, ..View::default() };
    let lines = joined(frame(&plan(&list), &view, Paint { is_on: true }));
    insta::assert_snapshot!(lines.replace('\u{1b}', "␛"), @"
    ␛[1m▾ Tasks (1/3 completed)␛[0m  ␛[32m━━━━━━␛[0m␛[90m──────────────␛[0m␛[90m  1 in progress␛[0m
      ␛[32m✓␛[0m ␛[2mDone␛[0m
      ␛[38;5;208m⠸␛[0m ␛[1mRunning␛[0m
      ␛[90m○␛[0m Open
    ␛[90mq quit  c fold  a all  ↑↓ scroll␛[0m
    ");
}

#[test]
fn sixty_columns_are_enough() {
    let view = View { width: Some(59), height: Some(20), has_keys: true, ..View::default() };
    insta::assert_snapshot!(text(&varied(), &view), @r"
    ▾ Tasks (2/9 completed)  1 failed, 1 waiting, 1 in progress
      ✓ Fetch \u{1b}[2Jthe sources
      ✓ Build
      ○ Check everything
        ⠋ Run all tests  ann@host · exec: cargo test --workspa…
        ○ lint
      ✗ Build the documentation  exit code 1: no such file
      ! Publish  for bob · asks: Publish?
      ◌ Upload the site  because of docs
      – Support the old format
      ○ 漢字を数える
    q quit  c fold  a all  ↑↓ scroll
    ");
}

#[test]
fn what_matters_most_is_seen_where_there_is_little_room() {
    let view = View { width: Some(59), height: Some(7), has_keys: true, ..View::default() };
    insta::assert_snapshot!(text(&varied(), &view), @"
    ▾ Tasks (2/9 completed)  1 failed, 1 waiting, 1 in progress
      ○ Check everything
        ⠋ Run all tests  ann@host · exec: cargo test --workspa…
      ✗ Build the documentation  exit code 1: no such file
      ! Publish  for bob · asks: Publish?
      … and 2 not started, 1 blocked, 2 completed, 1 dropped
    q quit  c fold  a all  ↑↓ scroll
    ");
}

#[test]
fn a_list_is_folded_and_scrolled() {
    let folded = View { is_collapsed: true, ..View::default() };
    insta::assert_snapshot!(text(&varied(), &folded), @"▸ Tasks (2/9 completed)  ━━━━━───────────────────  1 failed, 1 waiting, 1 in progress");
    let items = (0..40).map(|number| item("x", &format!("Item {number}"), Mark::NotStarted)).collect();
    let list = Checklist::of(items);
    let view = View {
        width: Some(59),
        height: Some(5),
        shows_all: true,
        scroll: 10,
        has_keys: true,
        ..View::default()
    };
    insta::assert_snapshot!(text(&list, &view), @"
    ▾ Tasks (0/40 completed)  ────────────────────────
      ○ Item 10
      ○ Item 11
      ○ Item 12
    11-13 of 40  q quit  c fold  a what matters  ↑↓ scroll
    ");
    let lowest = View { scroll: usize::MAX, ..view };
    assert!(text(&list, &lowest).contains("Item 39"));
}

#[test]
fn what_is_not_listed_is_counted() {
    let unlisted = [(Mark::Completed, 40_000), (Mark::NotStarted, 59_000)].into();
    let list = Checklist {
        completed: 40_000,
        total: 99_001,
        items: vec![item("a", "Running", Mark::InProgress)],
        unlisted,
    };
    insta::assert_snapshot!(text(&list, &View { width: Some(59), ..View::default() }), @"
    ▾ Tasks (40000/99001 completed)  ━━━━───────  1 in progress
      ⠋ Running
      … and 59000 not started, 40000 completed
    ");
}

#[test]
fn an_empty_list_is_a_header() {
    insta::assert_snapshot!(text(&Checklist::default(), &View::default()), @"No tasks yet");
    insta::assert_snapshot!(text(&Checklist::default(), &View { width: Some(8), ..View::default() }), @"No task…");
    let dropped = Checklist::of(vec![item("old", "Support the old format", Mark::Dropped)]);
    insta::assert_snapshot!(text(&dropped, &View::default()), @"
    ▾ Tasks (0/0 completed)  ────────────────────────
      – Support the old format
    ");
}

#[test]
fn nothing_of_the_state_is_left_out_of_the_header_while_there_is_room_for_a_sign() {
    let unlisted = [(Mark::Failed, 12), (Mark::Waiting, 3), (Mark::InProgress, 2)].into();
    let list = Checklist { completed: 40, total: 100, items: Vec::new(), unlisted };
    let lines = [90, 64, 59, 45, 40, 30]
        .map(|width| frame(&plan(&list), &View { width: Some(width), ..View::default() }, PLAIN)[0].clone());
    insta::assert_snapshot!(joined(lines.to_vec()), @"
    ▾ Tasks (40/100 completed)  ━━━━━━━━━───────────────  12 failed, 3 waiting, 2 in progress
    ▾ Tasks (40/100 completed)  12 failed, 3 waiting, 2 in progress
    ▾ Tasks (40/100 completed)  ━━━━━━─────────  ✗ 12  ! 3  ⠋ 2
    ▾ Tasks (40/100 completed)  ✗ 12  ! 3  ⠋ 2
    ▾ Tasks (40/100 completed)  ✗ 12  ! 3
    ▾ Tasks (40/100 completed)
    ");
}

#[test]
fn nothing_turns_in_a_list_that_was_left_for_review() {
    let items = vec![item("1", "Set up", Mark::Completed), item("2", "Build it", Mark::Stopped)];
    let left = Kept { ended: true, list: Checklist::of(items), ..kept("talk", 0) };
    let sheet = Sheet { plan: Checklist::default(), lists: vec![left] };
    assert!(!sheet.is_moving());
    insta::assert_snapshot!(joined(frame(&sheet, &View::default(), PLAIN)), @"
    ▾ Tasks of talk (1/2 completed, ended)  ━━━━━━━━━━━━────────────  ann@host
      ✓ Set up
      ◐ Build it
    ");
}

#[test]
fn a_frame_fits_every_terminal() {
    let mut list = varied();
    list.items.extend((0..100).map(|number| Item {
        depth: number % 12,
        detail: Some("漢字".repeat(number)),
        owner: Some("o".repeat(number)),
        ..item("many", &"long 漢字 ".repeat(number), Mark::ALL[number % Mark::ALL.len()])
    }));
    for (width, height) in [(1, 1), (2, 2), (10, 3), (20, 5), (59, 24), (200, 60), (500, 500)] {
        for (shows_all, is_collapsed) in [(false, false), (true, false), (false, true)] {
            let (width, height) = (Some(width), Some(height));
            let view = View { width, height, shows_all, is_collapsed, has_keys: true, scroll: 7, turn: 99 };
            let lists = vec![kept("talk", 5), kept("0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10", 50)];
            let lines = frame(&Sheet { plan: list.clone(), lists }, &view, PLAIN);
            assert!(Some(lines.len()) <= height, "{view:?}: {lines:?}");
            for line in &lines {
                assert!(Some(line.as_str().width()) <= width, "{view:?}: {line:?}");
                assert!(!line.as_str().contains('\u{1b}'), "{line:?}");
            }
        }
    }
}

#[test]
fn what_models_keep_is_drawn_below_the_plan() {
    let plan =
        Checklist::of(vec![item("a", "Build", Mark::Completed), item("b", "Publish", Mark::NotStarted)]);
    let lists = vec![kept("talk", 3), kept("0b2f6c1e-9a4d-4c55-8a39-2f6f0f5f7f10", 40)];
    let sheet = Sheet { plan, lists };
    let view = View { width: Some(59), height: Some(14), has_keys: true, ..View::default() };
    insta::assert_snapshot!(joined(frame(&sheet, &view, PLAIN)), @"
    ▾ Tasks (1/2 completed)  ━━━━━━━━━━━━────────────
      ✓ Build
      ○ Publish
    ▾ Tasks of talk (1/3 completed)  ann@host  1 in progress
      ✓ Step 0
      ⠋ Step 1
      ○ Step 2
    ▾ Tasks of 0b2f6c1e-9a4d-4… (1/40 completed)  ann@host  ⠋ 1
      ⠋ Step 1
      ○ Step 2
      ○ Step 3
      ○ Step 4
      … and 35 not started, 1 completed
    q quit  c fold  a all  ↑↓ scroll
    ");
    let folded = View { is_collapsed: true, ..view };
    insta::assert_snapshot!(joined(frame(&sheet, &folded, PLAIN)), @"
    ▸ Tasks (1/2 completed)  ━━━━━━━━━━━━────────────
    ▸ Tasks of talk (1/3 completed)  ann@host  1 in progress
    ▸ Tasks of 0b2f6c1e-9a4d-4… (1/40 completed)  ann@host  ⠋ 1
    q quit  c open  a all  ↑↓ scroll
    ");
    let lowest = View { shows_all: true, scroll: usize::MAX, height: Some(5), ..view };
    insta::assert_snapshot!(joined(frame(&sheet, &lowest, PLAIN)), @"
    ▾ Tasks (1/2 completed)  ━━━━━━━━━━━━────────────
      ○ Step 37
      ○ Step 38
      ○ Step 39
    45-47 of 47  q quit  c fold  a what matters  ↑↓ scroll
    ");
    let alone = Sheet { plan: Checklist::default(), lists: vec![kept("talk", 2)] };
    insta::assert_snapshot!(joined(frame(&alone, &View::default(), PLAIN)), @"
    ▾ Tasks of talk (1/2 completed)  ━━━━━━━━━━━━────────────  ann@host  1 in progress
      ✓ Step 0
      ⠋ Step 1
    ");
}
