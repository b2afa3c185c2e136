//! What the program of a server may do, and which variables it sees.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use taskpawl::tools::{CallContext, Denials, Environment, Network, Program, Sandbox, SpawnError};

use super::config::{ServerConfig, Variables};

/// Variables that every server gets that is a program: what programs need to find themselves, and nothing that may be secret.
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

/// Returns the sandbox of a server: that of the call which starts it, widened by what the configuration of taskpawl says about
/// the server. What other programs' files say about servers never widens it.
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

/// Says what of the places that the configuration opens to a server is not there: nothing opens that, and nobody can make it from
/// within.
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

/// What the program of a server is held to: for saying what of that it ran into.
#[derive(Clone, Debug)]
pub(super) struct Held {
    server: String,
    denials: Denials,
}

impl Held {
    pub(super) fn of(config: &ServerConfig, cx: &CallContext, program: &Program) -> Self {
        Self { server: config.name.clone(), denials: Denials::of(cx, program) }
    }

    /// Returns whether anything holds it.
    pub(super) fn is_on(&self) -> bool {
        self.denials.are_possible()
    }

    /// Returns which denial the server speaks of, and what would let it through.
    pub(super) async fn hint(&self, said: &str) -> Option<String> {
        Some(self.with_own_way(&self.denials.hint(said).await?))
    }

    /// Returns what of its sandbox keeps the program from being started.
    pub(super) async fn hint_for_start(&self, error: &SpawnError) -> Option<String> {
        Some(self.with_own_way(&self.denials.hint_for_start(error).await?))
    }

    fn with_own_way(&self, hint: &str) -> String {
        format!(
            "{hint}; for this server alone `sandbox` in `[mcpServers.{}]` of your own `config.toml` does it",
            self.server
        )
    }
}

/// Returns whether two calls may share a server.
pub(super) fn is_same(one: &Sandbox, other: &Sandbox) -> bool {
    match (one, other) {
        (Sandbox::On(one), Sandbox::On(other)) => Arc::ptr_eq(one, other) || one == other,
        (Sandbox::Off, Sandbox::Off) => true,
        (Sandbox::On(_), Sandbox::Off) | (Sandbox::Off, Sandbox::On(_)) => false,
    }
}

/// Returns the variables of a server: the usual ones, as the run has them where it has chosen, those that follow from its sandbox,
/// and its own.
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
