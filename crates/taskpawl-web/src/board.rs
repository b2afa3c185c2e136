//! The state of every task in columns, read once and then kept up to date with the events of the store.

use std::collections::{BTreeMap, VecDeque};

use serde::{Serialize, Serializer};
use taskpawl::model::task::{Event, EventKind, GateState, Node, Status, StatusKind, Work};
use taskpawl::model::value::{Key, TaskId};
use taskpawl::model::view::{View, ViewResult};

/// Events that are applied in one step.
const STEP: usize = 2_000;

/// Changes that are kept for clients which ask for those since a revision. A client that missed more reads everything again.
const MAX_KEPT: usize = 50_000;

/// The state of a task as the matrix shows it, written as one letter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cell {
    Waiting,
    Ready,
    /// Ready, and a person or an agent does it.
    ReadyByHand,
    Running,
    /// A person or an agent works on it.
    Held,
    /// Waits for a decision, or another reason of its own.
    Asking,
    /// Can no longer start, because of other tasks.
    Blocked,
    Done,
    Failed,
    Cancelled,
    Skipped,
}

impl Serialize for Cell {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Cell {
    /// All states with letter, name and the filter of the list that shows their tasks.
    pub(crate) const ALL: [(Self, char, &'static str); 11] = [
        (Self::Running, 'x', "running"),
        (Self::Held, 'h', "in work"),
        (Self::Asking, 'q', "asking"),
        (Self::Failed, 'f', "failed"),
        (Self::Blocked, 'b', "blocked"),
        (Self::Ready, 'r', "ready"),
        (Self::ReadyByHand, 'm', "to do"),
        (Self::Waiting, 'w', "waiting"),
        (Self::Done, 'd', "done"),
        (Self::Skipped, 's', "skipped"),
        (Self::Cancelled, 'c', "cancelled"),
    ];

    pub(crate) fn of(node: &Node) -> Self {
        match node.status_kind {
            StatusKind::Todo if node.gate_state == GateState::Ready && node.work == Work::Manual => {
                Self::ReadyByHand
            }
            StatusKind::Todo if node.gate_state == GateState::Ready => Self::Ready,
            StatusKind::Todo | StatusKind::BlockedWaiting => Self::Waiting,
            StatusKind::InProgress if node.work == Work::Manual => Self::Held,
            StatusKind::InProgress => Self::Running,
            StatusKind::BlockedOther => Self::Asking,
            StatusKind::BlockedDependency => Self::Blocked,
            StatusKind::Done => Self::Done,
            StatusKind::Failed => Self::Failed,
            StatusKind::Cancelled => Self::Cancelled,
            StatusKind::Skipped => Self::Skipped,
        }
    }

    pub(crate) fn letter(self) -> char {
        self.entry().1
    }

    pub(crate) fn name(self) -> &'static str {
        self.entry().2
    }

    /// Returns its place among all states: those that matter most come first. A failure comes before everything.
    pub(crate) fn rank(self) -> usize {
        if self == Self::Failed {
            return 0;
        }
        1 + Self::ALL.iter().position(|(cell, ..)| *cell == self).unwrap_or_default()
    }

    fn entry(self) -> (Self, char, &'static str) {
        let found = Self::ALL.into_iter().find(|(cell, ..)| *cell == self);
        found.expect("BUG: every state is listed")
    }
}

/// The columns, as the page reads them.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Columns {
    /// Changes when rows were added or moved: row numbers of another generation mean other tasks.
    pub(crate) generation: u64,
    pub(crate) revision: u64,
    pub(crate) ids: Vec<TaskId>,
    /// Number of dependencies on the longest way to the task.
    pub(crate) layers: Vec<u32>,
    /// One letter a task.
    pub(crate) states: String,
    /// Row of the parent, or -1.
    pub(crate) parents: Vec<i64>,
    /// Dependencies, as pairs of rows: the task, then the one that it depends on.
    pub(crate) edges: Vec<u32>,
    pub(crate) counts: BTreeMap<Status, u64>,
}

/// The changes since a revision.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Delta {
    pub(crate) generation: u64,
    pub(crate) revision: u64,
    /// The client has to read everything again.
    pub(crate) reset: bool,
    pub(crate) counts: BTreeMap<Status, u64>,
    /// New letters by row.
    pub(crate) cells: BTreeMap<u32, char>,
}

/// All tasks of a store.
#[derive(Debug, Default)]
pub(crate) struct Board {
    generation: u64,
    revision: u64,
    counts: BTreeMap<Status, u64>,
    rows: BTreeMap<Key, u32>,
    ids: Vec<TaskId>,
    layers: Vec<u32>,
    cells: Vec<Cell>,
    parents: Vec<i64>,
    edges: Vec<u32>,
    /// Changed rows by revision, the oldest first.
    changes: VecDeque<(u64, u32)>,
    /// Revision from which on `changes` is complete.
    since: u64,
}

