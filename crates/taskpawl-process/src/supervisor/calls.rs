use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::io;
use std::os::fd::OwnedFd;

use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitOptions, getpgid, getpid, kill_process, kill_process_group, wait, waitpid,
};

use super::process_tree::{self, Children, FileId};
use super::signals::{self, Child};
use super::spawn::{Descriptors, Spawner};
use super::wire::Reply;
use crate::faults::{self, Fault};
use crate::handover::{number_of, pass_on};
use crate::spawn_spec::SpawnSpec;

/// The programs of a run, and their descendants.
///
/// A process whose parent has ended becomes a child of the supervisor: it is *adopted*. The kernel does not
/// record the program that started it, but its process group, its environment marker and its open files
/// identify the call.
#[derive(Debug)]
pub(super) struct Calls {
    mark: String,
    by_id: HashMap<u64, Call>,
    /// The leaders of process groups, with their calls.
    leaders: HashMap<Pid, u64>,
    adopted: HashMap<Pid, Adopted>,
    children: Children,
    spawner: Spawner,
}

#[derive(Debug)]
struct Call {
    leader: Pid,
    outputs: Vec<FileId>,
    /// The exit status of the leader. Once it is set, all processes of the call are killed.
    status: Option<i32>,
}

#[derive(Debug)]
struct Adopted {
    origin: Origin,
    is_killed: bool,
}

/// The origin of an adopted process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Origin {
    Call(u64),
    /// The process was already exiting when it was adopted, so its marker and files could not be read. It may
    /// belong to any call.
    Ending,
    /// The process has removed all traces of its call. It lives until the end of the run.
    Hidden,
}

impl Calls {
    /// Creates an empty set. The environment marker of each call begins with `mark`, and each call gets the
    /// Landlock rules `room`.
    pub(super) fn new(mark: String, room: Option<OwnedFd>) -> io::Result<Self> {
        let (by_id, leaders, adopted) = (HashMap::new(), HashMap::new(), HashMap::new());
        Ok(Self { mark, by_id, leaders, adopted, children: Children::new(), spawner: Spawner::new(room)? })
    }

    /// Starts a program. `streams` has its standard output and standard error, then the passed descriptor and
    /// standard input, if any.
    pub(super) fn start(
        &mut self,
        id: u64,
        spec: &SpawnSpec<'_>,
        streams: Vec<OwnedFd>,
    ) -> Result<(), Errno> {
        let mut streams = streams.into_iter();
        let (Some(stdout), Some(stderr)) = (streams.next(), streams.next()) else {
            return Err(Errno::INVAL);
        };
        let outputs = [&stdout, &stderr].into_iter().filter_map(process_tree::file_of).collect();
        // Closed right after the start, so that the next program does not inherit it.
        let inherited = match spec.handover {
            Some(variable) => Some((variable, pass_on(&streams.next().ok_or(Errno::INVAL)?)?)),
            None => None,
        };
        let number = inherited.as_ref().map(|(variable, inherited)| (*variable, number_of(inherited)));
        let streams = Descriptors { stdin: streams.next(), stdout, stderr };
        let mark = format!("{}{id}", self.mark);
        let mut variables = vec![(OsStr::new(process_tree::MARK), OsStr::new(&mark))];
        variables.extend(number.as_ref().map(|(variable, number)| (*variable, OsStr::new(number))));
        let leader = self.spawner.spawn(spec, &variables, &streams)?;
        drop(inherited);
        self.leaders.insert(leader, id);
        self.by_id.insert(id, Call { leader, outputs, status: None });
        Ok(())
    }

