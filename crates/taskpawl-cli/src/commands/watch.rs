use std::process::ExitCode;
use std::time::Duration;

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use taskpawl::model::rules::Means;
use taskpawl::{CallPlaces, HistoryFilter, Manager, Taskpawl};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{Interval, MissedTickBehavior, interval};

use crate::app::App;
use crate::checklist::{Board, Keeping, Screen, Sheet, TURN, View, frame};
use crate::commands::{history, parse, running};
use crate::error::CliError;
use crate::output::Output;
use crate::shown::{Shown, shown};
use crate::text::Paint;

/// Show the plan as a live checklist. Shows which tasks are done and running, and their actors, in all processes
#[derive(Debug, clap::Args)]
#[command(after_help = "\
On a terminal it is drawn in place: ○ not started, a turning mark for a task in progress, ✓ completed, ✗ failed, \
! waits for a person or an agent, ◌ blocked by others, ◐ begun by a model that has ended, – not needed any more. Where there is no \
room for everything, the most important lines are shown, and the rest counted. Below the plan are the checklists that models \
keep.
Keys: q quits, c folds, a shows all, ↑ ↓ PgUp PgDn Home End scroll.
Elsewhere every change is printed as a line, and with --json as a line of JSON: `taskpawl schema event` describes \
it. It goes on until it is stopped.

Examples:
  taskpawl watch
  taskpawl watch --once
  taskpawl watch --json > changes.ndjson")]
pub(crate) struct Args {
    /// Print the checklist as it is now, and end; with --json as data
    #[arg(long)]
    once: bool,
    /// Of a stream of changes: begin with what came after this revision
    #[arg(long, value_name = "REVISION", conflicts_with = "once", value_parser = parse::number::<u64>)]
    since: Option<u64>,
}

/// Shows the plan once, as a stream of changes, or live on a terminal.
pub(crate) fn run(app: &App, args: &Args) -> Result<ExitCode, CliError> {
    let plans = app.reader()?;
    let manager = plans.manager();
    let out = app.out();
    if args.once {
        let sheet = Watched::read(plans, running::means(app)?)?.sheet(manager);
        if out.is_json {
            return out.data(&sheet);
        }
        let view = View { width: out.width, ..View::default() };
        let lines = frame(&sheet, &view, out.paint);
        return out.print(shown![Shown::joined(lines, "\n"), "\n"]);
    }
    if out.is_json || !has_screen(app) {
        return stream(app, manager, args.since);
    }
    if args.since.is_some() {
        let hint = "add `--json`, or send the output to a file or a program";
        return Err(CliError::usage_with("`--since` is for a stream of changes", hint));
    }
    draw(plans, running::means(app)?, out.paint)
}

/// Returns whether standard input and output are a terminal that can be drawn on.
fn has_screen(app: &App) -> bool {
    let is_dumb = app.environment().text("TERM").is_none_or(|term| term == "dumb");
    app.terminal().stdin && app.terminal().stdout && !is_dumb
}

/// Longest wait for a change. Commits wake the waiter, so this can be long.
const LONG: Duration = Duration::from_hours(1);

/// Prints changes until the reader closes the pipe.
fn stream(app: &App, manager: &Manager, since: Option<u64>) -> Result<ExitCode, CliError> {
    // A line of a stream stays on the screen, where "now" would soon be wrong.
    let out = Output { now: None, ..app.out() };
    let mut after = since.map_or_else(|| manager.revision(), Ok)?;
    loop {
        let mut result = Ok(());
        let filter = HistoryFilter { after, ..HistoryFilter::default() };
        manager.each_history(&filter, |entries| {
            after = entries.last().map_or(after, |entry| entry.event.revision);
            result =
                if out.is_json { out.lines(&entries) } else { out.piece(&history::lines(&out, &entries)) };
            result.is_ok()
        })?;
        result?;
        manager.store().wait_change(after, LONG)?;
    }
}

/// An input of the live view.
enum WatchEvent {
    /// A new state of the plan, or the error of reading it.
    Plan(Result<Sheet, taskpawl::Error>),
    /// A key, or a new size of the terminal.
    Terminal(Event),
    /// The next frame of the animation is due.
    Turn,
    /// A signal, with its exit code.
    Signal(u8),
}