impl Board {
    /// Reads all tasks. `generation` differs from that of every earlier board.
    pub(crate) fn read(view: &dyn View, generation: u64) -> ViewResult<Self> {
        let revision = view.revision()?;
        let mut board =
            Self { generation, revision, since: revision, counts: view.counts()?, ..Self::default() };
        let mut nodes = Vec::new();
        view.each_node(&mut |node| nodes.push(node))?;
        for node in &nodes {
            let Some(id) = view.id(node.key)? else { continue };
            board.rows.insert(node.key, row(board.ids.len()));
            board.ids.push(id);
            board.cells.push(Cell::of(node));
        }
        board.parents = nodes.iter().map(|node| board.row_of(node.parent)).collect();
        let mut edges = Vec::new();
        view.each_dependency(&mut |task, on| edges.push((task, on)))?;
        board.edges = edges
            .into_iter()
            .filter_map(|(task, on)| Some([*board.rows.get(&task)?, *board.rows.get(&on)?]))
            .flatten()
            .collect();
        board.layers = layers(board.ids.len(), &board.edges);
        Ok(board)
    }

    fn row_of(&self, key: Option<Key>) -> i64 {
        key.and_then(|key| self.rows.get(&key)).map_or(-1, |row| i64::from(*row))
    }

    pub(crate) fn revision(&self) -> u64 {
        self.revision
    }

    pub(crate) fn counts(&self) -> &BTreeMap<Status, u64> {
        &self.counts
    }

    /// Returns the number of tasks in each state, for states that have any.
    pub(crate) fn count_cells(&self) -> BTreeMap<char, u64> {
        let mut counts = BTreeMap::new();
        for cell in &self.cells {
            *counts.entry(cell.letter()).or_default() += 1;
        }
        counts
    }

    /// Shows other states and counts. Tasks without a state did not exist then, and are left out.
    pub(crate) fn show_past(
        &mut self,
        revision: u64,
        counts: BTreeMap<Status, u64>,
        cells: &BTreeMap<Key, Cell>,
    ) {
        let kept: Vec<(Key, usize, Cell)> =
            self.rows.iter().filter_map(|(key, row)| Some((*key, *row as usize, *cells.get(key)?))).collect();
        let mut kept_rows = kept.clone();
        kept_rows.sort_by_key(|(_, row, _)| *row);
        let moved: BTreeMap<u32, u32> =
            kept_rows.iter().enumerate().map(|(at, (_, old, _))| (row(*old), row(at))).collect();
        let parent = |old: usize| u32::try_from(self.parents[old]).ok().and_then(|old| moved.get(&old));
        let edges = self
            .edges
            .chunks_exact(2)
            .filter_map(|pair| Some([*moved.get(&pair[0])?, *moved.get(&pair[1])?]));
        *self = Self {
            generation: 0,
            revision,
            counts,
            rows: kept.iter().map(|(key, old, _)| (*key, moved[&row(*old)])).collect(),
            ids: kept_rows.iter().map(|(_, old, _)| self.ids[*old].clone()).collect(),
            layers: kept_rows.iter().map(|(_, old, _)| self.layers[*old]).collect(),
            cells: kept_rows.iter().map(|(.., cell)| *cell).collect(),
            parents: kept_rows
                .iter()
                .map(|(_, old, _)| parent(*old).map_or(-1, |row| i64::from(*row)))
                .collect(),
            edges: edges.flatten().collect(),
            changes: VecDeque::new(),
            since: revision,
        };
    }

    /// Returns the state of a task.
    pub(crate) fn cell_of(&self, key: Key) -> Option<Cell> {
        self.rows.get(&key).map(|row| self.cells[*row as usize])
    }

    /// Returns the number of tasks that may start now.
    pub(crate) fn count_ready(&self) -> u64 {
        self.cells.iter().filter(|cell| matches!(cell, Cell::Ready | Cell::ReadyByHand)).count() as u64
    }

    /// Returns the ids of the tasks in one of the states of `letters`, by age.
    pub(crate) fn ids_in<'b>(&'b self, letters: &'b str) -> impl Iterator<Item = &'b TaskId> {
        let wanted = move |cell: &Cell| letters.is_empty() || letters.contains(cell.letter());
        self.ids.iter().zip(&self.cells).filter(move |(_, cell)| wanted(cell)).map(|(id, _)| id)
    }

