//! The contents of each kit on this machine.

use std::fmt;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use taskpawl::tools::NamedGrant;

use crate::context::Context;
use crate::files::read_file;

/// A kit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Kit {
    /// The agent that signs for ssh, and the known hosts.
    SshAgent,
    /// The agent that signs for `GnuPG`, and the public keys.
    GpgAgent,
    /// The engine of containers, whose clients can do everything.
    Docker,
    /// The agent that signs for ssh, and the hosts of the project's git remotes.
    GitPush,
}

impl Kit {
    pub(crate) const ALL: [Self; 4] = [Self::SshAgent, Self::GpgAgent, Self::Docker, Self::GitPush];

    fn as_str(self) -> &'static str {
        match self {
            Self::SshAgent => "ssh-agent",
            Self::GpgAgent => "gpg-agent",
            Self::Docker => "docker",
            Self::GitPush => "git-push",
        }
    }

    /// Returns the risk of the kit, for the person who grants it.
    pub(crate) fn risk(self) -> &'static str {
        match self {
            Self::SshAgent => "programs can sign in wherever your keys do, as far as they reach the host",
            Self::GpgAgent => {
                "programs can sign and decrypt with your keys, as far as the agent does not ask you"
            }
            Self::Docker => {
                "clients of the engine can do everything on this machine, which is as good as no sandbox"
            }
            Self::GitPush => {
                "programs can sign in and write wherever your keys do, on the hosts of the git remotes"
            }
        }
    }

    /// Returns what the kit gives on this machine now.
    ///
    /// # Errors
    /// Its socket is missing, as text for people.
    pub(crate) fn grants(self, context: &Context) -> Result<Vec<NamedGrant>, String> {
        match self {
            Self::SshAgent => ssh(context),
            Self::GpgAgent => gpg(context),
            Self::Docker => docker(context),
            Self::GitPush => {
                let mut grants = ssh(context)?;
                grants.extend(remotes(context)?);
                Ok(grants)
            }
        }
    }
}

impl fmt::Display for Kit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Kit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|kit| text.strip_prefix("kit:") == Some(kit.as_str()));
        found.ok_or_else(|| {
            let all: Vec<String> = Self::ALL.iter().map(|kit| format!("kit:{kit}")).collect();
            format!("expected {}", all.join(", "))
        })
    }
}

fn ssh(context: &Context) -> Result<Vec<NamedGrant>, String> {
    let variable = "SSH_AUTH_SOCK";
    let path = context.environment().path(variable).ok_or("SSH_AUTH_SOCK is not set: no ssh agent runs")?;
    let mut grants = vec![NamedGrant::Socket(own_socket(&path)?), NamedGrant::Env(variable.to_owned())];
    grants.extend(public(context, ".ssh", &["known_hosts", "known_hosts2"]));
    Ok(grants)
}

fn gpg(context: &Context) -> Result<Vec<NamedGrant>, String> {
    let environment = context.environment();
    let runtime = environment.path("XDG_RUNTIME_DIR").map(|directory| directory.join("gnupg"));
    let home = environment.path("HOME").map(|home| home.join(".gnupg"));
    let sockets = runtime.into_iter().chain(home).map(|directory| directory.join("S.gpg-agent"));
    let mut grants = vec![NamedGrant::Socket(first_socket(sockets, "no gpg agent runs")?)];
    grants.extend(public(context, ".gnupg", &["pubring.kbx", "pubring.gpg", "trustdb.gpg"]));
    Ok(grants)
}

fn docker(context: &Context) -> Result<Vec<NamedGrant>, String> {
    let environment = context.environment();
    if let Some(host) = environment.text("DOCKER_HOST") {
        let path = host.strip_prefix("unix://").ok_or("DOCKER_HOST names no unix socket")?;
        let socket = own_socket(Path::new(path))?;
        return Ok(vec![NamedGrant::Socket(socket), NamedGrant::Env("DOCKER_HOST".to_owned())]);
    }
    let runtime = environment.path("XDG_RUNTIME_DIR").map(|directory| directory.join("docker.sock"));
    let sockets =
        [PathBuf::from("/run/docker.sock"), "/var/run/docker.sock".into()].into_iter().chain(runtime);
    Ok(vec![NamedGrant::Socket(first_socket(sockets, "no engine of containers runs")?)])
}

