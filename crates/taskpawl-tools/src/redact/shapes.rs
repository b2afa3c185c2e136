//! Tokens that are recognised by their shape, without knowledge of their values.

use std::sync::LazyLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind, MatchKind};

/// Longest part of a token that is redacted, in bytes; it bounds the memory for a text without an end.
const MAX_TOKEN: usize = 16 << 10;

/// Number of bytes in which a digit must occur, which distinguishes a token from words.
const DIGIT_WITHIN: usize = 64;

/// Result for the bytes after a prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// They are no token.
    No,
    /// More input is needed.
    More,
    /// Range of a token, or of its secret part.
    Found { start: usize, end: usize },
}

/// Kind of token.
#[derive(Debug)]
pub(super) struct Shape {
    /// Name in the mark that replaces a token.
    pub(super) name: &'static str,
    prefix: &'static str,
    rule: Rule,
}

#[derive(Debug, Clone, Copy)]
enum Rule {
    /// At least `least` bytes of a class, with a digit near their start if `has_digit`. The prefix is part of the
    /// token.
    Run { of: Class, least: usize, has_digit: bool },
    /// Like `Run`, but the prefix is kept.
    After { of: Class, least: usize, has_digit: bool },
    /// Exactly `count` bytes, followed by neither a letter nor a digit.
    Exactly { of: Class, count: usize },
    /// Like `After`, with quotes, blanks and signs such as `=` in between.
    Assigned { of: Class, least: usize },
    /// Like `Run`, but only if no letter or digit precedes the prefix.
    Apart { of: Class, least: usize },
    /// Exactly `count` bytes after a prefix that follows a digit; redaction starts at the second byte of the prefix.
    Numbered { of: Class, count: usize },
    /// Signature of a URL: 32 bytes in base64, plain or percent-encoded. The prefix is kept.
    Signature,
    /// Three parts separated by dots.
    Jwt,
    /// PEM block up to its end, if it is a private key.
    Pem,
    /// Password in front of a host.
    Url,
}

/// Bytes that a token may contain.
#[derive(Debug, Clone, Copy)]
enum Class {
    Alphanumeric,
    Upper,
    Hex,
    /// Letters, digits, `_` and `-`.
    Word,
    /// `Word` and `.`.
    Dotted,
    /// Letters, digits, `+`, `/` and `=`.
    Base64,
    /// All characters of a bearer token.
    Bearer,
}

impl Class {
    fn has(self, byte: u8) -> bool {
        match self {
            Self::Alphanumeric => byte.is_ascii_alphanumeric(),
            Self::Hex => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            Self::Upper => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Word => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'),
            Self::Dotted => byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.'),
            Self::Base64 => byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/' | b'='),
            Self::Bearer => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'~' | b'+' | b'/' | b'=')
            }
        }
    }
}

const fn run(name: &'static str, prefix: &'static str, of: Class, least: usize) -> Shape {
    Shape { name, prefix, rule: Rule::Run { of, least, has_digit: true } }
}

const fn assigned(prefix: &'static str) -> Shape {
    Shape { name: "aws-secret", prefix, rule: Rule::Assigned { of: Class::Base64, least: 40 } }
}

const fn bearer(prefix: &'static str) -> Shape {
    Shape {
        name: "bearer-token",
        prefix,
        rule: Rule::After { of: Class::Bearer, least: 16, has_digit: true },
    }
}

const fn basic(prefix: &'static str) -> Shape {
    Shape { name: "basic-auth", prefix, rule: Rule::After { of: Class::Base64, least: 8, has_digit: false } }
}

const fn exactly(name: &'static str, prefix: &'static str, of: Class, count: usize) -> Shape {
    Shape { name, prefix, rule: Rule::Exactly { of, count } }
}

const fn after(name: &'static str, prefix: &'static str, of: Class, least: usize) -> Shape {
    Shape { name, prefix, rule: Rule::After { of, least, has_digit: true } }
}

use Class::{Alphanumeric, Base64, Bearer, Dotted, Hex, Upper, Word};

