use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use taskpawl_process::{Layers, Substitute};

#[cfg(feature = "programs")]
use super::copies;
use super::excluded_paths::plain;
use super::{home, obeyed_names, repositories};

/// The location of a project, the paths of taskpawl and the environment variables of the process that starts programs.
#[derive(Clone, Debug, Default)]
pub struct SandboxPlaces {
    /// The root of the project.
    pub root: PathBuf,
    /// The directory for temporary files, which only this run uses.
    pub temporary: Option<PathBuf>,
    /// The directory with files of the project's programs, which its runs share: what programs see as `/tmp` and `/var/tmp`, and their
    /// changes to caches.
    pub private: Option<PathBuf>,
    /// The directory with the artifacts of all runs, which programs read.
    pub artifacts: Option<PathBuf>,
    /// The directory with the artifacts of this run, which its programs write.
    pub artifacts_of_run: Option<PathBuf>,
    /// Paths of taskpawl itself, which no setting opens to programs.
    pub own: Vec<PathBuf>,
    /// Paths that programs may read and never write, because they control the programs.
    pub kept: Vec<PathBuf>,
    /// Directories of taskpawl among `own` and `kept`. They are created before programs start, because programs could create them
    /// otherwise.
    pub directories: Vec<PathBuf>,
    /// Files of taskpawl among `own`. They are created empty before programs start, because programs could create them otherwise.
    pub files: Vec<PathBuf>,
    /// Directories that the host opens to some calls for writing without asking, besides those of the settings.
    pub granted: Vec<PathBuf>,
    /// The parts of its repository that programs in a worktree may write; `None` for all of it.
    pub repository: Option<Vec<PathBuf>>,
    /// A file of the run that records which files other programs obeyed before it. A run that is killed leaves it behind, so that the next
    /// run can report what is new.
    pub baseline: Option<PathBuf>,
    /// The variables of this process. Programs see a part of them.
    pub variables: BTreeMap<OsString, OsString>,
}

/// The directory in that of a project's programs that holds their changes to caches.
pub const PRIVATE_CACHES: &str = "caches";

/// The directories for temporary files that all share. Programs of a project see directories of the project in their place.
pub const SHARED_TEMPORARY: [&str; 2] = ["/tmp", "/var/tmp"];

/// Paths that every program needs, and software that is installed for all users.
const SYSTEM: [&str; 25] = [
    "/usr",
    "/bin",
    "/sbin",
    "/lib",
    "/lib32",
    "/lib64",
    "/libx32",
    "/etc",
    "/opt",
    "/sys",
    "/snap",
    "/nix/store",
    "/nix/var/nix/profiles",
    "/gnu/store",
    "/home/linuxbrew",
    "/run/current-system",
    "/run/opengl-driver",
    "/run/resolvconf",
    "/run/systemd/resolve",
    "/run/NetworkManager/resolv.conf",
    "/var/cache/fontconfig",
    "/var/lib/alternatives",
    "/var/lib/ca-certificates",
    "/var/lib/dpkg",
    "/var/lib/rpm",
];

/// Paths of the system that only administrators should read. Programs of root without capabilities still own these files, so that file
/// permissions alone do not protect them.
const SYSTEM_SECRETS: [&str; 12] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/sudoers.d",
    "/etc/ssl/private",
    "/etc/pki/tls/private",
    "/etc/krb5.keytab",
    "/etc/NetworkManager/system-connections",
    "/etc/wireguard",
    "/etc/letsencrypt",
];

/// Paths in a home directory that reveal the user's identity or activity: keys, tokens, browser profiles, histories.
const SECRETS: [&str; 72] = [
    ".ssh",
    ".gnupg",
    ".aws",
    ".azure",
    ".kube",
    ".docker",
    ".netrc",
    ".git-credentials",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gem/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".m2/settings-security.xml",
    ".gradle/gradle.properties",
    ".nuget/NuGet/NuGet.Config",
    ".config/gh",
    ".config/hub",
    ".config/glab-cli",
    ".config/gcloud",
    ".config/git/credentials",
    ".config/containers/auth.json",
    ".config/doctl",
    ".config/rclone",
    ".config/op",
    ".config/sops",
    ".config/age",
    ".config/pip/pip.conf",
    ".config/configstore",
    ".config/fish/fish_variables",
    ".boto",
    ".s3cfg",
    ".dockercfg",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".terraformrc",
    ".terraform.d",
    ".databrickscfg",
    ".kaggle",
    ".huggingface/token",
    ".cache/huggingface/token",
    ".password-store",
    ".local/share/keyrings",
    ".local/share/kwalletd",
    ".local/share/fish/fish_history",
    ".local/share/opencode/auth.json",
    ".claude.json",
    ".claude/.credentials.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".mozilla",
    ".thunderbird",
    ".config/google-chrome",
    ".config/chromium",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".config/Bitwarden",
    ".config/1Password",
    ".config/Signal",
    ".config/Slack",
    ".bash_history",
    ".zsh_history",
    ".history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
];

