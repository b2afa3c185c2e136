//! Options of programs that take a value.

/// Programs with the options in front of their subcommand that take a value.
const WITH_VALUE: &[(&[&str], &[&str])] = &[
    (&["cargo"], &["--color", "--config", "--manifest-path", "-C", "-Z"]),
    (&["docker", "podman"], &["--config", "--connection", "--context", "--host", "--log-level", "-H"]),
    (
        &["git"],
        &[
            "--attr-source",
            "--config-env",
            "--git-dir",
            "--namespace",
            "--super-prefix",
            "--work-tree",
            "-C",
            "-c",
        ],
    ),
    (
        &["kubectl", "oc"],
        &["--cluster", "--context", "--kubeconfig", "--namespace", "--server", "--user", "-n", "-s"],
    ),
];

/// Returns whether all options in front of the subcommand of a program are known.
pub(crate) fn has_known_options(program: &str) -> bool {
    program == "git"
}

/// Returns whether the word after an option is its value, even if it looks like something else.
pub(crate) fn takes_value(program: &str, option: &str) -> bool {
    WITH_VALUE.iter().any(|(programs, options)| programs.contains(&program) && options.contains(&option))
}
