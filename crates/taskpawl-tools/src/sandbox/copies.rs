//! Copies of settings files that hold secrets beside settings: programs see them without the secrets.
//!
//! A copy keeps known settings alone, so that a key that is not known here gives nothing away. An address keeps its host: a package
//! manager that did not see it would take packages of the same name from the public registry instead.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use taskpawl_process::{Substitute, make_private_directories};

/// Settings files with a value in each line. The other ones with secrets, such as `settings.xml` of Maven, stay hidden.
const FILES: [SettingsFile; 3] = [
    SettingsFile { name: ".npmrc", known: &NPM },
    SettingsFile { name: ".config/pip/pip.conf", known: &PIP },
    SettingsFile { name: ".pip/pip.conf", known: &PIP },
];

struct SettingsFile {
    /// The path in the home directory.
    name: &'static str,
    known: &'static [&'static str],
}

/// Settings of npm, pnpm and yarn 1. Those of a scope, such as `@example:registry`, are compared without it.
const NPM: [&str; 35] = [
    "audit",
    "audit-level",
    "auto-install-peers",
    "ca",
    "cafile",
    "engine-strict",
    "fetch-retries",
    "fetch-timeout",
    "fund",
    "hoist",
    "https-proxy",
    "ignore-scripts",
    "include",
    "init-license",
    "install-strategy",
    "legacy-peer-deps",
    "link-workspace-packages",
    "lockfile",
    "loglevel",
    "maxsockets",
    "min-release-age",
    "minimum-release-age",
    "node-linker",
    "noproxy",
    "omit",
    "package-lock",
    "prefer-offline",
    "progress",
    "proxy",
    "public-hoist-pattern",
    "registry",
    "save-exact",
    "save-prefix",
    "shamefully-hoist",
    "strict-ssl",
];

/// Settings of pip.
const PIP: [&str; 24] = [
    "break-system-packages",
    "cert",
    "constraint",
    "disable-pip-version-check",
    "extra-index-url",
    "find-links",
    "index-url",
    "no-binary",
    "no-build-isolation",
    "no-cache-dir",
    "no-index",
    "only-binary",
    "pre",
    "prefer-binary",
    "progress-bar",
    "proxy",
    "require-hashes",
    "require-virtualenv",
    "retries",
    "timeout",
    "trusted-host",
    "upgrade-strategy",
    "use-feature",
    "user",
];

/// The most bytes of a settings file that are copied.
const MAX_BYTES: u64 = 256 << 10;

/// Writes the copies of a home directory's settings into `directory`. A file that cannot be read or copied stays hidden.
pub(super) fn write(home: &Path, directory: &Path) -> Vec<Substitute> {
    let copied = FILES.iter().map(|file| (home.join(file.name), file));
    copied
        .filter(|(path, _)| path.metadata().is_ok_and(|data| data.is_file() && data.len() <= MAX_BYTES))
        .filter_map(|(path, file)| {
            let text = filtered(&fs::read_to_string(&path).ok()?, file.known);
            let source = replace(directory, &file.name.replace('/', "-"), &text).ok()?;
            Some(Substitute { path, source })
        })
        .collect()
}

/// Writes a file under a temporary name and renames it, because programs of other runs see the earlier one.
fn replace(directory: &Path, name: &str, text: &str) -> io::Result<PathBuf> {
    make_private_directories(directory)?;
    let (path, new) = (directory.join(name), directory.join(format!("{name}.{}", std::process::id())));
    let mut file = fs::File::create(&new)?;
    file.write_all(text.as_bytes())?;
    fs::rename(new, &path)?;
    Ok(path)
}

