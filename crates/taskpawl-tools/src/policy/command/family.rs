//! Environment variables that determine commands, recognised by the pattern of their names.
//!
//! Build tools read each of their settings from a variable, so that a complete list of names is impossible. A family is
//! recognised by a prefix or suffix. Within a family the harmless members are listed: an unlisted new one then counts
//! as dangerous.

use super::Word;
use super::git::names_file;

/// Meaning of the value of a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Holds {
    /// Program with its arguments.
    Program,
    /// Arguments of this program, which replace the name of an alias.
    WordsOf(&'static str),
    /// Code that a program loads, or options that make it load code or run programs.
    Code,
    /// Value that determines no command.
    Nothing,
}

/// Returns the meaning of the value of a variable.
pub(super) fn holds(name: &str, value: &Word) -> Holds {
    if loads_code(name, value) {
        Holds::Code
    } else if name.starts_with("CARGO_ALIAS_") {
        Holds::WordsOf("cargo")
    } else if names_program(name) && names_file(value) {
        Holds::Program
    } else {
        Holds::Nothing
    }
}

/// Names of variables that hold a program and belong to no family.
const PROGRAMS: &[&str] = &[
    "CARGO",
    "CC",
    "CXX",
    "FCEDIT",
    "GIT_EXTERNAL_DIFF",
    "GIT_SSH",
    "GNUMAKEFLAGS",
    "LESSCLOSE",
    "LESSOPEN",
    "MAKEFLAGS",
    "RUSTC",
    "RUSTDOC",
    "RUSTFMT",
    "VISUAL",
];

/// Suffixes of variables that hold a program: `GIT_SSH_COMMAND`, `MANPAGER`, `CMAKE_C_COMPILER_LAUNCHER`.
const PROGRAM_ENDS: &[&str] = &[
    "ASKPASS",
    "BROWSER",
    "EDITOR",
    "PAGER",
    "_COMMAND",
    "_COMPILER",
    "_CREDENTIAL_PROVIDER",
    "_CREDENTIAL_PROVIDERS",
    "_LAUNCHER",
    "_LINKER",
    "_RSH",
    "_RUNNER",
    "_WRAPPER",
];

fn names_program(name: &str) -> bool {
    // Cargo also reads each setting from a variable: `CARGO_BUILD_RUSTC` is `build.rustc`.
    let is_of_cargo = name.starts_with("CARGO_")
        && (name.ends_with("_RUSTC")
            || name.ends_with("_RUSTDOC")
            || name.starts_with("CARGO_CREDENTIAL_ALIAS_"));
    PROGRAMS.contains(&name)
        || PROGRAM_ENDS.iter().any(|end| name.ends_with(end))
        || name.starts_with("BASH_FUNC_")
        || is_of_cargo
        || npm_setting(name).is_some_and(|setting| setting != "node_options")
}

/// Returns the npm setting of a variable, in lower case.
fn npm_setting(name: &str) -> Option<String> {
    let name = name.to_ascii_lowercase();
    Some(name.strip_prefix("npm_config_")?.replace('-', "_"))
}

/// npm settings that name files with further settings or programs.
const NPM_FILES: &[&str] =
    &["globalconfig", "init_module", "onload_script", "prefix", "userconfig", "workspace_prefix"];

/// Variables of the dynamic loader that load no code. A search path is one of them, as `PATH` is: it names no code
/// itself.
const HARMLESS_OF_LOADER: &[&str] =
    &["BIND_NOW", "BIND_NOT", "DEBUG", "DEBUG_OUTPUT", "LIBRARY_PATH", "SHOW_AUXV", "VERBOSE", "WARN"];

/// Variables of Python that load no code.
const HARMLESS_OF_PYTHON: &[&str] = &[
    "ASYNCIODEBUG",
    "COERCECLOCALE",
    "DEBUG",
    "DEVMODE",
    "DONTWRITEBYTECODE",
    "FAULTHANDLER",
    "HASHSEED",
    "INTMAXSTRDIGITS",
    "IOENCODING",
    "LEGACYWINDOWSFSENCODING",
    "LEGACYWINDOWSSTDIO",
    "MALLOC",
    "MALLOCSTATS",
    "NODEBUGRANGES",
    "NOUSERSITE",
    "OPTIMIZE",
    "PATH",
    "PROFILEIMPORTTIME",
    "PYCACHEPREFIX",
    "SAFEPATH",
    "TRACEMALLOC",
    "UNBUFFERED",
    "UTF8",
    "VERBOSE",
    "WARNDEFAULTENCODING",
];