/// All kinds of tokens. If one prefix begins with another, the longer one counts.
pub(super) static ALL: &[Shape] = &[
    exactly("aws-key", "AKIA", Upper, 16),
    exactly("aws-key", "ASIA", Upper, 16),
    assigned("aws_secret_access_key"),
    assigned("AWS_SECRET_ACCESS_KEY"),
    assigned("SecretAccessKey"),
    assigned("aws_session_token"),
    assigned("AWS_SESSION_TOKEN"),
    assigned("SessionToken"),
    run("github-token", "ghp_", Alphanumeric, 30),
    run("github-token", "gho_", Alphanumeric, 30),
    run("github-token", "ghu_", Alphanumeric, 30),
    run("github-token", "ghs_", Alphanumeric, 30),
    run("github-token", "ghr_", Alphanumeric, 30),
    run("github-token", "github_pat_", Word, 22),
    run("gitlab-token", "glpat-", Dotted, 20),
    run("gitlab-token", "gldt-", Dotted, 20),
    run("gitlab-token", "glrt-", Dotted, 20),
    run("gitlab-token", "glcbt-", Dotted, 20),
    run("gitlab-token", "glptt-", Dotted, 20),
    run("gitlab-token", "glrtr-", Dotted, 20),
    run("gitlab-token", "glft-", Dotted, 20),
    run("gitlab-token", "glimt-", Dotted, 20),
    run("gitlab-token", "glagent-", Dotted, 20),
    run("gitlab-token", "glsoat-", Dotted, 20),
    run("gitlab-token", "glffct-", Dotted, 20),
    run("gitlab-secret", "gloas-", Dotted, 20),
    run("slack-token", "xoxb-", Word, 10),
    run("slack-token", "xoxp-", Word, 10),
    run("slack-token", "xoxa-", Word, 10),
    run("slack-token", "xoxr-", Word, 10),
    run("slack-token", "xoxs-", Word, 10),
    run("slack-token", "xoxe-", Word, 10),
    run("slack-token", "xoxc-", Word, 10),
    run("slack-token", "xoxd-", Word, 10),
    run("slack-token", "xapp-", Word, 10),
    run("slack-webhook", "hooks.slack.com/services/", Base64, 20),
    run("anthropic-key", "sk-ant-", Word, 20),
    run("openai-key", "sk-proj-", Word, 20),
    run("openai-key", "sk-svcacct-", Word, 20),
    run("openai-key", "sk-admin-", Word, 20),
    run("openrouter-key", "sk-or-", Word, 20),
    Shape { name: "openai-key", prefix: "sk-", rule: Rule::Apart { of: Word, least: 32 } },
    run("stripe-key", "sk_live_", Alphanumeric, 16),
    run("stripe-key", "sk_test_", Alphanumeric, 16),
    run("stripe-key", "rk_live_", Alphanumeric, 16),
    run("stripe-key", "rk_test_", Alphanumeric, 16),
    run("stripe-key", "whsec_", Base64, 24),
    run("npm-token", "npm_", Alphanumeric, 36),
    run("pypi-token", "pypi-", Word, 50),
    run("google-key", "AIza", Word, 35),
    run("google-token", "ya29.", Dotted, 20),
    run("google-secret", "GOCSPX-", Word, 20),
    run("huggingface-token", "hf_", Alphanumeric, 30),
    run("digitalocean-token", "dop_v1_", Alphanumeric, 60),
    run("digitalocean-token", "doo_v1_", Alphanumeric, 60),
    run("digitalocean-token", "dor_v1_", Alphanumeric, 60),
    run("sendgrid-key", "SG.", Dotted, 40),
    run("grafana-token", "glsa_", Word, 32),
    run("shopify-token", "shpat_", Alphanumeric, 32),
    run("shopify-token", "shpca_", Alphanumeric, 32),
    run("shopify-token", "shppa_", Alphanumeric, 32),
    run("shopify-secret", "shpss_", Alphanumeric, 32),
    run("docker-token", "dckr_pat_", Word, 20),
    run("docker-token", "dckr_oat_", Word, 20),
    run("vault-token", "hvs.", Word, 24),
    run("vault-token", "hvb.", Word, 24),
    run("vault-token", "hvr.", Word, 24),
    after("azure-key", "AccountKey=", Base64, 64),
    after("azure-key", "SharedAccessKey=", Base64, 40),
    Shape { name: "azure-sas", prefix: "sig=", rule: Rule::Signature },
    run("atlassian-token", "ATATT3x", Bearer, 60),
    run("atlassian-token", "ATCTT3x", Bearer, 60),
    Shape { name: "telegram-token", prefix: ":AA", rule: Rule::Numbered { of: Word, count: 33 } },
    exactly("twilio-key", "SK", Hex, 32),
    exactly("databricks-token", "dapi", Hex, 32),
    run("doppler-token", "dp.pt.", Alphanumeric, 40),
    run("doppler-token", "dp.st.", Dotted, 40),
    after("terraform-token", ".atlasv1.", Word, 60),
    run("postman-key", "PMAK-", Word, 50),
    exactly("newrelic-key", "NRAK-", Upper, 27),
    run("sentry-token", "sntrys_", Base64, 60),
    run("sentry-token", "sntryu_", Alphanumeric, 60),
    run("tailscale-key", "tskey-", Word, 20),
    run("rubygems-key", "rubygems_", Alphanumeric, 40),
    run("planetscale-token", "pscale_tkn_", Word, 32),
    run("planetscale-token", "pscale_pw_", Word, 32),
    exactly("supabase-token", "sbp_", Hex, 40),
    run("perplexity-key", "pplx-", Alphanumeric, 40),
    run("circleci-token", "CCIPAT_", Word, 40),
    run("linear-key", "lin_api_", Alphanumeric, 32),
    run("groq-key", "gsk_", Alphanumeric, 40),
    run("xai-key", "xai-", Alphanumeric, 40),
    run("age-key", "AGE-SECRET-KEY-1", Upper, 50),
    Shape { name: "jwt", prefix: "eyJ", rule: Rule::Jwt },
    bearer("Bearer "),
    bearer("bearer "),
    bearer("BEARER "),
    basic("uthorization: Basic "),
    basic("uthorization: basic "),
    basic("uthorization\":\"Basic "),
    basic("uthorization\": \"Basic "),
    Shape { name: "url-password", prefix: "://", rule: Rule::Url },
    Shape { name: "private-key", prefix: BEGIN, rule: Rule::Pem },
];