/// Draws the plan until the user quits, and leaves its last state on the terminal.
fn draw(plans: &Taskpawl, means: Means, paint: Paint) -> Result<ExitCode, CliError> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(CliError::Runtime)?;
    let mut drawing = Drawing { sheet: None, view: View::default(), paint };
    let exit = runtime.block_on(async {
        let mut sources = Sources::open(plans, means)?;
        let mut screen = Screen::enter()?;
        loop {
            let is_moving = drawing.sheet.as_ref().is_some_and(Sheet::is_moving);
            if let Some(exit) = drawing.handle(sources.next(is_moving).await, &mut screen)? {
                return Ok::<_, CliError>(exit);
            }
            screen.draw(drawing.frame())?;
        }
    })?;
    // The keyboard thread waits for a key that may never come, so it is not joined.
    runtime.shutdown_background();
    if let Some(sheet) = &drawing.sheet {
        let header = View { is_collapsed: true, width: drawing.view.width, ..View::default() };
        let header = frame(sheet, &header, paint);
        crate::output::write_out(&shown![Shown::joined(header, "\n"), "\n"])?;
    }
    Ok(ExitCode::from(exit))
}

/// Sources of events.
struct Sources {
    /// Sent by the thread that follows the store, until the receiver is dropped or after an error.
    plan: mpsc::Receiver<Result<Sheet, taskpawl::Error>>,
    /// Sent by the thread that reads the terminal, until the receiver is dropped or the terminal is closed.
    terminal: mpsc::Receiver<Event>,
    turns: Interval,
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Sources {
    fn open(plans: &Taskpawl, means: Means) -> Result<Self, CliError> {
        // Capacity 1: while the terminal is slow, the sender waits instead of queueing outdated states.
        let (plan_sender, plan) = mpsc::channel(1);
        let (terminal_sender, terminal) = mpsc::channel(64);
        let plans = plans.clone();
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            std::thread::Builder::new().name(name.to_owned()).spawn(work).map_err(CliError::Runtime)
        };
        spawn("taskpawl-follow", Box::new(move || follow(&plans, &means, &plan_sender)))?;
        spawn("taskpawl-keyboard", Box::new(move || read_terminal(&terminal_sender)))?;
        let mut turns = interval(TURN);
        turns.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let listen = |kind| signal(kind).map_err(CliError::Runtime);
        Ok(Self {
            plan,
            terminal,
            turns,
            interrupt: listen(SignalKind::interrupt())?,
            terminate: listen(SignalKind::terminate())?,
            hang_up: listen(SignalKind::hangup())?,
        })
    }

    /// Waits for the next event.
    async fn next(&mut self, is_moving: bool) -> WatchEvent {
        tokio::select! {
            // The channel closes only if that thread has panicked. The view would freeze without an error.
            sheet = self.plan.recv() => {
                WatchEvent::Plan(sheet.expect("BUG: the thread that follows the store ended without a message"))
            }
            Some(event) = self.terminal.recv() => WatchEvent::Terminal(event),
            _ = self.turns.tick(), if is_moving => WatchEvent::Turn,
            _ = self.interrupt.recv() => WatchEvent::Signal(130),
            _ = self.terminate.recv() => WatchEvent::Signal(143),
            _ = self.hang_up.recv() => WatchEvent::Signal(129),
        }
    }
}

/// The state that is drawn.
#[derive(Debug)]
struct Watched {
    board: Board,
    keeping: Keeping,
    /// The workers of running calls.
    places: CallPlaces,
}

impl Watched {
    fn read(plans: &Taskpawl, means: Means) -> Result<Self, taskpawl::Error> {
        Ok(Self {
            board: Board::read(plans.manager(), means)?,
            keeping: Keeping::read(plans)?,
            places: plans.engine().call_places(),
        })
    }

    fn follow(&mut self, manager: &Manager) -> Result<(), taskpawl::Error> {
        self.places.refresh();
        self.board.follow(manager)?;
        self.keeping.follow(manager)
    }

    /// Returns whether something can end without an event: a process that is killed, or a lease.
    fn is_held(&self) -> bool {
        self.board.is_held() || self.keeping.is_held()
    }

    fn sheet(&self, manager: &Manager) -> Sheet {
        Sheet {
            plan: self.board.checklist(manager.source().now(), &self.places),
            lists: self.keeping.lists(),
        }
    }
}