    /// Signals all processes of a running program.
    pub(super) fn signal(&mut self, id: u64, signal: Signal) {
        let Some(leader) = self.by_id.get(&id).filter(|call| call.status.is_none()).map(|call| call.leader)
        else {
            return;
        };
        // Collect the descendants first: when a parent ends, its children are reparented and the relation is
        // lost.
        let descendants = process_tree::descendants(leader);
        self.adopt();
        let adopted = self.adopted.iter().filter(|(_, adopted)| adopted.origin == Origin::Call(id));
        let adopted: Vec<Pid> = adopted.map(|(process, _)| *process).collect();
        let is_outside = |process| getpgid(Some(process)).is_ok_and(|group| group != leader);
        // Errors mean that the processes are gone.
        let _ = kill_process_group(leader, signal);
        if is_outside(leader) {
            let _ = kill_process(leader, signal);
        }
        descendants
            .iter()
            .filter(|descendant| is_outside(descendant.process))
            .for_each(|descendant| descendant.signal(signal));
        for process in adopted {
            let descendants = process_tree::descendants(process);
            if is_outside(process) {
                let _ = kill_process(process, signal);
            }
            descendants
                .iter()
                .filter(|descendant| is_outside(descendant.process))
                .for_each(|descendant| descendant.signal(signal));
        }
    }

    /// Reaps ended processes, kills the processes of ended calls, and returns the calls without remaining
    /// processes.
    pub(super) fn reap(&mut self) -> Vec<Reply> {
        let rest = loop {
            let process = match signals::next_child() {
                Child::Ended(process) => process,
                rest @ (Child::Living | Child::None) => break rest,
            };
            let call = self.leaders.get(&process).and_then(|id| self.by_id.get_mut(id));
            if let Some(call) = call.filter(|call| call.status.is_none()) {
                // The group id cannot be reused before the leader is reaped, so kill first.
                let _ = kill_process_group(process, Signal::KILL);
                call.status = Some(reap(process));
            } else {
                self.adopted.remove(&process);
                reap(process);
            }
        };
        if rest != Child::None {
            self.adopt();
        }
        self.settle()
    }

    fn settle(&mut self) -> Vec<Reply> {
        let mut unsettled = HashSet::new();
        let mut is_any_ending = false;
        for (process, adopted) in &mut self.adopted {
            is_any_ending |= adopted.origin == Origin::Ending;
            let Origin::Call(id) = adopted.origin else { continue };
            if self.by_id.get(&id).is_some_and(|call| call.status.is_none()) {
                continue;
            }
            if !std::mem::replace(&mut adopted.is_killed, true) && !kill_with_descendants(*process) {
                // EPERM: the process has changed its user. It cannot be killed, so the call must not wait for
                // it.
                adopted.origin = Origin::Hidden;
                continue;
            }
            unsettled.insert(id);
        }
        // An exiting process may belong to any call. It ends within moments, and then this is called again.
        let is_over =
            |id: &u64, call: &mut Call| call.status.is_some() && !unsettled.contains(id) && !is_any_ending;
        let over: Vec<(u64, Call)> = self.by_id.extract_if(is_over).collect();
        let mut replies = Vec::with_capacity(over.len());
        for (id, Call { leader, status, .. }) in over {
            // The pid of a reaped leader may already be that of a new leader.
            if self.leaders.get(&leader) == Some(&id) {
                self.leaders.remove(&leader);
            }
            replies.extend(status.map(|status| Reply::Ended { id, status }));
        }
        replies
    }

    /// Finds and classifies the children that the supervisor has not started itself.
    fn adopt(&mut self) {
        for process in self.children.list() {
            if !self.is_leader(process) && !self.adopted.contains_key(&process) {
                let origin = self.origin_of(process);
                self.adopted.insert(process, Adopted { origin, is_killed: false });
            }
        }
    }

    fn is_leader(&self, process: Pid) -> bool {
        let call = self.leaders.get(&process).and_then(|id| self.by_id.get(id));
        call.is_some_and(|call| call.status.is_none())
    }

    fn origin_of(&self, process: Pid) -> Origin {
        match self.call_of(process) {
            Some(call) => Origin::Call(call),
            // Check this last: a process may have started to exit between the previous checks.
            None if process_tree::is_ending(process) => Origin::Ending,
            None => Origin::Hidden,
        }
    }

