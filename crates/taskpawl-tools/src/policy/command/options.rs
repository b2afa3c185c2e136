//! Options of programs that are followed by a value.

/// Programs with options that stand in front of their first word, and are followed by a value.
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

/// Returns whether all options of a program are known that may stand in front of its command.
pub(crate) fn has_known_options(program: &str) -> bool {
    program == "git"
}

/// Returns whether the word behind an option is its value, whatever it is.
pub(crate) fn takes_value(program: &str, option: &str) -> bool {
    WITH_VALUE.iter().any(|(programs, options)| programs.contains(&program) && options.contains(&option))
}