/// Sends the state whenever it has changed.
fn follow(plans: &Taskpawl, means: &Means, sender: &mpsc::Sender<Result<Sheet, taskpawl::Error>>) {
    /// Minimum time between two states of a plan that changes constantly.
    const PACE: Duration = Duration::from_millis(100);
    /// Killed processes and expired leases cause no event, so they are polled.
    const LOOK_AGAIN: Duration = Duration::from_secs(2);
    let mut watched = None;
    loop {
        let sheet = step(plans, means, &mut watched);
        let is_error = sheet.is_err();
        if sender.blocking_send(sheet).is_err() || is_error {
            return;
        }
        std::thread::sleep(PACE);
        let held = watched.as_ref().is_some_and(Watched::is_held);
        let revision = watched.as_ref().map(|watched| watched.board.revision()).unwrap_or_default();
        let waited = plans.manager().store().wait_change(revision, if held { LOOK_AGAIN } else { LONG });
        if let Err(error) = waited {
            let _ = sender.blocking_send(Err(error.into()));
            return;
        }
    }
}

fn step(plans: &Taskpawl, means: &Means, watched: &mut Option<Watched>) -> Result<Sheet, taskpawl::Error> {
    // The first pass reads the whole plan, later ones only the changes since.
    match watched {
        Some(watched) => watched.follow(plans.manager())?,
        None => *watched = Some(Watched::read(plans, means.clone())?),
    }
    Ok(watched.as_ref().map(|watched| watched.sheet(plans.manager())).unwrap_or_default())
}

fn read_terminal(sender: &mpsc::Sender<Event>) {
    while let Ok(event) = crossterm::event::read() {
        if sender.blocking_send(event).is_err() {
            return;
        }
    }
}

/// The state and the settings of the view.
struct Drawing {
    /// `None` until the plan was read.
    sheet: Option<Sheet>,
    view: View,
    paint: Paint,
}

impl Drawing {
    /// Handles an event, and returns the exit code if it ends the view.
    fn handle(&mut self, event: WatchEvent, screen: &mut Screen) -> Result<Option<u8>, CliError> {
        match event {
            WatchEvent::Plan(sheet) => self.sheet = Some(sheet?),
            WatchEvent::Terminal(Event::Key(key)) if key.kind != KeyEventKind::Release => {
                return Ok(self.press(key));
            }
            // The terminal may have moved old lines while it was resized: the difference to the last frame is
            // unknown.
            WatchEvent::Terminal(Event::Resize(..)) => screen.forget(),
            WatchEvent::Terminal(_) => {}
            WatchEvent::Turn => self.view.turn += 1,
            WatchEvent::Signal(exit) => return Ok(Some(exit)),
        }
        Ok(None)
    }

    #[expect(clippy::wildcard_enum_match_arm, reason = "all other keys do nothing")]
    fn press(&mut self, key: KeyEvent) -> Option<u8> {
        let page = self.view.room().unwrap_or(1).max(1);
        match key.code {
            KeyCode::Char('q') | KeyCode::Esc => return Some(0),
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Some(130),
            KeyCode::Char('c' | ' ') | KeyCode::Enter => self.view.is_collapsed = !self.view.is_collapsed,
            KeyCode::Char('a') => self.view.shows_all = !self.view.shows_all,
            KeyCode::Up | KeyCode::Char('k') => self.scroll(|at| at.saturating_sub(1)),
            KeyCode::Down | KeyCode::Char('j') => self.scroll(|at| at + 1),
            KeyCode::PageUp => self.scroll(|at| at.saturating_sub(page)),
            KeyCode::PageDown => self.scroll(|at| at + page),
            KeyCode::Home => self.scroll(|_| 0),
            KeyCode::End => self.scroll(|_| usize::MAX),
            _ => {}
        }
        None
    }

    /// Scrolls the view, and switches it to all tasks: the short view has only the important ones.
    fn scroll(&mut self, to: impl FnOnce(usize) -> usize) {
        self.view.shows_all = true;
        let furthest = self.sheet.as_ref().map_or(0, |sheet| self.view.furthest(sheet));
        self.view.scroll = to(self.view.scroll).min(furthest);
    }

    fn frame(&mut self) -> Vec<Shown> {
        let (columns, lines) = Screen::size();
        // A full line would wrap the cursor to the next line on some terminals.
        self.view.width = Some(columns.saturating_sub(1).max(1));
        self.view.height = Some(lines);
        self.view.has_keys = true;
        self.sheet.as_ref().map(|sheet| frame(sheet, &self.view, self.paint)).unwrap_or_default()
    }
}
