//! Selects the environment variables that programs see.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use super::places::{CERTIFICATES, SandboxPlaces, TOOLCHAINS};
use super::settings::SandboxSettings;

/// Variables that describe the user, the terminal and the behaviour of toolchains. None of them holds a secret.
const USUAL: [&str; 43] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "LC_*",
    "TERM",
    "COLORTERM",
    "COLUMNS",
    "LINES",
    "NO_COLOR",
    "FORCE_COLOR",
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "TZ",
    "PWD",
    "CI",
    "EDITOR",
    "PAGER",
    "DEBIAN_FRONTEND",
    "SOURCE_DATE_EPOCH",
    "LD_LIBRARY_PATH",
    "PKG_CONFIG_PATH",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "RUSTUP_TOOLCHAIN",
    "RUST_BACKTRACE",
    "RUST_LOG",
    "RUSTFLAGS",
    "CARGO_TERM_COLOR",
    "CARGO_INCREMENTAL",
    "CARGO_NET_OFFLINE",
    "PYTHONUNBUFFERED",
    "PYTHONDONTWRITEBYTECODE",
    "PYENV_VERSION",
    "RBENV_VERSION",
    "CONDA_DEFAULT_ENV",
    "NODE_ENV",
    "NIX_PATH",
];

/// Variables that describe the way to the network. Some hold a password.
const NETWORK: [&str; 8] = [
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
];

/// Variables that turn retries off while there is no network. Without them `npm install` fails only after more than a minute.
const NO_RETRIES: [(&str, &str); 6] = [
    ("npm_config_fetch_retries", "0"),
    ("YARN_HTTP_RETRY", "0"),
    ("PIP_RETRIES", "0"),
    ("UV_HTTP_RETRIES", "0"),
    ("CARGO_NET_RETRY", "0"),
    ("BUNDLE_RETRY", "0"),
];

/// Returns the variables of this process that programs may see. Those of `NETWORK` are included only with `has_network`.
pub(super) fn variables(
    settings: &SandboxSettings,
    places: &SandboxPlaces,
    has_network: bool,
) -> BTreeMap<OsString, OsString> {
    let own = settings.env.iter().map(String::as_str);
    let network = NETWORK.into_iter().filter(|_| has_network);
    let usual = USUAL.into_iter().chain(TOOLCHAINS).chain(CERTIFICATES).chain(network);
    let patterns: Vec<&str> = usual.chain(own).collect();
    let seen = places.variables.iter().filter(|(name, _)| patterns.iter().any(|pattern| fits(name, pattern)));
    let mut seen: BTreeMap<_, _> = seen.map(|(name, value)| (name.clone(), value.clone())).collect();
    // A granted host may be slow, so its clients keep their retries.
    if !has_network && settings.hosts.is_empty() {
        for (name, value) in NO_RETRIES {
            // A variable that the user has named for programs keeps its value.
            seen.entry(name.into()).or_insert_with(|| value.into());
        }
    }
    // Overrides the variable of this process: its directory may be in `/tmp`, which is an empty mount for programs.
    if let Some(temporary) = &places.temporary {
        seen.insert("TMPDIR".into(), temporary.into());
    }
    seen
}

/// Returns the names of the variables of this process that programs with these variables do not see.
pub(super) fn unseen(places: &SandboxPlaces, seen: &BTreeMap<OsString, OsString>) -> BTreeSet<OsString> {
    places.variables.keys().filter(|name| !seen.contains_key(*name)).cloned().collect()
}

fn fits(name: &OsStr, pattern: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(beginning) => name.as_encoded_bytes().starts_with(beginning.as_bytes()),
        None => name == pattern,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_see_what_is_usual_and_what_is_named_and_nothing_else() {
        let there = [
            "PATH",
            "LC_ALL",
            "CARGO_HOME",
            "CARGO_REGISTRY_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "SSH_AUTH_SOCK",
            "HTTPS_PROXY",
            "TMPDIR",
            "APP_KEY",
            "APP_MODE",
            "TASKPAWL_STORE",
            "DBUS_SESSION_BUS_ADDRESS",
            "LCD",
        ];
        let variables_of_process = there.map(|name| (OsString::from(name), OsString::from("x"))).into();
        let places = SandboxPlaces {
            temporary: Some("/tmp/own".into()),
            variables: variables_of_process,
            ..SandboxPlaces::default()
        };
        let seen = |env: &[&str], net| {
            let env = env.iter().map(|&name| name.to_owned()).collect();
            let settings = SandboxSettings { env, ..SandboxSettings::default() };
            let names = variables(&settings, &places, net).into_iter().map(|(name, value)| {
                let (name, value) = (name.into_string().unwrap(), value.into_string().unwrap());
                if value == "x" { name } else { format!("{name}={value}") }
            });
            names.collect::<Vec<_>>().join(" ")
        };
        assert_eq!(seen(&[], true), "CARGO_HOME HTTPS_PROXY LC_ALL PATH TMPDIR=/tmp/own");
        assert_eq!(
            seen(&["APP_*"], true),
            "APP_KEY APP_MODE CARGO_HOME HTTPS_PROXY LC_ALL PATH TMPDIR=/tmp/own"
        );
        assert_eq!(
            seen(&["APP_MODE"], false),
            "APP_MODE BUNDLE_RETRY=0 CARGO_HOME CARGO_NET_RETRY=0 LC_ALL PATH PIP_RETRIES=0 TMPDIR=/tmp/own UV_HTTP_RETRIES=0 \
             YARN_HTTP_RETRY=0 npm_config_fetch_retries=0"
        );
    }

    #[test]
    fn a_named_variable_keeps_its_value_without_a_network() {
        let places = SandboxPlaces {
            variables: [("PIP_RETRIES".into(), "3".into())].into(),
            ..SandboxPlaces::default()
        };
        let retries = |env: &[&str]| {
            let env = env.iter().map(|&name| name.to_owned()).collect();
            let settings = SandboxSettings { env, ..SandboxSettings::default() };
            variables(&settings, &places, false).remove(OsStr::new("PIP_RETRIES")).unwrap()
        };
        assert_eq!((retries(&["PIP_*"]), retries(&[])), ("3".into(), "0".into()));
    }
}