fn first_socket(mut paths: impl Iterator<Item = PathBuf>, missing: &str) -> Result<PathBuf, String> {
    paths.find_map(|path| own_socket(&path).ok()).ok_or_else(|| missing.to_owned())
}

/// Returns the real path of a socket that belongs to the user or the administrator: another user could answer instead.
fn own_socket(path: &Path) -> Result<PathBuf, String> {
    let said = |problem: &str| format!("`{}` {problem}", path.display());
    let real = fs::canonicalize(path).map_err(|error| said(&format!("cannot be reached: {error}")))?;
    let metadata = fs::metadata(&real).map_err(|error| said(&error.to_string()))?;
    if !metadata.file_type().is_socket() {
        return Err(said("is no socket"));
    }
    let owner = metadata.uid();
    let is_own = owner == 0 || owner == rustix::process::geteuid().as_raw();
    if is_own { Ok(real) } else { Err(said("belongs to another user")) }
}

/// Returns files without secrets in a directory of the home that is hidden otherwise.
fn public(context: &Context, directory: &str, names: &[&str]) -> Vec<NamedGrant> {
    let Some(home) = context.environment().path("HOME") else { return Vec::new() };
    let paths = names.iter().map(|name| home.join(directory).join(name));
    paths.filter(|path| path.is_file()).map(NamedGrant::Read).collect()
}

/// Returns the hosts of the project's git remotes. Programs cannot write the file that names them.
fn remotes(context: &Context) -> Result<Vec<NamedGrant>, String> {
    remotes_of(&context.place().map_err(|error| error.to_string())?.root)
}

fn remotes_of(root: &Path) -> Result<Vec<NamedGrant>, String> {
    let text = read_file(&root.join(".git/config")).map_err(|_| "the project is no git repository")?;
    let urls = text.lines().filter_map(|line| {
        let (key, value) = line.split_once('=')?;
        matches!(key.trim(), "url" | "pushurl").then(|| value.trim())
    });
    let hosts: Vec<NamedGrant> =
        urls.filter_map(host_of).filter_map(|host| format!("host:{host}").parse().ok()).collect();
    if hosts.is_empty() { Err("no git remote names a host".to_owned()) } else { Ok(hosts) }
}

/// Returns host and port of the URL of a remote.
fn host_of(url: &str) -> Option<String> {
    let Some((scheme, rest)) = url.split_once("://") else {
        // `git@host:path`, but not a local path.
        let (host, _) = url.split_once(':').filter(|(host, _)| !host.contains('/'))?;
        return Some(format!("{}:22", host.rsplit('@').next()?));
    };
    let default = match scheme {
        "ssh" | "git+ssh" => 22,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split('/').next()?.rsplit('@').next()?;
    let (host, port) = authority.split_once(':').unwrap_or((authority, ""));
    Some(format!("{host}:{}", if port.is_empty() { default } else { port.parse().ok()? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hosts_of_remotes_are_read_from_their_urls() {
        for (url, host) in [
            ("git@git.example.org:a/b.git", Some("git.example.org:22")),
            ("ssh://git@git.example.org/a", Some("git.example.org:22")),
            ("ssh://git@git.example.org:2222/a", Some("git.example.org:2222")),
            ("https://user:secret@git.example.org/a", Some("git.example.org:443")),
            ("/srv/a.git", None),
            ("../a:b", None),
            ("file:///srv/a.git", None),
            ("https://git.example.org:port/a", None),
        ] {
            assert_eq!(host_of(url).as_deref(), host, "{url}");
        }
    }

    #[test]
    fn the_configuration_of_git_is_read_only_if_it_is_a_file() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};

        let dir = tempfile::tempdir().unwrap();
        let config = dir.path().join(".git/config");
        fs::create_dir(dir.path().join(".git")).unwrap();
        mknodat(CWD, &config, FileType::Fifo, Mode::RWXU, 0).unwrap();
        assert_eq!(remotes_of(dir.path()).unwrap_err(), "the project is no git repository");
        fs::remove_file(&config).unwrap();
        fs::write(&config, "[remote \"origin\"]\n\turl = https://git.example.org/a\n").unwrap();
        assert_eq!(remotes_of(dir.path()).unwrap(), ["host:git.example.org:443".parse().unwrap()]);
    }

    #[test]
    fn a_kit_has_a_name() {
        assert_eq!("kit:git-push".parse(), Ok(Kit::GitPush));
        assert!("git-push".parse::<Kit>().is_err() && "kit:aws".parse::<Kit>().is_err());
    }
}
