//! Launchers such as `npx`, which download the server before they start it. Without a network they fail with messages
//! that do not name the cause.

use std::path::Path;

use taskpawl::tools::{Network, Sandbox};

use super::config::Transport;

/// Variables that make launchers report the missing network at once. They would retry for minutes.
const OFFLINE: &[(&str, &str)] = &[("npm_config_offline", "true"), ("UV_OFFLINE", "1")];

/// Launchers, each with the command that installs a server permanently and the directories that it writes to.
const DOWNLOADERS: &[(&[&str], &str, &str)] = &[
    (&["npx", "npm", "pnpx", "pnpm", "yarn"], "npm install --prefix DIRECTORY", "\"~/.npm\""),
    (&["bunx", "bun"], "bun add", "\"~/.bun\""),
    (&["uvx", "uv", "pipx"], "uv tool install", "\"~/.cache/uv\", \"~/.local/share/uv\""),
];

/// Returns advice for a server whose launcher has no network.
pub(super) fn advice(server: &str, transport: &Transport, sandbox: &Sandbox) -> Option<String> {
    let (program, (_, install, write)) = (program(transport)?, downloader(transport, sandbox)?);
    let Transport::Stdio { args, .. } = transport else { return None };
    let package = args.iter().find(|arg| !arg.starts_with('-')).map_or("PACKAGE", String::as_str);
    Some(format!(
        "`{program}` downloads what it starts, and servers have no network: install it first (`{install} {package}`) and \
         name its program in `command`, or let this one use the network, in your own `config.toml`: `[mcpServers.{server}]` \
         with `sandbox = {{ net = true, write = [{write}] }}`"
    ))
}

/// Returns the variables that make a launcher fail at once where it has no network.
pub(super) fn variables(
    transport: &Transport,
    sandbox: &Sandbox,
) -> impl Iterator<Item = (&'static str, &'static str)> + use<> {
    let is_offline = downloader(transport, sandbox).is_some();
    OFFLINE.iter().copied().filter(move |_| is_offline)
}

fn program(transport: &Transport) -> Option<&str> {
    let Transport::Stdio { command, .. } = transport else { return None };
    Path::new(command).file_name()?.to_str()
}

fn downloader(
    transport: &Transport,
    sandbox: &Sandbox,
) -> Option<&'static (&'static [&'static str], &'static str, &'static str)> {
    let program = program(transport)?;
    let is_offline = match sandbox {
        Sandbox::On(profile) => profile.network == Network::None,
        Sandbox::Off => false,
    };
    DOWNLOADERS.iter().find(|(names, ..)| is_offline && names.contains(&program))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use taskpawl::tools::Profile;

    use super::*;

    fn stdio(command: &str, args: &[&str]) -> Transport {
        let args = args.iter().map(|arg| (*arg).to_owned()).collect();
        Transport::Stdio { command: command.to_owned(), args, env: BTreeMap::new(), cwd: None }
    }

    #[test]
    fn who_downloads_without_a_network_is_told_how_to_go_on() {
        let on = Sandbox::On(Arc::default());
        let said = |transport: &Transport| advice("s", transport, &on).unwrap();
        let npx = stdio("/usr/bin/npx", &["-y", "@example/server", "stdio"]);
        insta::assert_snapshot!([said(&npx), said(&stdio("uvx", &[]))].join("\n"), @r###"
`npx` downloads what it starts, and servers have no network: install it first (`npm install --prefix DIRECTORY @example/server`) and name its program in `command`, or let this one use the network, in your own `config.toml`: `[mcpServers.s]` with `sandbox = { net = true, write = ["~/.npm"] }`
`uvx` downloads what it starts, and servers have no network: install it first (`uv tool install PACKAGE`) and name its program in `command`, or let this one use the network, in your own `config.toml`: `[mcpServers.s]` with `sandbox = { net = true, write = ["~/.cache/uv", "~/.local/share/uv"] }`
"###);
        assert_eq!(variables(&npx, &on).count(), 2);
        assert_eq!(advice("s", &stdio("node", &["npx"]), &on), None);

        let profile = Profile { network: Network::Full, ..Profile::default() };
        for sandbox in [Sandbox::Off, Sandbox::On(Arc::new(profile))] {
            assert_eq!((advice("s", &npx, &sandbox), variables(&npx, &sandbox).count()), (None, 0));
        }
    }
}