const BEGIN: &str = "-----BEGIN ";

/// Matcher for the prefixes.
pub(super) static PREFIXES: LazyLock<AhoCorasick> = LazyLock::new(|| {
    AhoCorasick::builder()
        .match_kind(MatchKind::LeftmostLongest)
        .kind(Some(AhoCorasickKind::DFA))
        .build(ALL.iter().map(|shape| shape.prefix))
        .expect("BUG: the prefixes are few and short")
});

/// Returns the prefixes of all kinds.
pub(super) fn prefixes() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|shape| shape.prefix)
}

impl Shape {
    /// Checks a text from the start of the prefix on. `before` is the byte in front of it; `is_end` means that no more
    /// input follows.
    pub(super) fn look(&self, text: &[u8], at: usize, before: Option<u8>, is_end: bool) -> Verdict {
        let from = at + self.prefix.len();
        let run = |of, from, least, has_digit| Run { of, from, least, has_digit }.look(text, is_end);
        let starting = |start, verdict| match verdict {
            Verdict::Found { end, .. } => Verdict::Found { start, end },
            other @ (Verdict::No | Verdict::More) => other,
        };
        match self.rule {
            Rule::Run { of, least, has_digit } => starting(at, run(of, from, least, has_digit)),
            Rule::After { of, least, has_digit } => run(of, from, least, has_digit),
            Rule::Exactly { of, count } => starting(at, exact(of, from, count, text, is_end)),
            Rule::Assigned { of, least } => {
                let from = from + text[from..].iter().take(8).take_while(|byte| is_between(**byte)).count();
                run(of, from, least, false)
            }
            // `n`, `r` and `t` may be the end of an escaped line break or tab.
            Rule::Apart { .. }
                if before.is_some_and(|byte| {
                    byte.is_ascii_alphanumeric() && !matches!(byte, b'n' | b'r' | b't')
                }) =>
            {
                Verdict::No
            }
            Rule::Apart { of, least } => starting(at, run(of, from, least, true)),
            Rule::Numbered { of, count } if before.is_some_and(|byte| byte.is_ascii_digit()) => {
                starting(at + 1, exact(of, from, count, text, is_end))
            }
            Rule::Numbered { .. } => Verdict::No,
            Rule::Signature => signature(text, from, is_end),
            Rule::Jwt => starting(at, jwt(text, from, is_end)),
            Rule::Pem => pem(text, at, is_end),
            Rule::Url => url(text, from, is_end),
        }
    }

