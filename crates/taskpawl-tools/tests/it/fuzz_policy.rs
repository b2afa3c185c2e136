//! Fuzzing of policies and of calls under a policy: input is accepted or refused without a panic, and a stricter policy
//! never allows more.

mod entries;

use taskpawl_fuzz::Target;

use entries::{command, file};

const FILE: Target<'_> = Target {
    name: "policies",
    corpus: &[
        "[[rules]]\ndecision = \"allow\"\ntool = \"exec\"\nargv = [\"git\", \"status\"]\nmatch = [\"git status -s\"]\nnotMatch = [\"git push\"]\n",
        "[[rules]]\ndecision = \"deny\"\nargv = [\"rm\"]\nreason = \"no\"\norigins = [\"agent\", \"mcp\"]\n[[rules]]\ndecision = \"ask\"\ntool = \"write_file\"\n",
        "[origins]\nagent = \"sandboxed\"\nmcp = \"deny\"\n",
        "rules = [{ decision = \"allow\", tool = \"http_request\", sandbox = { net = true, read = [\"/x\"], write = [\"y\"] } }]\n",
    ],
    words: &[
        "[[rules]]\n",
        "[origins]\n",
        "[sandbox]\n",
        "decision",
        "allow",
        "ask",
        "deny",
        "sandboxed",
        "tool",
        "argv",
        "match",
        "notMatch",
        "origins",
        "agent",
        "mcp",
        "plan",
        "cli",
        "reason",
        "env",
        "sandbox",
        "net",
        "read",
        "write",
        " = ",
        "\"",
        "\"*\"",
        "[\"",
        "\"]",
        "exec",
        "shell",
        "git",
        "rm -rf /",
        "{ ",
        " }",
        "true",
        "*",
        "github/",
    ],
};

const COMMAND: Target<'_> = Target {
    name: "commands under a policy",
    corpus: &[
        "git status -s",
        "git status && rm -rf x",
        "A=1 git status",
        "$(rm x)",
        "git status; `rm x`",
        "sh -c 'rm x'",
        "env -i rm x",
        "if true; then rm x; fi",
        "git status <<EOF\nrm\nEOF",
        "git \"status\" 'a;rm b'",
        "xargs rm",
        "{ rm x; }",
        "git status | tee >(rm x)",
        "r\\m x",
        "git status #; rm",
    ],
    words: &[
        "git",
        "status",
        "rm",
        "&&",
        "||",
        ";",
        "|",
        "&",
        "$(",
        ")",
        "`",
        "'",
        "\"",
        "\\",
        "\n",
        "<<EOF\n",
        ">(",
        "sh -c ",
        "env ",
        "A=1 ",
        "exec ",
        "$'\\x72m'",
        "{ ",
        "; }",
        "if ",
        "then ",
        "fi",
        "for ",
        "function ",
        "é",
    ],
};

#[test]
fn the_corpus_is_read_or_refused() {
    FILE.corpus(file);
    COMMAND.corpus(command);
}

#[test]
fn hostile_policies_cause_no_panic() {
    FILE.fuzz_part(2, file);
}

#[test]
fn hostile_commands_get_a_decision() {
    COMMAND.fuzz(command);
}