/// Returns the lines with known settings, and the headings of sections.
fn filtered(text: &str, known: &[&str]) -> String {
    let mut kept = String::new();
    let mut is_known = false;
    for line in text.lines() {
        let is_continued = line.starts_with([' ', '\t']);
        if !is_continued {
            let key = line.split(['=', ':']).next().unwrap_or_default();
            // `@example:registry=…` has its key behind the colon.
            let key = if line.starts_with('@') { scoped(line) } else { key };
            let key = key.trim().trim_end_matches("[]").replace('_', "-").to_lowercase();
            is_known = line.starts_with('[') || known.contains(&key.as_str());
        }
        if is_known && !line.trim_start().starts_with(['#', ';']) {
            kept.push_str(&without_secrets(line));
            kept.push('\n');
        }
    }
    kept
}

fn scoped(line: &str) -> &str {
    line.split_once(':').and_then(|(_, rest)| rest.split('=').next()).unwrap_or_default()
}

/// Removes user names, passwords and queries from addresses, and replaces parts of their paths that look like tokens.
fn without_secrets(line: &str) -> String {
    static USER: LazyLock<Regex> = LazyLock::new(|| regex(r"://[^/?#\s]*@"));
    static QUERY: LazyLock<Regex> = LazyLock::new(|| regex(r"(://[^\s?#]*)[?#]\S*"));
    static PART: LazyLock<Regex> = LazyLock::new(|| regex(r"/[^/\s]{12,}"));

    if !line.contains("://") {
        return line.to_owned();
    }
    let line = USER.replace_all(line, "://");
    let line = QUERY.replace_all(&line, "$1");
    let is_token = |part: &str| part.bytes().any(|byte| byte.is_ascii_digit());
    let (before, path) = line.split_once("://").unwrap_or_default();
    let path =
        PART.replace_all(
            path,
            |part: &regex::Captures<'_>| {
                if is_token(&part[0]) { "/removed".to_owned() } else { part[0].to_owned() }
            },
        );
    format!("{before}://{path}")
}

fn regex(pattern: &str) -> Regex {
    Regex::new(pattern).expect("BUG: a pattern of ours is not valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_keep_known_settings_and_no_secrets() {
        let npm = "; a comment with s3cret\n\
            registry=https://user:s3cret@npm.example.org/repo/?key=s3cret\n\
            @acme:registry = https://npm.example.org/t0ken/0123456789abcdef/\n\
            //npm.example.org/:_authToken=s3cret\n\
            _auth=s3cret\n\
            email=me@example.org\n\
            ignore-scripts=true\n\
            public-hoist-pattern[]=*types*\n\
            odd-key=s3cret\n";
        insta::assert_snapshot!(filtered(npm, &NPM), @r"
        registry=https://npm.example.org/repo/
        @acme:registry = https://npm.example.org/t0ken/removed/
        ignore-scripts=true
        public-hoist-pattern[]=*types*
        ");
        let pip = "[global]\nindex_url = https://me:s3cret@pip.example.org/simple\nextra-index-url =\n  https://a:s3cret@b.example.org/x\n  # s3cret\npassword = x\n  s3cret\n[install]\nno-binary: all\n";
        insta::assert_snapshot!(filtered(pip, &PIP), @r"
        [global]
        index_url = https://pip.example.org/simple
        extra-index-url =
          https://b.example.org/x
        [install]
        no-binary: all
        ");
    }

    #[test]
    fn several_addresses_in_a_line_lose_their_secrets() {
        let line = without_secrets("find-links = https://a:b@x.example.org/p https://c@y.example.org/q?z");
        assert_eq!(line, "find-links = https://x.example.org/p https://y.example.org/q");
    }

    #[test]
    fn files_that_are_missing_or_no_text_get_no_copy() {
        let home = tempfile::tempdir().unwrap();
        fs::create_dir_all(home.path().join(".config/pip")).unwrap();
        fs::write(home.path().join(".config/pip/pip.conf"), [0xff]).unwrap();
        fs::write(home.path().join(".npmrc"), "fund=false\n_auth=x\n").unwrap();
        let copies = write(home.path(), &home.path().join("copies"));
        assert_eq!(copies.len(), 1);
        assert_eq!(fs::read_to_string(&copies[0].source).unwrap(), "fund=false\n");
    }
}