    /// Returns the position up to which a `No` at `at` also holds for later starts. Without this a crafted text of many
    /// prefixes would take quadratic time.
    pub(super) fn no_until(&self, text: &[u8], at: usize) -> usize {
        if self.is_jwt() { run_end(Word, text, at, at + MAX_TOKEN) } else { at }
    }

    /// Returns whether this kind supports `no_until`.
    pub(super) fn is_jwt(&self) -> bool {
        matches!(self.rule, Rule::Jwt)
    }
}

struct Run {
    of: Class,
    from: usize,
    least: usize,
    has_digit: bool,
}

impl Run {
    fn look(&self, text: &[u8], is_end: bool) -> Verdict {
        let Self { of, from, least, has_digit } = *self;
        let seen = run_end(of, text, from, from + DIGIT_WITHIN);
        let is_open = seen == text.len() && !is_end && seen < from + DIGIT_WITHIN;
        let is_short = seen - from < least.min(DIGIT_WITHIN);
        let lacks_digit = has_digit && !text[from..seen].iter().any(u8::is_ascii_digit);
        if is_short || lacks_digit {
            return if is_open { Verdict::More } else { Verdict::No };
        }
        let most = from + MAX_TOKEN;
        let end = run_end(of, text, seen, most);
        if end == text.len() && !is_end && end < most {
            return Verdict::More;
        }
        Verdict::Found { start: from, end }
    }
}

/// Returns the end of a run of bytes of a class, `most` at the latest.
fn run_end(of: Class, text: &[u8], from: usize, most: usize) -> usize {
    let rest = &text[from.min(text.len())..most.min(text.len()).max(from.min(text.len()))];
    from.min(text.len()) + rest.iter().position(|byte| !of.has(*byte)).unwrap_or(rest.len())
}

fn exact(of: Class, from: usize, count: usize, text: &[u8], is_end: bool) -> Verdict {
    let end = run_end(of, text, from, from + count);
    if end - from < count {
        return if end == text.len() && !is_end { Verdict::More } else { Verdict::No };
    }
    match text.get(end) {
        None if !is_end => Verdict::More,
        Some(byte) if byte.is_ascii_alphanumeric() => Verdict::No,
        Some(_) | None => Verdict::Found { start: from, end },
    }
}

/// Checks 32 bytes in base64: 43 characters and one `=`, each possibly percent-encoded.
fn signature(text: &[u8], from: usize, is_end: bool) -> Verdict {
    const SIGNS: usize = 43;
    let mut at = from;
    for sign in 0..=SIGNS {
        let rest = &text[at.min(text.len())..];
        let written = |forms: &[&[u8]]| forms.iter().any(|form| rest.starts_with(form));
        let is_escaped = if sign < SIGNS {
            written(&[b"%2B", b"%2b", b"%2F", b"%2f"])
        } else {
            written(&[b"%3D", b"%3d"])
        };
        let is_plain = rest.first().is_some_and(|byte| match byte {
            b'=' => sign == SIGNS,
            byte => sign < SIGNS && (byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/')),
        });
        if is_escaped {
            at += 3;
        } else if is_plain {
            at += 1;
        } else {
            let is_open = rest.is_empty() || (rest.len() < 3 && rest[0] == b'%');
            return if is_open && !is_end { Verdict::More } else { Verdict::No };
        }
    }
    Verdict::Found { start: from, end: at }
}

fn is_between(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'"' | b'\'' | b'=' | b':' | b'\\' | b'>')
}

