use std::collections::BTreeMap;

use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, TargetArch, apply_filter,
};

use crate::faults::{self, Fault};
use crate::profile::{Enforcement, NetworkWall};
use crate::sandbox::refusal::Refusal;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;

/// `open_tree_attr`, which has this number on every architecture.
const OPEN_TREE_ATTR: libc::c_long = 467;

/// System calls that no ordinary program needs, and that lead out of a sandbox or expose much of the kernel.
const DENIED: &[libc::c_long] = &[
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_open_tree,
    OPEN_TREE_ATTR,
    libc::SYS_move_mount,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // Keys of the user and of the session, which no namespace separates.
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    // Interfaces that were used in many attacks on the kernel.
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    // Access to files by handle instead of path, which bypasses restrictions on paths.
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // The machine itself.
    libc::SYS_kexec_load,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_kexec_file_load,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_iopl,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_ioperm,
];

/// `fchmodat2`, which has this number on every architecture.
const FCHMODAT2: libc::c_long = 452;

/// The bits of a mode that give a file's owner or group to those who execute it.
const SET_ID_BITS: [libc::mode_t; 2] = [libc::S_ISUID, libc::S_ISGID];

/// The flags of an open that creates a file. `O_TMPFILE` contains `O_DIRECTORY`, which alone creates none.
const CREATING_FLAGS: [libc::c_int; 2] = [libc::O_CREAT, libc::O_TMPFILE & !libc::O_DIRECTORY];

/// System calls with the mode of a file, which they always set, and the position of that argument.
const MODES: &[(libc::c_long, u8)] = &[
    (libc::SYS_fchmod, 1),
    (libc::SYS_fchmodat, 2),
    (FCHMODAT2, 2),
    (libc::SYS_mknodat, 2),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, 1),
];

/// System calls that open files, and the position of the flags. The mode follows them, and has a meaning only if a file is created.
const OPENS: &[(libc::c_long, u8)] = &[
    (libc::SYS_openat, 2),
    (libc::SYS_mq_open, 1),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, 1),
];

/// Flags of `clone` that create namespaces.
const NAMESPACES: [libc::c_int; 7] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
];

/// `ioctl` commands that insert input into a terminal, as if its user had typed it.
const TERMINAL_COMMANDS: [libc::c_ulong; 2] = [libc::TIOCSTI, libc::TIOCLINUX];

/// The values `PRIO_USER` and `IOPRIO_WHO_USER`, by which `setpriority` and `ioprio_set` address all processes of a user.
const PRIORITIES_OF_USER: u64 = 2;
const DISK_PRIORITIES_OF_USER: u64 = 3;

/// Socket families whose reach is limited by the network namespace and by covered directories.
const HARMLESS_FAMILIES: [libc::c_int; 4] = [libc::AF_UNIX, libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

/// Denies system calls to this process and all its descendants, for good.
pub(super) fn filter(enforcement: &Enforcement) -> Result<(), Refusal> {
    if faults::is_on(Fault::NoFilter) {
        return Ok(());
    }
    let refuse = |error: &dyn std::fmt::Display| {
        Refusal::new(
            format!("the system does not support system call filters ({error})"),
            "use a kernel with `CONFIG_SECCOMP_FILTER` on x86_64 or aarch64",
        )
    };
    let programs = programs(enforcement).map_err(|error| refuse(&error))?;
    programs.iter().try_for_each(|program| apply_filter(program).map_err(|error| refuse(&error)))
}

fn programs(enforcement: &Enforcement) -> Result<Vec<BpfProgram>, BackendError> {
    let target: TargetArch = std::env::consts::ARCH.try_into()?;
    let program = |rules: Rules, errno: libc::c_int| {
        let action = SeccompAction::Errno(errno.cast_unsigned());
        SeccompFilter::new(rules, SeccompAction::Allow, action, target)?.try_into()
    };
    let mut denied = denied()?;
    denied.extend(scheduling(enforcement.own_processes)?);
    denied.insert(libc::SYS_socket, sockets(enforcement.network, enforcement.mounts)?);
    denied.insert(libc::SYS_socketpair, datagram_pairs()?);
    Ok(vec![
        #[cfg(target_arch = "x86_64")]
        without_second_numbering(),
        program(denied, libc::EPERM)?,
        // The arguments of these are behind a pointer, which a filter cannot read. Callers that get `ENOSYS` fall back to `clone` and
        // `openat`.
        program(Rules::from([(libc::SYS_clone3, vec![]), (libc::SYS_openat2, vec![])]), libc::ENOSYS)?,
    ])
}

fn denied() -> Result<Rules, BackendError> {
    let mut rules: Rules = DENIED.iter().map(|number| (*number, vec![])).collect();
    let makes = |flag: libc::c_int| {
        let flag = u64::from(flag.cast_unsigned());
        one(SeccompCondition::new(0, SeccompCmpArgLen::Qword, SeccompCmpOp::MaskedEq(flag), flag)?)
    };
    rules.insert(libc::SYS_clone, NAMESPACES.into_iter().map(makes).collect::<Result<_, _>>()?);
    // A process may still change its own limits (process id 0).
    let others = SeccompCondition::new(0, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, 0)?;
    rules.insert(libc::SYS_prlimit64, vec![one(others)?]);
    rules.extend(set_ids()?);
    let types = |command| one(SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, command)?);
    rules.insert(libc::SYS_ioctl, TERMINAL_COMMANDS.into_iter().map(types).collect::<Result<_, _>>()?);
    Ok(rules)
}