/// Returns whether a variable makes programs load code, or sets options that load code or run programs.
fn loads_code(name: &str, value: &Word) -> bool {
    let is_set = names_file(value);
    let text = value.text.as_str();
    let has = |words: &[&str]| is_set && words.iter().any(|word| text.contains(word));
    let letters = |rest: &str| {
        !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit())
    };
    if let Some(rest) = name.strip_prefix("LD_").or_else(|| name.strip_prefix("DYLD_")) {
        return is_set && !HARMLESS_OF_LOADER.contains(&rest) && !rest.ends_with("LIBRARY_PATH");
    }
    // `PYTHON_VERSION` is a variable of other tools, not of Python itself: its own have no underscore.
    if let Some(rest) = name.strip_prefix("PYTHON").filter(|rest| letters(rest)) {
        return is_set
            && !HARMLESS_OF_PYTHON.contains(&rest)
            && !(rest == "WARNINGS" && is_short_warning(text));
    }
    if let Some(rest) = name.strip_prefix("PERL5").filter(|rest| letters(rest)) {
        return is_set && rest != "LIB";
    }
    if let Some(rest) = name.strip_prefix("RUBY").filter(|rest| letters(rest)) {
        return is_set
            && rest != "LIB"
            && !(rest == "OPT" && text.split_whitespace().all(is_warning_of_ruby));
    }
    if let Some(setting) = npm_setting(name) {
        return is_set && NPM_FILES.contains(&setting.as_str())
            || setting == "node_options" && loads_into_node(text);
    }
    match name {
        "NODE_OPTIONS" => loads_into_node(text),
        "BASH_ENV" | "GCONV_PATH" | "GIT_EXEC_PATH" | "GIT_TEMPLATE_DIR" | "MAKEFILES" | "OPENSSL_CONF"
        | "OPENSSL_ENGINES" | "OPENSSL_MODULES" => is_set,
        "CARGO_HOME" | "RUSTUP_HOME" => is_relative(value),
        // A toolchain may be given as a directory, whose programs would run.
        "RUSTUP_TOOLCHAIN" => has(&["/"]),
        "TAR_OPTIONS" => has(&["command", "exec", "-I", "use-compress", "rsh"]),
        "GOFLAGS" => has(&["exec", "overlay"]),
        _ if is_flags_of_rust(name) => has(&["link", "codegen-backend", "plugin", "@"]),
        _ if name.ends_with("JAVA_OPTIONS") || name.ends_with("TOOL_OPTIONS") || name.ends_with("_OPTS") => {
            has(&["-javaagent", "-agent", "OnError", "OnOutOfMemoryError", "-XX:Flags", "@"])
        }
        _ => false,
    }
}

/// `RUSTFLAGS`, `CARGO_ENCODED_RUSTFLAGS`, `CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTDOCFLAGS`
fn is_flags_of_rust(name: &str) -> bool {
    let begin = name.strip_suffix("RUSTFLAGS").or_else(|| name.strip_suffix("RUSTDOCFLAGS"));
    begin.is_some_and(|begin| begin.is_empty() || begin.ends_with('_'))
}

/// Returns whether a directory may have been created by a call. The real home of a tool is an absolute path elsewhere.
fn is_relative(value: &Word) -> bool {
    names_file(value) && !value.text.starts_with(['/', '~', '$'])
}

/// Returns whether no warning filter names a category in a module, which Python would import.
fn is_short_warning(text: &str) -> bool {
    text.split(',').all(|filter| !filter.contains('.'))
}

/// Returns whether an option of Ruby only sets the warning level or toggles a feature.
fn is_warning_of_ruby(word: &str) -> bool {
    ["-W", "-w", "--disable", "--enable", "--yjit", "--jit"].iter().any(|begin| word.starts_with(begin))
}

