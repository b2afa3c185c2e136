//! Tests of the two ways to read a line.

use super::*;

fn plain_argvs(line: &str) -> Option<Vec<String>> {
    Some(Reading::of_line(line).commands().plain?.iter().map(|command| command.argv.join(" ")).collect())
}

#[test]
fn plain_lines_are_understood() {
    let cases = [
        ("cargo test --all", vec!["cargo test --all"]),
        ("a && b || c | d; e & f", vec!["a", "b", "c", "d", "e", "f"]),
        ("git commit -m 'a; rm b' \"c\"\n\ngit push;", vec!["git commit -m a; rm b c", "git push"]),
        ("A=1 B_2=x make", vec!["make"]),
    ];
    for (line, expected) in cases {
        assert_eq!(plain_argvs(line).unwrap_or_default(), expected, "{line}");
    }
    let commands = Reading::of_line("A=1 make").commands().plain.expect("it is plain");
    assert_eq!(commands[0].variables, ["A"]);
}

#[test]
fn lines_with_shell_syntax_are_not_plain() {
    let lines = [
        "",
        "  ",
        "a $(b)",
        "a `b`",
        "a $B",
        "a \"$B\"",
        "a > f",
        "a < f",
        "a 2>&1",
        "a *",
        "a ?",
        "a [b]",
        "a ~",
        "(a)",
        "{ a; }",
        "! a",
        "if a",
        "for b",
        "a\\ b",
        "a 'b",
        "a \"b",
        "a # b",
        "A=1",
        "\"A=1\" b",
        "a &&",
        "&& a",
        "a ; ; b",
        "a <<E\nb\nE",
        "a {b,c}",
        "'' a",
        "a |",
        "a || ",
        "f() a",
        "a\rb",
        "a \u{0}b",
        "=x a",
    ];
    for line in lines {
        assert_eq!(plain_argvs(line), None, "{line:?}");
    }
}

#[test]
fn nested_and_hidden_commands_are_found() {
    let lines = [
        "rm x",
        "a && rm x",
        "a; rm x",
        "a | rm x",
        "a || rm x",
        "a & rm x",
        "a\nrm x",
        "(rm x)",
        "{ rm x; }",
        "! rm x",
        "if a; then rm x; fi",
        "for b in c; do rm x; done",
        "while rm x; do a; done",
        "A=1 rm x",
        "A=$(rm x)",
        "a $(rm x)",
        "a \"$(rm x)\"",
        "a `rm x`",
        "a \"`rm x`\"",
        "a <(rm x)",
        "a > $(rm x)",
        "a > \"`rm x`\"",
        "a > >(rm x)",
        "sudo rm x",
        "sudo -u b rm x",
        "env -i A=1 rm x",
        "nohup rm x",
        "timeout 5 rm x",
        "xargs -n1 rm x",
        "find . -exec rm x {} ;",
        "sh -c 'rm x'",
        "bash -lc \"a && rm x\"",
        "eval rm x",
        "eval 'rm x'",
        "sh -c \"sh -c 'rm x'\"",
        "/usr/bin/env rm x",
        "sudo sh -c 'a; rm x'",
        "exec rm x",
        "command rm x",
        "time rm x",
        "r\\m x",
        "r''m x",
        "\"rm\" x",
        "a 2>&1; rm x",
        "a >f rm; rm x",
        ">f rm x",
        "2>f rm x",
        "case a in b) rm x;; esac",
        "f() { rm x; }; f",
        "cat <<E\nrm x\nE",
        "a ${B:-$(rm x)}",
        "a \\\n; rm x",
        "if rm x",
        "env --split-string='rm x'",
        "env -S 'rm x'",
        "bash5 -c 'rm x'",
        "$(echo a) rm x",
        "alias r=rm; r x",
        "alias r='rm x'; r",
        "alias b=c 'a=b' c=rm; a x",
        "alias s='sudo ' r=rm; s r x",
        "alias ls='ls -l' r='a; rm'\nr x",
        "command alias r=rm; r x",
        "eval 'alias r=rm'; r x",
        "alias a='alias r=rm'; a; r x",
        "bash -c 'alias r=rm\nr x'",
        "hash -p rm r; r x",
        "f(){ rm x;};f",
        "function f { rm x; }; f",
    ];
    for line in lines {
        let found = Reading::of_line(line).commands().suspects;
        let is_rm =
            |suspect: &Suspect| matches!(suspect.words(), [rm, x, ..] if rm.text == "rm" && x.text == "x");
        assert!(found.iter().any(is_rm), "{line:?}: {found:?}");
    }
}

#[test]
fn arguments_are_no_commands() {
    for line in [
        "alias ls='ls -l'; ls rm x",
        "alias a=b b=a; a rm x",
        "echo rm x",
        "echo 'rm x'",
        "echo \"; rm x\"",
        "a >rm x",
        "git commit -m 'a; rm x'",
    ] {
        let found = Reading::of_line(line).commands().suspects;
        assert!(!found.iter().any(|suspect| suspect.words()[0].text == "rm"), "{line:?}: {found:?}");
    }
}

#[test]
fn a_certain_program_leaves_no_other_suspects() {
    for line in ["sudo cat $X", "nohup cat *", "exec cat \"$X\"", "sudo env cat $X rm x"] {
        let found = Reading::of_line(line).commands().suspects;
        let is_open = |suspect: &Suspect| suspect.words()[0].certainty != Certainty::Literal;
        assert!(!found.iter().any(is_open), "{line:?}: {found:?}");
        assert!(found.iter().any(|suspect| suspect.words()[0].text == "cat"), "{line:?}");
        assert!(!found.iter().any(|suspect| suspect.words()[0].text == "rm"), "{line:?}");
    }
    // After an option with a value it is uncertain which word is the program.
    let found = Reading::of_line("sudo -u b $X").commands().suspects;
    assert!(found.iter().any(|suspect| suspect.words()[0].text == "$X"), "{found:?}");
}

#[test]
fn malformed_and_huge_lines_are_read_without_panic_or_blowup() {
    for line in
        ["$", "$(", "`", "\"", "'", "\\", "<", ">(", "${", "$((1+(2", "a$", "$$", "\u{7f}", "{", "}", "((("]
    {
        Reading::of_line(line).commands();
    }
    let deep = "$(".repeat(50_000);
    Reading::of_line(&deep).commands();
    let names: Vec<String> = (0..500).map(|n| format!("alias a{n}='a{} a0 '; ", n + 1)).collect();
    let names = names.concat();
    Reading::of_line(&format!("{names} {}", "a0 ".repeat(5_000))).commands();
    Reading::of_line(&format!("xargs {}", "alias ".repeat(20_000))).commands();
    Reading::of_line(&format!("alias a=b; xargs {}", "a ".repeat(20_000))).commands();
    let nested = (0..200).fold("rm x".to_owned(), |line, _| format!("sh -c '{line}'"));
    Reading::of_line(&nested).commands();
}