/// Denies the set-user-ID and set-group-ID bits of new and existing files. A file with one would give the user's rights to all others of
/// the machine.
///
/// A filter cannot tell directories from files, so `chmod g+s` of a directory is denied as well. `mkdir` needs no rule, because the kernel
/// ignores these bits there, nor does `io_uring`, which is denied as a whole.
fn set_ids() -> Result<Rules, BackendError> {
    let has = |position: u8, bits: u64| {
        SeccompCondition::new(position, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(bits), bits)
    };
    let mut rules = Rules::new();
    for (number, mode) in MODES {
        let sets = SET_ID_BITS.map(|bit| one(has(*mode, bit.into())?));
        rules.insert(*number, sets.into_iter().collect::<Result<_, _>>()?);
    }
    for (number, flags) in OPENS {
        let mut creating = Vec::new();
        for (flag, bit) in CREATING_FLAGS.iter().flat_map(|flag| SET_ID_BITS.map(|bit| (flag, bit))) {
            let flag = has(*flags, flag.cast_unsigned().into())?;
            creating.push(SeccompRule::new(vec![flag, has(flags + 1, bit.into())?])?);
        }
        rules.insert(*number, creating);
    }
    Ok(rules)
}

/// Denies scheduling changes of all processes of the user, and without a process namespace of any process but the caller.
///
/// The kernel allows them for all processes of the same user that have an id in the process namespace, and no Landlock rule restricts them.
/// In a namespace of the run these are its own. There a thread may change others by number, as libraries do with their own threads
/// (`pthread_setschedparam`), and a filter cannot tell whose id that is. `sched_setaffinity` stays allowed everywhere for that reason.
fn scheduling(own_processes: bool) -> Result<Rules, BackendError> {
    let is_number =
        |argument, op, number| SeccompCondition::new(argument, SeccompCmpArgLen::Dword, op, number);
    let others = |argument| one(is_number(argument, SeccompCmpOp::Ne, 0)?);
    let all_of_user = |kind| one(is_number(0, SeccompCmpOp::Eq, kind)?);
    let mut rules = Rules::from([
        (libc::SYS_setpriority, vec![all_of_user(PRIORITIES_OF_USER)?]),
        (libc::SYS_ioprio_set, vec![all_of_user(DISK_PRIORITIES_OF_USER)?]),
    ]);
    if !own_processes {
        rules.entry(libc::SYS_setpriority).or_default().push(others(1)?);
        rules.entry(libc::SYS_ioprio_set).or_default().push(others(1)?);
        for number in [libc::SYS_sched_setscheduler, libc::SYS_sched_setparam, libc::SYS_sched_setattr] {
            rules.insert(number, vec![others(0)?]);
        }
    }
    Ok(rules)
}

/// Returns the rules that deny `socket`. An empty list denies every socket. Connected pairs come from another system call.
fn sockets(network: NetworkWall, has_mounts: bool) -> Result<Vec<SeccompRule>, BackendError> {
    if network == NetworkWall::Filter {
        return Ok(Vec::new());
    }
    let family = |op, family: libc::c_int| {
        SeccompCondition::new(0, SeccompCmpArgLen::Dword, op, family.cast_unsigned().into())
    };
    let is_other = HARMLESS_FAMILIES.map(|harmless| family(SeccompCmpOp::Ne, harmless));
    let mut rules = vec![SeccompRule::new(is_other.into_iter().collect::<Result<_, _>>()?)?];
    if has_mounts {
        for kind in DATAGRAMS {
            rules.push(SeccompRule::new(vec![family(SeccompCmpOp::Eq, libc::AF_UNIX)?, is_kind(kind)?])?);
        }
    } else {
        // No mount covers the sockets of other programs, and some of those programs carry out any command of a client.
        rules.push(one(family(SeccompCmpOp::Eq, libc::AF_UNIX)?)?);
    }
    Ok(rules)
}

/// The kinds of unix sockets that send to any path without `connect`, which the broker decides about. The kernel makes a datagram socket
/// for `SOCK_RAW`, too.
const DATAGRAMS: [libc::c_int; 2] = [libc::SOCK_DGRAM, libc::SOCK_RAW];

/// Returns the rules that deny `socketpair` for datagrams: one end of such a pair can send to any path.
fn datagram_pairs() -> Result<Vec<SeccompRule>, BackendError> {
    DATAGRAMS.into_iter().map(|kind| one(is_kind(kind)?)).collect()
}

/// Compares the kind of a new socket.
fn is_kind(kind: libc::c_int) -> Result<SeccompCondition, BackendError> {
    // The mask leaves the flags `SOCK_CLOEXEC` and `SOCK_NONBLOCK` out.
    const KINDS: u64 = 0xf;
    let kind = u64::from(kind.cast_unsigned());
    SeccompCondition::new(1, SeccompCmpArgLen::Dword, SeccompCmpOp::MaskedEq(KINDS), kind)
}

fn one(condition: SeccompCondition) -> Result<SeccompRule, BackendError> {
    SeccompRule::new(vec![condition])
}

/// Denies the x32 system calls, which have numbers of their own and would bypass the other filters.
#[cfg(target_arch = "x86_64")]
fn without_second_numbering() -> BpfProgram {
    use seccompiler::sock_filter;

    // x32 numbers have this bit set (`__X32_SYSCALL_BIT`).
    const FIRST: u32 = 0x4000_0000;
    #[expect(clippy::cast_possible_truncation, reason = "codes of instructions have sixteen bits")]
    let op = |code: u32, jt, k| sock_filter { code: code as u16, jt, jf: 0, k };
    let errno = libc::SECCOMP_RET_ERRNO | libc::ENOSYS.cast_unsigned();
    vec![
        op(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        op(libc::BPF_JMP | libc::BPF_JGE | libc::BPF_K, 1, FIRST),
        op(libc::BPF_RET | libc::BPF_K, 0, libc::SECCOMP_RET_ALLOW),
        op(libc::BPF_RET | libc::BPF_K, 0, errno),
    ]
}