/// Variables that name the directory of a toolchain or its data.
pub(super) const TOOLCHAINS: [&str; 30] = [
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "GOMODCACHE",
    "JAVA_HOME",
    "JDK_HOME",
    "MAVEN_HOME",
    "M2_HOME",
    "GRADLE_HOME",
    "KOTLIN_HOME",
    "ANDROID_HOME",
    "ANDROID_SDK_ROOT",
    "DOTNET_ROOT",
    "NVM_DIR",
    "NVM_BIN",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "DENO_DIR",
    "NODE_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "RBENV_ROOT",
    "GEM_HOME",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "SDKMAN_DIR",
];

/// Variables that name files with trusted certificates.
pub(super) const CERTIFICATES: [&str; 9] = [
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "CURL_CA_BUNDLE",
    "REQUESTS_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "AWS_CA_BUNDLE",
];

impl SandboxPlaces {
    /// Returns the home directory of the user.
    pub(super) fn home(&self) -> Option<PathBuf> {
        self.directory("HOME")
    }

    /// Returns the paths that all programs may read. Of the home directory they see only the others of these paths.
    pub(super) fn readable(&self) -> Vec<PathBuf> {
        let mut paths: Vec<PathBuf> = SYSTEM.iter().map(PathBuf::from).collect();
        let home = self.home();
        if let Some(home) = &home {
            paths.push(home.clone());
            paths.extend(home::shown(home));
            paths.extend(home::repository_around(&self.root, home));
            paths.extend(self.kept.iter().filter(|path| path.starts_with(home)).cloned());
        }
        let path = self.variables.get(OsStr::new("PATH"));
        let programs: Vec<PathBuf> =
            path.into_iter().flat_map(std::env::split_paths).filter(|path| is_place(path)).collect();
        let of_installation = programs.iter().flat_map(|path| of_installation(path));
        // `share` and `etc` beside `~/.local/bin` hold the data of all programs of the user.
        let of_user = home.map(|home| ["", ".local"].map(|name| home.join(name)));
        let is_of_user = |path: &PathBuf| {
            let above = path.parent().map(Path::to_owned);
            of_user.iter().flatten().any(|of_user| above.as_ref() == Some(of_user))
        };
        paths.extend(of_installation.filter(|path| !is_of_user(path)));
        paths.extend(programs);
        paths.extend(TOOLCHAINS.iter().chain(&CERTIFICATES).filter_map(|name| self.directory(name)));
        // A program that starts itself again, as taskpawl does in a call, must be able to read its own executable.
        paths.extend(std::env::current_exe());
        paths
    }

    /// Returns the secret paths of the system, which only administrators can create or replace.
    pub(super) fn administered() -> Vec<PathBuf> {
        SYSTEM_SECRETS.iter().map(PathBuf::from).chain(host_keys()).collect()
    }

    /// Returns the paths that programs cannot read unless they are named.
    pub(super) fn secret(&self) -> Vec<PathBuf> {
        let mut paths = Self::administered();
        if let Some(home) = self.home() {
            paths.extend(SECRETS.iter().map(|name| home.join(name)));
        }
        if let Some(cargo) = self.directory("CARGO_HOME") {
            paths.extend(["credentials", "credentials.toml"].map(|name| cargo.join(name)));
        }
        paths
    }

    /// Returns the paths beneath `directory` that programs cannot write unless they are named.
    pub(super) fn obeyed(directory: &Path) -> impl Iterator<Item = PathBuf> {
        Self::obeyed_by_name(directory).chain(repositories::obeyed(&directory.join(".git")))
    }

    /// Returns those of the paths that are known by name. Paths in a git repository depend on its contents.
    pub(super) fn obeyed_by_name(directory: &Path) -> impl Iterator<Item = PathBuf> {
        obeyed_names::all(true).map(move |name| directory.join(name.path))
    }

