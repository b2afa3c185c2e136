//! In-process tasks without work: the cost that engine and store add to a bare loop and to bare SQLite.

use crate::context::Context;
use crate::group::{Goal, Group, Subject};
use crate::once::spawned;
use crate::peers::Peers;
use crate::shape::Shape;

/// Number of calls at the same time.
const JOBS: &str = "64";

const TASKPAWL: &str = "taskpawl, memory";
const FEW: &str = "taskpawl, memory, 10,000 tasks";
const TWO_WORKERS: &str = "bare loop, two workers";
const ONE_WORKER: &str = "bare loop, one worker";
const DAGRS: &str = "dagrs";
pub(crate) const DASK: &str = "dask, threaded";
const LANGGRAPH: &str = "LangGraph";

/// Without persistence: taskpawl compared with the bare loop and with libraries.
pub(crate) fn memory(context: &Context, shape: Shape) -> Group {
    let tasks = context.many();
    let mut subjects = vec![taskpawl(TASKPAWL, shape, tasks), taskpawl(FEW, shape, 10_000)];
    subjects
        .extend([(TWO_WORKERS, 2), (ONE_WORKER, 1)].map(|(name, workers)| bare(name, shape, tasks, workers)));
    subjects.push(dagrs(context, shape));
    subjects.push(python(context, DASK, "dask_peer.py", shape, 10_000));
    subjects.push(python(context, LANGGRAPH, "langgraph_peer.py", shape, 500));
    Group {
        title: format!("{tasks} tasks that do nothing, {}, nothing kept", shape.name()),
        unit: "task".into(),
        subjects,
        goals: vec![
            Goal::at_most(TASKPAWL, 6.0, TWO_WORKERS).stretch(3.0),
            Goal::times_better(TASKPAWL, 3.0, DAGRS).stretch(5.0),
            Goal::times_better(TASKPAWL, 20.0, DASK),
            Goal::times_better(TASKPAWL, 100.0, LANGGRAPH),
            Goal::at_most(TASKPAWL, 1.3, FEW),
        ],
        is_fixed: false,
    }
}

fn taskpawl(name: &str, shape: Shape, tasks: usize) -> Subject {
    Subject::new(name, tasks, move || spawned(&["run", ":memory:", JOBS, shape.name(), &tasks.to_string()]))
}

fn bare(name: &str, shape: Shape, tasks: usize, workers: usize) -> Subject {
    Subject::new(name, tasks, move || {
        spawned(&["bare-loop", shape.name(), &tasks.to_string(), JOBS, &workers.to_string()])
    })
}

/// Runs at most 100,000 tasks, because dagrs needs 6,700 bytes of memory per task.
fn dagrs(context: &Context, shape: Shape) -> Subject {
    const TASKS: usize = 100_000;
    context.peers().subject(DAGRS, "dagrs-peer", TASKS, move |command| {
        command.arg(shape.name()).arg(TASKS.to_string());
    })
}

pub(crate) fn python(context: &Context, name: &str, script: &str, shape: Shape, tasks: usize) -> Subject {
    let script = Peers::script(script);
    context.peers().subject(name, "python", tasks, move |command| {
        command.arg(&script).arg(shape.name()).arg(tasks.to_string());
    })
}
