//! The sections of the configuration: their meaning, and the expected forms of their values.

/// A section, or one key with a place of its own.
pub(crate) struct Section {
    /// The name of the section in files.
    pub(super) name: &'static str,
    /// The meaning, for `config list` and hints.
    pub(crate) meaning: &'static str,
    /// The hint for an unknown key.
    pub(super) keys: &'static str,
    /// The hint for a project that has the section; `None` if it may.
    pub(super) only_user: Option<&'static str>,
    /// The expected form of the value of each key.
    forms: &'static [(&'static str, &'static str)],
}

impl Section {
    /// Returns the expected form of a value; `None` for an unknown key.
    pub(super) fn expected(&self, key: &str) -> Option<&'static str> {
        self.forms.iter().find(|(name, _)| *name == key).map(|(_, expected)| *expected)
    }
}

/// Coding agents.
pub(super) const AGENTS: Section = Section {
    name: "agents",
    meaning: "coding agents, which calls of `agent` name by `using`",
    keys: "of an agent `command`, `hosts`, `read`, `write`, `env` and `auth` can be said",
    only_user: Some("the user's own file alone names agents; `taskpawl config path` names that file"),
    forms: &[
        ("command", "a list such as [\"claude-code-acp\"], which can be left out for a known agent"),
        ("hosts", "a list of hosts such as [\"models.example.org\"]"),
        ("read", "a list of paths such as [\"~/.agent\"]"),
        ("write", "a list of paths such as [\"~/.agent\"]"),
        ("env", "a table such as { AGENT_KEY = \"${secret:agent}\" }; a key, token or password is a secret"),
        ("auth", "the id of a login method, which `taskpawl agents --check` shows"),
    ],
};

/// Engines that carry calls to workers; `restate` is the only one.
pub(super) const ENGINES: Section = Section {
    name: "engines",
    meaning: "the Restate server that carries calls to workers",
    keys: "the section is `[engines.restate]`, with `url`, `admin`, `pool`, `window`, `patience`, `files` and `remote`",
    only_user: Some("the user's own file alone names engines; `taskpawl config path` names that file"),
    forms: &[
        ("url", "the address of the ingress, such as \"http://127.0.0.1:8080\""),
        ("admin", "the address of the admin interface, such as \"http://127.0.0.1:9070\""),
        ("pool", "the name of a pool of workers, such as \"default\""),
        ("window", "a number from 1 to 1000"),
        ("patience", "a duration such as \"10m\""),
        ("files", "\"shared\" or \"git\""),
        ("remote", "the address of a git remote such as \"ssh://git.example.org/app.git\""),
    ],
};

/// The planner.
pub(super) const PLANNER: Section = Section {
    name: "planner",
    meaning: "the model or the program that proposes plans",
    keys: "of a planner `agent` can be said, or `command`, `hosts`, `read`, `write` and `env`, or `url`, `model`, `format`, `key` and `ca`; and `send_output`",
    only_user: Some("the user's own file alone names the planner; `taskpawl config path` names that file"),
    forms: &[
        ("agent", "the name of an agent that `taskpawl agents` lists, without `command` and `url` beside it"),
        ("command", "a list such as [\"claude\"], without `agent` and `url` beside it"),
        (
            "url",
            "an address such as \"http://127.0.0.1:8080/v1\", with `model` and without `command` beside it",
        ),
        ("model", "the name of the model, beside `url`"),
        ("format", "\"openai\" or \"anthropic\", beside `url`"),
        (
            "key",
            "a reference such as \"${secret:models}\", beside `url`; the section [secrets.models] says where it is",
        ),
        ("ca", "the path of a file with certificates in PEM, beside `url`"),
        ("hosts", "a list of hosts such as [\"models.example.org\"], beside `command`"),
        ("read", "a list of paths such as [\"~/.agent\"], beside `command`"),
        ("write", "a list of paths such as [\"~/.agent\"], beside `command`"),
        ("send_output", "true or false"),
        ("env", "a list of variables such as [\"AGENT_KEY\"], beside `command`"),
    ],
};

/// The permissions of programs.
pub(crate) const SANDBOX: Section = Section {
    name: "sandbox",
    meaning: "permissions of programs; the file of a project only narrows those of the user",
    keys: "of the sandbox `mode`, `net`, `write`, `read`, `env`, `hide`, `protect`, `memory`, `processes` and `wants` can be said",
    only_user: None,
    forms: &[
        ("mode", "on, strict or off"),
        ("net", "true or false"),
        ("write", "a list of paths such as [\"~/.cache\", \"/srv/data\"]"),
        ("read", "a list of paths such as [\"~/.cache\", \"/srv/data\"]"),
        ("hide", "a list of paths such as [\"~/.cache\", \"/srv/data\"]"),
        ("protect", "a list of paths such as [\"~/.cache\", \"/srv/data\"]"),
        ("env", "a list of names such as [\"DEPLOY_STAGE\", \"APP_*\"]"),
        ("memory", "a size such as \"4GiB\""),
        ("processes", "a number of at least 1"),
        (
            "wants",
            "a list of hosts and ports such as [\"host:packages.example.org\", \"port:5432\"], in the file of a project",
        ),
    ],
};

/// The meaning of `[secrets]`.
pub(super) const SECRETS: &str = "where the secret comes from that plans name as `${secret:NAME}`";

/// The expected form of a secret.
pub(super) const SECRET_FORM: &str = "one of `env = \"NAME\"`, `file = \"/absolute/path\"` or \"~/path\", and `command = [\"program\", \"argument\"]`";

/// The hint for a project that has secrets.
pub(super) const SECRETS_ONLY_USER: &str = "where secrets come from is said in the user's own file alone, which `taskpawl config path` names; plans name them as `${secret:NAME}`";

/// The meaning of `hosts` of `http_request`.
pub(crate) const HOSTS: &str =
    "which hosts `http_request` may reach; those of a project only narrow those of the user";

/// The expected form of `hosts` of `http_request`.
pub(super) const HOSTS_FORM: &str =
    "a list such as [\"api.example.com\", \"*.example.org\", \"127.0.0.1:8080\"]";

/// The meaning of `mcp.configs`.
pub(crate) const MCP_CONFIGS: &str = "which files of other programs name MCP servers";

/// The expected form of `mcp.configs`.
pub(super) const MCP_CONFIGS_FORM: &str = "a list such as [\"~/.claude.json\", \".gemini/settings.json\"]";

/// The meaning of `trace.collectors`.
pub(crate) const COLLECTORS: &str = "OTLP addresses that traces may be sent to; only in the user's own file";

/// The hint for a project that names collectors of traces.
pub(super) const COLLECTORS_ONLY_USER: &str = "the user's own file alone lists collectors, so that no project sends traces elsewhere; `taskpawl config path` names that file";
