//! Steps of workers and commands, and checks whether a store has them.

use std::process::Command;

use taskpawl::Manager;
use taskpawl::model::task::{Status, Task};

use super::home::Home;

/// Returns steps on a few tasks each: create, note, claim, done, and sometimes a plan.
pub(crate) fn steps(count: usize) -> Vec<String> {
    let step = |number: usize| {
        let task = number / 5;
        match number % 5 {
            0 => format!("create t{task}"),
            1 => format!("note t{task} remark{number}"),
            2 => format!("claim t{task}"),
            3 => format!("done t{task}"),
            _ => format!("apply plan{task} 3"),
        }
    };
    (0..count).map(step).collect()
}

/// Returns the command that performs a step.
pub(crate) fn program_of(home: &Home, step: &str) -> Command {
    let words: Vec<&str> = step.split(' ').collect();
    match *words {
        ["create", id] => home.program(&["create", id, "--id", id]),
        ["note", id, text] => home.program(&["note", id, text]),
        ["claim", id] => home.program(&["claim", id]),
        ["done", id] => home.program(&["done", id]),
        ["apply", name, count] => {
            let tasks: Vec<String> =
                (0..count.parse().unwrap()).map(|number: usize| format!("{{id: {name}-{number}}}")).collect();
            let plan = home.file(&format!("{name}.yaml"), &format!("tasks: [{}]", tasks.join(",")));
            home.program(&["apply", plan.to_str().unwrap()])
        }
        _ => panic!("no step {words:?}"),
    }
}

/// Returns whether the effect of a step is in the store; an error if only a part of it is.
pub(crate) fn is_there(manager: &Manager, step: &str) -> Result<bool, String> {
    let words: Vec<&str> = step.split(' ').collect();
    let is = |id: &str, test: &dyn Fn(&Task) -> bool| match manager.get(id) {
        Ok(task) => Ok(test(&task)),
        Err(taskpawl::Error::Refused(_)) => Ok(false),
        Err(error) => Err(error.to_string()),
    };
    match *words {
        ["create", id] => is(id, &|_| true),
        ["note", id, text] => is(id, &|task| task.notes.iter().any(|note| note.text == text)),
        ["claim", id] => is(id, &|task| task.status != Status::Todo),
        ["done", id] => is(id, &|task| task.status == Status::Done),
        ["apply", name, count] => {
            let count: usize = count.parse().unwrap();
            let found: Vec<bool> = (0..count)
                .map(|number| is(&format!("{name}-{number}"), &|_| true))
                .collect::<Result<_, _>>()?;
            let some = found.iter().filter(|there| **there).count();
            if some == 0 || some == count { Ok(some > 0) } else { Err(format!("{some} tasks of {step}")) }
        }
        _ => panic!("no step {words:?}"),
    }
}

/// Returns the mistakes of a store after a crash: missing acknowledged steps, half steps, broken invariants, and a failing next
/// write.
pub(crate) fn losses(home: &Home, steps: &[String], acknowledged: usize) -> Vec<String> {
    let manager = home.manager();
    let mut wrong = Vec::new();
    for (number, step) in steps.iter().enumerate() {
        match is_there(&manager, step) {
            Ok(false) if number < acknowledged => wrong.push(format!("`{step}` is lost")),
            Ok(_) => {}
            Err(error) => wrong.push(error),
        }
    }
    match manager.read(|view| Ok(taskpawl_testkit::broken_invariants(view)?)) {
        Ok(broken) => wrong.extend(broken),
        Err(error) => wrong.push(error.to_string()),
    }
    match manager.create(super::home::named("after")) {
        Ok(_) => {}
        Err(error) => wrong.push(format!("the next write: {error}")),
    }
    wrong
}
