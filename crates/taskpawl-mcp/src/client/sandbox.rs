//! The sandbox and the environment variables of a server's program.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use taskpawl::tools::{CallContext, Denials, Environment, Hint, Network, Program, Sandbox, SpawnError};

use super::config::{ServerConfig, Variables};

/// Variables that every server's program gets: those that programs need to find their files, and none that may be
/// secret.
const USUAL_VARIABLES: &[&str] = &[
    "HOME",
    "LANG",
    "LANGUAGE",
    "LC_ALL",
    "LC_CTYPE",
    "LC_MESSAGES",
    "LOGNAME",
    "NODE_EXTRA_CA_CERTS",
    "PATH",
    "SHELL",
    "SSL_CERT_DIR",
    "SSL_CERT_FILE",
    "TERM",
    "TMPDIR",
    "TZ",
    "USER",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
];

/// Returns the sandbox of a server: that of the call that starts it, widened by taskpawl's own configuration of the
/// server. Files of other programs never widen it.
pub(super) fn of(config: &ServerConfig, cx: &CallContext) -> Sandbox {
    let widening = &config.sandbox;
    match &cx.sandbox {
        Sandbox::On(profile) if *widening != taskpawl::tools::Widening::default() => {
            let mut profile = (**profile).clone();
            if widening.net {
                profile.network = Network::Full;
            }
            profile.read.extend_from_slice(&widening.read);
            profile.write.extend_from_slice(&widening.write);
            Sandbox::On(Arc::new(profile))
        }
        same @ (Sandbox::Off | Sandbox::On(_)) => same.clone(),
    }
}

/// Returns advice on paths in the server's `sandbox` that do not exist. A rule cannot allow a missing path, and the
/// server cannot create it from inside.
pub(super) fn advice(config: &ServerConfig, sandbox: &Sandbox) -> Option<String> {
    let named = config.sandbox.write.iter().chain(&config.sandbox.read);
    let missing = named.filter(|path| !path.exists()).map(|path| format!("`{}`", path.display()));
    let missing: Vec<String> = missing.collect();
    let says = !missing.is_empty() && matches!(sandbox, Sandbox::On(_));
    says.then(|| {
        let them = if missing.len() == 1 { "it" } else { "them" };
        format!("its `sandbox` names {}, not there yet: make {them} first", missing.join(" and "))
    })
}

/// The restrictions of a server's program, for finding the one that made it fail.
#[derive(Clone, Debug)]
pub(super) struct Held {
    server: String,
    denials: Denials,
}

impl Held {
    pub(super) fn of(config: &ServerConfig, cx: &CallContext, program: &Program) -> Self {
        Self { server: config.name.clone(), denials: Denials::of(cx, program) }
    }

    /// Returns whether the program has any restrictions.
    pub(super) fn is_on(&self) -> bool {
        self.denials.are_possible()
    }

    /// Returns the denial that a message of the server shows, with the setting that would allow it.
    pub(super) async fn hint(&self, said: &str) -> Option<String> {
        Some(self.with_own_way(&self.denials.hint(said).await?))
    }

    /// Returns the restriction that keeps the program from starting, with the setting that would lift it.
    pub(super) async fn hint_for_start(&self, error: &SpawnError) -> Option<String> {
        Some(self.with_own_way(&self.denials.hint_for_start(error).await?))
    }

    fn with_own_way(&self, hint: &Hint) -> String {
        format!(
            "{hint}; for this server alone `sandbox` in `[mcpServers.{}]` of your own `config.toml` does it",
            self.server
        )
    }
}

/// Returns whether two calls may share a server: their sandboxes must be equal.
pub(super) fn is_same(one: &Sandbox, other: &Sandbox) -> bool {
    match (one, other) {
        (Sandbox::On(one), Sandbox::On(other)) => Arc::ptr_eq(one, other) || one == other,
        (Sandbox::Off, Sandbox::Off) => true,
        (Sandbox::On(_), Sandbox::Off) | (Sandbox::Off, Sandbox::On(_)) => false,
    }
}

/// Returns the environment of a server: the usual variables, those that follow from its sandbox, and its own. A run
/// with a chosen environment supplies the usual ones. Later ones replace earlier ones.
pub(super) fn environment(
    following: impl Iterator<Item = (&'static str, &'static str)>,
    own: &BTreeMap<String, String>,
    variables: &Variables,
    cx: &CallContext,
) -> Environment {
    let look_up = |name: &&str| match &*cx.environment {
        Environment::Exactly(chosen) => chosen.get(&OsString::from(*name)).cloned(),
        Environment::Inherit(_) => variables(name).map(OsString::from),
    };
    let usual = USUAL_VARIABLES.iter().filter_map(|name| Some((OsString::from(name), look_up(name)?)));
    let own = own.iter().map(|(name, value)| (name.into(), value.into()));
    let following = following.map(|(name, value)| (name.into(), value.into()));
    Environment::Exactly(usual.chain(following).chain(own).collect())
}