/// Returns whether options of node load a file. Node accepts `_` for `-` in their names, and quotes.
fn loads_into_node(options: &str) -> bool {
    const LOADING: &[&str] = &[
        "-r",
        "--require",
        "--import",
        "--loader",
        "--experimental-config-file",
        "--experimental-default-config-file",
        "--experimental-loader",
        "--openssl-config",
        "--snapshot-blob",
        "-e",
    ];
    let options = options.replace('"', "");
    let mut names =
        options.split_whitespace().map(|word| word.split('=').next().unwrap_or(word).replace('_', "-"));
    names.any(|name| LOADING.contains(&name.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(set: &str) -> Holds {
        let (name, value) = set.split_once('=').expect("a variable with its value");
        holds(name, &Word::literal(value))
    }

    #[test]
    fn programs_are_recognised_by_the_pattern_of_the_name() {
        for set in [
            "CARGO_BUILD_RUSTC=x",
            "CARGO_BUILD_RUSTC_WORKSPACE_WRAPPER=x",
            "CARGO_TARGET_AARCH64_APPLE_DARWIN_RUNNER=x",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_LINKER=x",
            "CARGO_REGISTRIES_OURS_CREDENTIAL_PROVIDER=x",
            "CARGO_REGISTRY_GLOBAL_CREDENTIAL_PROVIDERS=x",
            "CARGO_CREDENTIAL_ALIAS_OURS=x",
            "CMAKE_CXX_COMPILER_LAUNCHER=x",
            "RUSTC_WORKSPACE_WRAPPER=x",
            "SCCACHE_WRAPPER=x",
            "SYSTEMD_PAGER=x",
            "KUBE_EDITOR=x",
            "SUDO_ASKPASS=x",
            "GIT_PROXY_COMMAND=x",
            "PROMPT_COMMAND=x",
            "CVS_RSH=x",
            "BROWSER=x",
            "npm_config_script_shell=x",
            "NPM_CONFIG_GIT=x",
            "npm_config_node-gyp=x",
        ] {
            assert_eq!(of(set), Holds::Program, "{set}");
        }
        assert_eq!(of("CARGO_ALIAS_T=publish"), Holds::WordsOf("cargo"));
        for set in [
            "PAGER=",
            "GIT_EDITOR=/dev/null",
            "CARGO_TERM_COLOR=always",
            "CARGO_INCREMENTAL=0",
            "GIT_COMMIT=a1b2",
        ] {
            assert_eq!(of(set), Holds::Nothing, "{set}");
        }
    }

    #[test]
    fn code_loading_is_recognised_by_the_pattern_of_the_name() {
        for set in [
            "LD_PRELOAD=./x.so",
            "LD_AUDIT=./x.so",
            "LD_PROFILE=x",
            "DYLD_INSERT_LIBRARIES=x",
            "PYTHONSTARTUP=x.py",
            "PYTHONHOME=x",
            "PYTHONBREAKPOINT=x.y",
            "PYTHONWARNINGS=all:0:antigravity.x",
            "PERL5OPT=-Mx",
            "PERL5DB=x",
            "RUBYOPT=-r./x",
            "RUBYSHELL=x",
            "NODE_OPTIONS=--require=./x.js",
            "NODE_OPTIONS=\"--experimental_loader\" ./x.js",
            "npm_config_node_options=--import ./x.js",
            "npm_config_userconfig=./npmrc",
            "RUSTFLAGS=-C linker=./x",
            "CARGO_ENCODED_RUSTFLAGS=-Clinker=./x",
            "CARGO_TARGET_X86_64_UNKNOWN_LINUX_GNU_RUSTFLAGS=-Clink-arg=-fuse-ld=./x",
            "CARGO_BUILD_RUSTDOCFLAGS=@args",
            "RUSTUP_TOOLCHAIN=./x",
            "CARGO_HOME=x",
            "BASH_ENV=x",
            "MAKEFILES=x.mk",
            "GIT_EXEC_PATH=x",
            "GIT_TEMPLATE_DIR=x",
            "OPENSSL_CONF=x",
            "GOFLAGS=-toolexec=./x",
            "TAR_OPTIONS=--to-command=./x",
            "JAVA_TOOL_OPTIONS=-javaagent:x.jar",
            "MAVEN_OPTS=-XX:OnError=./x",
        ] {
            assert_eq!(of(set), Holds::Code, "{set}");
        }
        for set in [
            "LD_PRELOAD=",
            "LD_LIBRARY_PATH=lib",
            "LD_BIND_NOW=1",
            "PYTHONPATH=src",
            "PYTHONUNBUFFERED=1",
            "PYTHONWARNINGS=ignore",
            "PYTHON_VERSION=3.12",
            "PERL5LIB=lib",
            "RUBYLIB=lib",
            "RUBYOPT=-W0",
            "RUBY_VERSION=3.3",
            "NODE_OPTIONS=--max-old-space-size=4096",
            "npm_config_node_options=--no-warnings",
            "RUSTFLAGS=-D warnings -C target-cpu=native",
            "RUSTUP_TOOLCHAIN=nightly",
            "CARGO_HOME=/home/ann/.cargo",
            "BASH_ENV=/dev/null",
            "JAVA_OPTS=-Xmx2g",
            "PORT=8080",
        ] {
            assert_eq!(of(set), Holds::Nothing, "{set}");
        }
    }
}