/// Checks three parts of letters, digits, `_` and `-`, separated by dots; the third may be empty.
fn jwt(text: &[u8], from: usize, is_end: bool) -> Verdict {
    let most = from + MAX_TOKEN;
    let mut end = from;
    for least in [10, 4] {
        let part = run_end(Word, text, end, most);
        if part == text.len() && !is_end && part < most {
            return Verdict::More;
        }
        if part - end < least || text.get(part) != Some(&b'.') {
            return Verdict::No;
        }
        end = part + 1;
    }
    let end = run_end(Word, text, end, most.max(end));
    if end == text.len() && !is_end && end < most {
        return Verdict::More;
    }
    Verdict::Found { start: from, end }
}

/// Checks a private key from its first line to its last one, or to the first byte that cannot belong to it.
fn pem(text: &[u8], at: usize, is_end: bool) -> Verdict {
    const LABEL: usize = 64;
    const KEY: &[u8] = b"PRIVATE KEY";
    const END: &[u8] = b"-----END ";
    let label = at + BEGIN.len();
    let window = &text[label..(label + LABEL).min(text.len())];
    let Some(length) = window.windows(5).position(|part| part == b"-----") else {
        let is_open = window.len() < LABEL && !is_end && window.iter().all(|byte| is_label(*byte));
        return if is_open { Verdict::More } else { Verdict::No };
    };
    let is_key = window[..length].iter().all(|byte| is_label(*byte))
        && window[..length].windows(KEY.len()).any(|part| part == KEY);
    if !is_key {
        return Verdict::No;
    }
    let most = (at + MAX_TOKEN).min(text.len());
    let mut end = label + length + 5;
    while end < most && is_in_pem(text[end]) {
        if text[end..].starts_with(BEGIN.as_bytes()) {
            return Verdict::Found { start: at, end };
        }
        if text[end..].starts_with(END) {
            return pem_end(text, at, end + END.len(), is_end);
        }
        end += 1;
    }
    if end == text.len() && !is_end && end < at + MAX_TOKEN {
        return Verdict::More;
    }
    Verdict::Found { start: at, end }
}

fn pem_end(text: &[u8], at: usize, from: usize, is_end: bool) -> Verdict {
    let mut end = from;
    while end < text.len() && end < from + 64 && is_label(text[end]) {
        end += 1;
    }
    let dashes = text[end..].iter().take(5).take_while(|byte| **byte == b'-').count();
    let is_open = end + dashes == text.len() && !is_end && end < from + 64 && dashes < 5;
    if is_open { Verdict::More } else { Verdict::Found { start: at, end: end + dashes } }
}

fn is_label(byte: u8) -> bool {
    byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b' ' || byte == b'-'
}

/// Returns whether a byte may occur in a PEM block, including escaped line breaks and the headers of encrypted keys.
fn is_in_pem(byte: u8) -> bool {
    Class::Base64.has(byte)
        || matches!(byte, b'\r' | b'\n' | b' ' | b'\t' | b'\\' | b':' | b'-' | b',' | b'.' | b'(' | b')')
}

/// Checks `user:password@`; only the password is redacted.
fn url(text: &[u8], from: usize, is_end: bool) -> Verdict {
    const USER: usize = 256;
    const PASSWORD: usize = 1024;
    let is_part = |byte: u8| {
        byte.is_ascii_graphic()
            && !matches!(byte, b'/' | b'@' | b'"' | b'\'' | b'<' | b'>' | b'`' | b'?' | b'#' | b'\\')
    };
    let until = |from: usize, most: usize, is_over: &dyn Fn(u8) -> bool| {
        let mut at = from;
        while at < text.len() && at < from + most && !is_over(text[at]) {
            at += 1;
        }
        (at, at == text.len() && at < from + most && !is_end)
    };
    let (colon, is_open) = until(from, USER, &|byte| byte == b':' || !is_part(byte));
    if is_open {
        return Verdict::More;
    }
    if text.get(colon) != Some(&b':') {
        return Verdict::No;
    }
    let (end, is_open) = until(colon + 1, PASSWORD, &|byte| !is_part(byte));
    if is_open {
        return Verdict::More;
    }
    let start = colon + 1;
    // A password that is already redacted stays, so that redacting twice changes nothing.
    let is_redacted = text[start..end].starts_with(b"[redacted:");
    if end == start || is_redacted || text.get(end) != Some(&b'@') {
        return Verdict::No;
    }
    Verdict::Found { start, end }
}