    pub(crate) fn columns(&self) -> Columns {
        Columns {
            generation: self.generation,
            revision: self.revision,
            ids: self.ids.clone(),
            layers: self.layers.clone(),
            states: self.cells.iter().map(|cell| cell.letter()).collect(),
            parents: self.parents.clone(),
            edges: self.edges.clone(),
            counts: self.counts.clone(),
        }
    }

    /// Applies the events since the last call. Returns false if the tasks or their edges changed, so that everything has to be read again.
    pub(crate) fn follow(&mut self, view: &dyn View) -> ViewResult<bool> {
        loop {
            let events = view.events(self.revision, None, STEP)?;
            if events.iter().any(changes_structure) {
                return Ok(false);
            }
            for event in &events {
                self.apply(view, event)?;
            }
            self.revision = events.last().map_or(self.revision, |event| event.revision);
            if events.len() < STEP {
                break;
            }
        }
        self.counts = view.counts()?;
        Ok(true)
    }

    fn apply(&mut self, view: &dyn View, event: &Event) -> ViewResult<()> {
        for key in &event.ready {
            self.update(view, *key, event.revision)?;
        }
        let Some(key) = event.task.as_ref().map(|id| view.key(id.as_str())).transpose()?.flatten() else {
            return Ok(());
        };
        self.update(view, key, event.revision)?;
        // A task that starts over closes the gates behind it, and its dependents have no event of their own.
        if matches!(event.kind, EventKind::Status { from, to, .. } if from.is_finished() && !to.is_finished())
        {
            for dependent in view.dependents(key)?.into_iter().chain(view.subtasks(key)?) {
                self.update(view, dependent, event.revision)?;
            }
        }
        Ok(())
    }

    fn update(&mut self, view: &dyn View, key: Key, revision: u64) -> ViewResult<()> {
        let (Some(row), Some(node)) = (self.rows.get(&key), view.node(key)?) else { return Ok(()) };
        let cell = Cell::of(&node);
        let kept = &mut self.cells[*row as usize];
        if *kept != cell {
            *kept = cell;
            self.changes.push_back((revision, *row));
            if self.changes.len() > MAX_KEPT
                && let Some((dropped, _)) = self.changes.pop_front()
            {
                self.since = dropped;
            }
        }
        Ok(())
    }

    /// Returns the changes since a revision of the same generation.
    pub(crate) fn since(&self, generation: u64, revision: u64) -> Delta {
        let is_complete = generation == self.generation && (self.since..=self.revision).contains(&revision);
        let at = self.changes.partition_point(|(changed, _)| *changed <= revision);
        let rows = self.changes.range(at..).map(|(_, row)| *row).filter(|_| is_complete);
        Delta {
            generation: self.generation,
            revision: self.revision,
            reset: !is_complete,
            counts: self.counts.clone(),
            cells: rows.map(|row| (row, self.cells[row as usize].letter())).collect(),
        }
    }
}

fn row(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

/// Returns whether an event may add, remove or move tasks, or change their edges.
fn changes_structure(event: &Event) -> bool {
    !matches!(
        event.kind,
        EventKind::Status { .. }
            | EventKind::Updated { .. }
            | EventKind::Renewed { .. }
            | EventKind::CallStarted { .. }
            | EventKind::CallEnded { .. }
            | EventKind::Stopped { .. }
            | EventKind::RoundEnded { .. }
            | EventKind::SentBack { .. }
            | EventKind::ApprovedAhead { .. }
            | EventKind::Noted { .. }
            | EventKind::RunStarted { .. }
            | EventKind::RunFinished { .. }
            | EventKind::RunStopRequested { .. }
            | EventKind::RunKilled {}
            | EventKind::Signal(_)
            | EventKind::Checklist(_)
    )
}

/// Returns the layer of each row: one more than the highest layer of its dependencies.
fn layers(count: usize, edges: &[u32]) -> Vec<u32> {
    let pairs = || edges.chunks_exact(2).map(|pair| (pair[0] as usize, pair[1] as usize));
    let (mut open, mut dependents) = (vec![0_u32; count], vec![Vec::new(); count]);
    for (task, on) in pairs() {
        open[task] += 1;
        dependents[on].push(task);
    }
    let mut layers = vec![0; count];
    let mut next: Vec<usize> = (0..count).filter(|row| open[*row] == 0).collect();
    while let Some(row) = next.pop() {
        for dependent in &dependents[row] {
            layers[*dependent] = layers[*dependent].max(layers[row] + 1);
            open[*dependent] -= 1;
            if open[*dependent] == 0 {
                next.push(*dependent);
            }
        }
    }
    layers
}
