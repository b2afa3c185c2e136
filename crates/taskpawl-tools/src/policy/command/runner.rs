//! Programs that run other programs.

use super::{Certainty, Word};

/// Programs that run a command from their arguments, in addition to [`SHELLS`].
const RUNNERS: &[&str] = &[
    "-",
    ".",
    "Invoke-Expression",
    "Start-Process",
    "abduco",
    "alacritty",
    "at",
    "batch",
    "builtin",
    "bunx",
    "busybox",
    "bwrap",
    "caffeinate",
    "capsh",
    "catchsegv",
    "cgexec",
    "choom",
    "chpst",
    "chronic",
    "chroot",
    "chrt",
    "command",
    "compgen",
    "complete",
    "concurrently",
    "coproc",
    "cpulimit",
    "crontab",
    "cross-env",
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "distrobox-enter",
    "doas",
    "dotenv",
    "dtach",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "env_parallel",
    "envchain",
    "envdir",
    "eval",
    "exec",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
    "fc",
    "fd",
    "fdfind",
    "find",
    "firejail",
    "flatpak-spawn",
    "flock",
    "foot",
    "gdb",
    "genv",
    "gnome-terminal",
    "gosu",
    "gtime",
    "gtimeout",
    "gxargs",
    "heaptrack",
    "history",
    "hyperfine",
    "i386",
    "iex",
    "ifne",
    "ionice",
    "keep-one-running",
    "kitty",
    "konsole",
    "lckdo",
    "lima",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "mapfile",
    "mispipe",
    "newgrp",
    "nice",
    "nix-shell",
    "nocache",
    "nocorrect",
    "nodemon",
    "noglob",
    "nohup",
    "npx",
    "nq",
    "nsenter",
    "numactl",
    "onchange",
    "parallel",
    "pee",
    "perf",
    "pipe",
    "pkexec",
    "prlimit",
    "proot",
    "proxychains",
    "readarray",
    "repeat",
    "retry",
    "rlwrap",
    "run-one",
    "run-this-one",
    "run0",
    "runuser",
    "rush",
    "s6-setuidgid",
    "schedtool",
    "screen",
    "script",
    "sem",
    "setarch",
    "setlock",
    "setpriv",
    "setsid",
    "setuidgid",
    "sg",
    "shell",
    "socat",
    "softlimit",
    "source",
    "spawn",
    "ssh",
    "ssh-agent",
    "sshpass",
    "start-stop-daemon",
    "stdbuf",
    "strace",
    "su",
    "su-exec",
    "sudo",
    "system",
    "systemd-cat",
    "systemd-inhibit",
    "systemd-run",
    "taskset",
    "time",
    "timeout",
    "tini",
    "tmux",
    "torify",
    "torsocks",
    "toybox",
    "trap",
    "tsocks",
    "tsp",
    "uclampset",
    "uftrace",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "with-contenv",
    "wsl",
    "x-terminal-emulator",
    "x86_64",
    "xargs",
    "xcrun",
    "xterm",
    "xvfb-run",
];

/// Subcommands and options that are followed by a command, with the programs that have them. The command may run in a
/// container.
const BY_WORD: &[(&[&str], &[&str])] = &[
    (&["--command", "-c"], &["chokidar", "just"]),
    (&["debug", "exec", "run"], &["kubectl", "oc"]),
    (&["develop", "run", "shell"], &["nix"]),
    (&["dlx", "exec"], &["pnpm"]),
    (&["dlx", "exec", "run"], &["yarn"]),
    (&["enter"], &["distrobox"]),
    (&["environment", "shell"], &["guix"]),
    (
        &["exec"],
        &[
            "asdf",
            "aws-vault",
            "bundle",
            "cabal",
            "chamber",
            "incus",
            "lerna",
            "lxc",
            "multipass",
            "nodenv",
            "nx",
            "opam",
            "pyenv",
            "rbenv",
            "stack",
        ],
    ),
    (&["exec", "run"], &["apptainer", "docker", "docker-compose", "nerdctl", "podman", "singularity"]),
    (&["exec", "x"], &["mise", "npm", "rtx"]),
    (&["exec-env", "exec-file"], &["sops"]),
    (&["record"], &["rr"]),
    (
        &["run"],
        &[
            "buildah",
            "conda",
            "devbox",
            "doppler",
            "dotenvx",
            "hatch",
            "infisical",
            "mamba",
            "micromamba",
            "op",
            "pdm",
            "pipenv",
            "pipx",
            "pixi",
            "poetry",
            "rustup",
            "rye",
            "toolbox",
            "uv",
        ],
    ),
    (&["run", "x"], &["bun"]),
    (&["shell"], &["limactl", "machinectl"]),
    (&["ssh"], &["vagrant"]),
    (&["watch"], &["cargo"]),
];

/// Shells.
const SHELLS: &[&str] = &[
    "ash",
    "bash",
    "bash-static",
    "csh",
    "dash",
    "elvish",
    "fish",
    "hush",
    "ksh",
    "lksh",
    "mksh",
    "nu",
    "oksh",
    "posh",
    "pwsh",
    "rbash",
    "sash",
    "sh",
    "tcsh",
    "xonsh",
    "yash",
    "zsh",
    "zsh-static",
];

/// Returns whether a program may run commands from its arguments or its input.
pub(super) fn is_runner(program: &Word) -> bool {
    let name = name_of(program);
    program.name().is_none() || is_known(name) || is_loader(name)
}

fn is_known(name: &str) -> bool {
    RUNNERS.contains(&name) || SHELLS.contains(&name)
}

/// Returns whether a program is a dynamic loader such as `ld-linux-x86-64.so.2`, which runs its first argument.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

pub(super) fn is_shell(program: &Word) -> bool {
    SHELLS.contains(&name_of(program))
}

/// Returns the index of the subcommand that is followed by a command, for programs that run nothing otherwise: `uv
/// run`, `npm exec`.
pub(super) fn word_before_run(words: &[Word]) -> Option<usize> {
    let (program, args) = words.split_first()?;
    let (known, _) = BY_WORD.iter().find(|(_, programs)| programs.contains(&name_of(program)))?;
    args.iter().position(|arg| known.contains(&arg.text.as_str())).map(|at| at + 1)
}

/// Returns whether a program runs its first operand with all following words as arguments.
pub(super) fn runs_first_word(program: &Word) -> bool {
    let is_such =
        |name| ["builtin", "command", "doas", "env", "exec", "nohup", "setsid", "sudo"].contains(&name);
    program.certainty == Certainty::Literal && is_such(name_of(program))
}

/// Returns whether a word certainly names a program, and is neither an option nor an assignment.
pub(super) fn is_program(word: &Word) -> bool {
    word.certainty == Certainty::Literal
        && !word.text.is_empty()
        && word.text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/'))
        && !word.text.starts_with('-')
}

/// Returns whether a path may stand for an open file or a device.
pub(super) fn is_special(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/dev/")
}

/// Returns the name of a program without its directory and version, as in `bash5`.
pub(super) fn name_of(program: &Word) -> &str {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if is_known(name) {
        return name;
    }
    name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'))
}
