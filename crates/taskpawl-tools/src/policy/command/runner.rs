//! Programs that run what they are told.

use super::{Certainty, Word};

/// Programs that run what their arguments say, beside [`SHELLS`].
const RUNNERS: &[&str] = &[
    ".",
    "abduco",
    "alacritty",
    "at",
    "batch",
    "builtin",
    "bunx",
    "busybox",
    "bwrap",
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
    "daemonize",
    "dbus-launch",
    "dbus-run-session",
    "direnv",
    "doas",
    "dotenv",
    "dtach",
    "dumb-init",
    "eatmydata",
    "entr",
    "env",
    "env_parallel",
    "envdir",
    "eval",
    "exec",
    "expect",
    "fakechroot",
    "fakeroot",
    "faketime",
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
    "hyperfine",
    "i386",
    "ifne",
    "ionice",
    "keep-one-running",
    "kitty",
    "konsole",
    "lckdo",
    "linux32",
    "linux64",
    "lldb",
    "ltrace",
    "mapfile",
    "mispipe",
    "newgrp",
    "nice",
    "nix-shell",
    "nocorrect",
    "nodemon",
    "noglob",
    "nohup",
    "npx",
    "nsenter",
    "numactl",
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
    "schedtool",
    "screen",
    "script",
    "sem",
    "setarch",
    "setlock",
    "setpriv",
    "setsid",
    "sg",
    "shell",
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
    "uclampset",
    "uftrace",
    "uname26",
    "unbuffer",
    "unshare",
    "uvx",
    "valgrind",
    "watch",
    "watchexec",
    "x-terminal-emulator",
    "x86_64",
    "xargs",
    "xcrun",
    "xterm",
    "xvfb-run",
];

/// Programs that run what stands behind one of these words.
const BY_WORD: &[(&str, &[&str])] = &[
    ("asdf", &["exec"]),
    ("aws-vault", &["exec"]),
    ("bun", &["run", "x"]),
    ("bundle", &["exec"]),
    ("cabal", &["exec"]),
    ("conda", &["run"]),
    ("devbox", &["run"]),
    ("doppler", &["run"]),
    ("dotenvx", &["run"]),
    ("hatch", &["run"]),
    ("mamba", &["run"]),
    ("micromamba", &["run"]),
    ("mise", &["exec", "x"]),
    ("nix", &["develop", "run", "shell"]),
    ("nodenv", &["exec"]),
    ("npm", &["exec", "x"]),
    ("op", &["run"]),
    ("opam", &["exec"]),
    ("pdm", &["run"]),
    ("pipenv", &["run"]),
    ("pipx", &["run"]),
    ("pixi", &["run"]),
    ("pnpm", &["dlx", "exec"]),
    ("poetry", &["run"]),
    ("pyenv", &["exec"]),
    ("rbenv", &["exec"]),
    ("rr", &["record"]),
    ("rtx", &["exec", "x"]),
    ("rustup", &["run"]),
    ("rye", &["run"]),
    ("stack", &["exec"]),
    ("uv", &["run"]),
    ("yarn", &["dlx", "exec", "run"]),
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

/// Returns whether a program may run what its arguments or its input say.
pub(super) fn is_runner(program: &Word) -> bool {
    let name = name_of(program);
    program.certainty != Certainty::Literal || is_known(name) || is_loader(name)
}

fn is_known(name: &str) -> bool {
    RUNNERS.contains(&name) || SHELLS.contains(&name)
}

/// Returns whether a program is one that loads programs, as `ld-linux-x86-64.so.2`.
fn is_loader(name: &str) -> bool {
    name.starts_with("ld") && name.contains(".so")
}

pub(super) fn is_shell(program: &Word) -> bool {
    SHELLS.contains(&name_of(program))
}

/// Returns behind which word stands what a program runs that runs nothing otherwise: `uv run`, `npm exec`.
pub(super) fn word_before_run(words: &[Word]) -> Option<usize> {
    let (program, args) = words.split_first()?;
    let (_, known) = BY_WORD.iter().find(|(name, _)| *name == name_of(program))?;
    args.iter().position(|arg| known.contains(&arg.text.as_str())).map(|at| at + 1)
}

/// Returns whether a program runs the first of its arguments that is no option, with all that follow.
pub(super) fn runs_first_word(program: &Word) -> bool {
    let is_such =
        |name| ["builtin", "command", "doas", "env", "exec", "nohup", "setsid", "sudo"].contains(&name);
    program.certainty == Certainty::Literal && is_such(name_of(program))
}

/// Returns whether a word names a program, and is neither an option nor a variable.
pub(super) fn is_program(word: &Word) -> bool {
    word.certainty == Certainty::Literal
        && !word.text.is_empty()
        && word.text.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-' | '.' | '/'))
        && !word.text.starts_with('-')
}

/// Returns whether a path is that of something that is open.
pub(super) fn is_special(path: &str) -> bool {
    path.starts_with("/proc/") || path.starts_with("/dev/")
}

/// Returns the name of a program without its directory, and without a version, as in `bash5`.
pub(super) fn name_of(program: &Word) -> &str {
    let name = program.text.rsplit('/').next().unwrap_or_default();
    if is_known(name) {
        return name;
    }
    name.trim_end_matches(|char: char| char.is_ascii_digit() || matches!(char, '.' | '-'))
}
