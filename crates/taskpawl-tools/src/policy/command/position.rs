//! Input and directory of each command of a line.

use super::plain_command::Plain;
use crate::policy::directory::Directory;

/// Operator in front of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Joint {
    /// `;`, `&`, a line end, or the start of the line.
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
    /// Returns the operator of a character, single or doubled.
    pub(super) fn of(char: char, is_doubled: bool) -> Self {
        match (char, is_doubled) {
            ('&', true) => Self::And,
            ('|', true) => Self::Or,
            ('|', false) => Self::Pipe,
            _ => Self::Next,
        }
    }
}

/// Shell commands that change the directory for the following commands.
const MOVING: &[&str] = &["cd", "chdir", "popd", "pushd"];

/// Determines for each command if it reads a pipe and where it may run, and drops each `cd`, which has no other effect.
///
/// A `cd` may fail. Only a command that is joined to it with `&&` certainly runs in the new directory; others may run
/// in any directory that the line has been in.
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
        if let Some(entered) = directories_after(&command, &here) {
            // After `||` it may be skipped, and in a pipe it may run in a subshell.
            if matches!(joint, Joint::Or | Joint::Pipe) {
                add(&mut here, &entered);
            } else {
                here.clone_from(&entered);
            }
            add(&mut ever, &entered);
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

/// Returns the directories in which a shell may be after a command that changes its directory.
fn directories_after(command: &Plain, here: &[Directory]) -> Option<Vec<Directory>> {
    if !MOVING.contains(&command.argv[0].as_str()) {
        return None;
    }
    let args: Vec<&str> = command.argv[1..].iter().map(String::as_str).collect();
    let path = match args[..] {
        ["--", path] | [path] if is_cd(command) && !path.is_empty() && !path.starts_with('-') => Some(path),
        _ => None,
    };
    // `CDPATH=/etc cd x` enters `/etc/x`.
    let path = path.filter(|_| command.variables.is_empty());
    Some(match path {
        Some(path) => here.iter().map(|directory| directory.join(path)).collect(),
        None => vec![Directory::Elsewhere],
    })
}