    /// Returns the part of a path, relative to the root of a project, that other programs obey without asking: agents, editors and build
    /// tools. Case is ignored.
    ///
    /// File tools write no such path, and programs of a plan cannot change one that exists.
    pub fn part_obeyed(path: &Path) -> Option<PathBuf> {
        obeyed_names::part_of(path)
    }

    /// Returns the directories that programs see in place of the shared ones for temporary files.
    pub(super) fn private(&self) -> Vec<Substitute> {
        let of = |(path, name): (&str, &str)| {
            Some(Substitute { path: path.into(), source: self.private.as_ref()?.join(name) })
        };
        SHARED_TEMPORARY.into_iter().zip(["tmp", "var-tmp"]).filter_map(of).collect()
    }

    /// Returns the directories in the home directory that programs may write into layers of the project.
    pub(super) fn layers(&self) -> Layers {
        let (Some(private), Some(home)) = (&self.private, self.home()) else { return Layers::default() };
        let source = Some(private.join(PRIVATE_CACHES));
        Layers { source, overlaid: home::caches(&home), own: vec![home.join(home::CACHES)] }
    }

    /// Writes copies of settings files in the home directory without their secrets, and returns them.
    #[cfg(feature = "programs")]
    pub(super) fn copies(&self) -> Vec<Substitute> {
        let (Some(private), Some(home)) = (&self.private, self.home()) else { return Vec::new() };
        copies::write(&home, &private.join("settings"))
    }

    /// Returns nothing: no program reads them.
    #[cfg(not(feature = "programs"))]
    pub(super) fn copies(&self) -> Vec<Substitute> {
        Vec::new()
    }

    /// Resolves a path of the settings or of a plan, which may start with `~`, to an absolute one.
    pub(super) fn absolute(&self, path: &Path) -> PathBuf {
        let path = match (path.strip_prefix("~"), self.home()) {
            (Ok(rest), Some(home)) => home.join(rest),
            _ => self.root.join(path),
        };
        plain(&path)
    }

    fn directory(&self, variable: &str) -> Option<PathBuf> {
        self.variables.get(OsStr::new(variable)).map(PathBuf::from).filter(|path| is_place(path))
    }
}

/// Returns whether a path is usable. Empty and relative paths are not, and neither is `/`, which would open everything.
fn is_place(path: &Path) -> bool {
    path.is_absolute() && path.parent().is_some()
}

/// Returns the places beside a `bin` directory that its programs use, such as `lib` and `share`; beside the `shims` of a version manager,
/// such as pyenv or asdf, the versions that they lead to.
fn of_installation(programs: &Path) -> Vec<PathBuf> {
    const OF_PROGRAMS: &[&str] = &["lib", "lib64", "libexec", "share", "include", "etc"];
    const OF_SHIMS: &[&str] = &["bin", "libexec", "lib", "plugins", "version", "versions", "installs"];
    let beside = match programs.file_name().and_then(OsStr::to_str) {
        Some("bin") => OF_PROGRAMS,
        Some("shims") => OF_SHIMS,
        _ => &[],
    };
    let above = programs.parent().filter(|above| above.parent().is_some());
    above.into_iter().flat_map(|above| beside.iter().map(|name| above.join(name))).collect()
}

/// Returns the private host keys of the SSH server. Their public halves stay readable.
fn host_keys() -> impl Iterator<Item = PathBuf> {
    let entries = std::fs::read_dir("/etc/ssh").into_iter().flatten().flatten().map(|entry| entry.path());
    entries.filter(|path| {
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        name.starts_with("ssh_host_") && path.extension().is_none_or(|end| end != "pub")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_on_the_search_path_see_what_they_lead_to() {
        let path = "/srv/pyenv/shims:/opt/node/bin:/srv/other:relative/shims";
        let places = SandboxPlaces {
            root: "/srv/project".into(),
            variables: [("PATH".into(), path.into())].into(),
            ..SandboxPlaces::default()
        };
        let readable = places.readable();
        let has = |path: &str| readable.contains(&PathBuf::from(path));
        for path in
            ["/srv/pyenv/shims", "/srv/pyenv/version", "/srv/pyenv/versions", "/opt/node/lib", "/srv/other"]
        {
            assert!(has(path), "{path}: {readable:?}");
        }
        assert!(!has("/srv/pyenv") && !has("/srv/lib") && !has("/srv/versions") && !has("relative/versions"));
    }
}