    /// Returns the call of a running program or of one of its descendants.
    pub(super) fn call_of_program(&self, process: Pid) -> Option<u64> {
        let mut process = process;
        loop {
            if self.is_leader(process) {
                return self.leaders.get(&process).copied();
            }
            let parent = process_tree::parent_of(process)?;
            if parent == getpid() {
                return self.call_of(process);
            }
            process = parent;
        }
    }

    /// Returns the call of an adopted process, which may have ended long ago.
    fn call_of(&self, process: Pid) -> Option<u64> {
        let by_group = || self.leaders.get(&getpgid(Some(process)).ok()?).copied();
        if faults::is_on(Fault::OnlyGroup) {
            return by_group();
        }
        by_group().or_else(|| self.call_by_mark(process)).or_else(|| self.call_by_output(process))
    }

    fn call_by_mark(&self, process: Pid) -> Option<u64> {
        let mark = process_tree::marker_of(process)?;
        // A supervisor inside the program appends its own marker after a slash.
        mark.strip_prefix(&self.mark)?.split('/').next()?.parse().ok()
    }

    fn call_by_output(&self, process: Pid) -> Option<u64> {
        let files = process_tree::open_files(process);
        let holds = |call: &Call| call.outputs.iter().any(|output| files.contains(output));
        self.by_id.iter().find(|(_, call)| holds(call)).map(|(id, _)| *id)
    }

    /// Kills all descendants of this process, until there is none.
    pub(super) fn kill_everything(&mut self) {
        let mut out_of_reach = HashSet::new();
        for leader in self.leaders.keys() {
            let _ = kill_process_group(*leader, Signal::KILL);
        }
        // Children of a killed process are reparented to this one, so the loop finds them in the next round.
        while has_children() {
            let children = self.children.list();
            for child in &children {
                if kill_process(*child, Signal::KILL) == Err(Errno::PERM) {
                    out_of_reach.insert(*child);
                }
            }
            // Only processes of other users are left, which cannot be killed. Waiting for them could take
            // forever.
            if !children.is_empty() && children.iter().all(|child| out_of_reach.contains(child)) {
                return;
            }
            let _ = wait(WaitOptions::empty());
        }
    }
}

/// Reaps an ended child and returns its status.
fn reap(process: Pid) -> i32 {
    match waitpid(Some(process), WaitOptions::empty()) {
        Ok(Some((_, status))) => status.as_raw(),
        Ok(None) | Err(_) => -1,
    }
}

/// Kills an adopted process and its descendants. Returns false if it belongs to another user.
fn kill_with_descendants(process: Pid) -> bool {
    let descendants = process_tree::descendants(process);
    let killed = kill_process(process, Signal::KILL);
    for descendant in descendants {
        descendant.signal(Signal::KILL);
    }
    killed != Err(Errno::PERM)
}

/// Reaps all ended children. Returns whether any child is left.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use rustix::process::{WaitId, WaitIdOptions, waitid};

    use super::*;

    #[test]
    fn a_call_is_not_over_while_an_exiting_process_may_belong_to_it() {
        let mut hidden = Command::new("sleep");
        hidden.arg("1000").env_clear().stdout(Stdio::null()).stderr(Stdio::null());
        let mut hidden = hidden.spawn().unwrap();
        let process = Pid::from_child(&hidden);
        let mut calls = Calls::new("mark.".to_owned(), None).unwrap();
        let mut settle_one = |origin| {
            calls.by_id.insert(1, Call { leader: process, outputs: Vec::new(), status: Some(0) });
            calls.adopted.insert(process, Adopted { origin, is_killed: false });
            calls.settle().len()
        };
        let origin_of = |process| Calls::new("mark.".to_owned(), None).unwrap().origin_of(process);
        let while_it_lives = origin_of(process);
        hidden.kill().unwrap();
        // A zombie: it has ended but is not reaped.
        waitid(WaitId::Pid(process), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).unwrap();
        let at_its_end = origin_of(process);
        hidden.wait().unwrap();
        assert_eq!((while_it_lives, at_its_end), (Origin::Hidden, Origin::Ending));
        assert_eq!((settle_one(while_it_lives), settle_one(at_its_end)), (1, 0));
    }
}
