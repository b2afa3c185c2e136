//! The input and the directory of each command of a line.

use super::Plain;
use crate::policy::directory::Directory;

/// The operator in front of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Joint {
    /// `;`, `&`, a line end, or nothing.
    #[default]
    Next,
    /// `&&`
    And,
    /// `||`
    Or,
    /// `|`
    Pipe,
}

impl Joint {
    /// Returns the operator that a character, or a doubled one, stands for.
    pub(super) fn of(char: char, is_doubled: bool) -> Self {
        match (char, is_doubled) {
            ('&', true) => Self::And,
            ('|', true) => Self::Or,
            ('|', false) => Self::Pipe,
            _ => Self::Next,
        }
    }
}

/// Shell commands that change the directory of what follows.
const MOVING: &[&str] = &["cd", "chdir", "popd", "pushd"];

/// Says of each command whether it reads a pipe and where it may run, and leaves out each `cd`: it does nothing but that.
///
/// A `cd` may fail, so that only what `&&` joins to it surely runs there. Everything else may run wherever the line may have been.
pub(super) fn settled(commands: Vec<(Joint, Plain)>) -> Vec<Plain> {
    if commands.iter().all(|(_, command)| is_cd(command)) {
        return commands.into_iter().map(|(_, command)| command).collect();
    }
    let (mut here, mut ever) = (vec![Directory::root()], vec![Directory::root()]);
    let mut settled = Vec::new();
    for (joint, mut command) in commands {
        if joint != Joint::And {
            here.clone_from(&ever);
        }
        if let Some(there) = directories_after(&command, &here) {
            // Behind `||` or in a pipe it may not have run in this shell.
            if matches!(joint, Joint::Or | Joint::Pipe) {
                add(&mut here, &there);
            } else {
                here.clone_from(&there);
            }
            add(&mut ever, &there);
        }
        if !is_cd(&command) {
            command.has_input |= joint == Joint::Pipe;
            command.directories.clone_from(&here);
            settled.push(command);
        }
    }
    settled
}

fn is_cd(command: &Plain) -> bool {
    command.argv[0] == "cd"
}

fn add(to: &mut Vec<Directory>, more: &[Directory]) {
    for directory in more {
        if !to.contains(directory) {
            to.push(directory.clone());
        }
    }
}

/// Returns the directories in which a shell may be after a command that changes its own.
fn directories_after(command: &Plain, here: &[Directory]) -> Option<Vec<Directory>> {
    if !MOVING.contains(&command.argv[0].as_str()) {
        return None;
    }
    let args: Vec<&str> = command.argv[1..].iter().map(String::as_str).collect();
    let path = match args[..] {
        ["--", path] | [path] if is_cd(command) && !path.is_empty() && !path.starts_with('-') => Some(path),
        _ => None,
    };
    // `CDPATH=/etc cd x` goes elsewhere.
    let path = path.filter(|_| command.variables.is_empty());
    Some(match path {
        Some(path) => here.iter().map(|directory| directory.join(path)).collect(),
        None => vec![Directory::Elsewhere],
    })
}
