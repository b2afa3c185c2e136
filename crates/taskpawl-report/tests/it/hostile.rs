//! Texts of tasks and tools in reports: shown only on request, and never as markup.

use taskpawl_report::{
    Detail, annotations, chrome_trace, html, junit, markdown, otlp_json, spans, without_commands,
};

use crate::support::log;

/// Markup, mentions, workflow commands, control characters and a change of the reading direction.
const HOSTILE: &str = "</pre><script>alert(1)</script>]]> <img src=x onerror=y> @octocat #12 **b** [x](http://evil.example.org) \
                       | `t` www.evil.example.org\n\n::error file=x::y\n  ::set-env name=A::b\n##[add-mask]z\u{0}\u{1b}[31m\u{202e}\u{ffff}";

fn all(text: &str, details: &[Detail]) -> Vec<String> {
    let log = log(text, details);
    let spans = spans(&log);
    let included = &log.included;
    vec![
        html(&log),
        junit(&log),
        markdown(&log),
        annotations(&log),
        otlp_json(&spans, included).unwrap(),
        chrome_trace(&spans, included),
    ]
}

#[test]
fn details_are_shown_only_if_they_are_included() {
    // The name of a task is always shown, so the text has to be told apart from it.
    let hidden = all("NAME", &[]);
    for report in &hidden {
        for secret in ["argv", "exitCode\\\":", "stdout", "prompt", "/keep"] {
            assert!(!report.contains(secret), "{secret} in {report}");
        }
    }
    let with_path = all("open /home/me/keys/id: denied", &[Detail::Output, Detail::Errors]);
    assert!(with_path.iter().all(|report| !report.contains("/home/me")), "{with_path:?}");
    let shown = all("NAME", &Detail::ALL);
    for (report, has) in shown.iter().zip([true, true, true, false, true, true]) {
        assert_eq!(report.contains("argv"), has, "{report}");
    }
    let lists = "output, errors, args, results, prompts, paths";
    for report in shown.iter().enumerate().filter(|(at, _)| *at != 3).map(|(_, report)| report) {
        assert!(report.contains(lists), "{report}");
    }
}

#[test]
fn artifacts_are_listed_with_their_name_type_and_size() {
    let log = log("f", &[]);
    assert!(html(&log).contains("artifact f (f, 12 bytes)"), "{}", html(&log));
    let summary = markdown(&log);
    assert!(
        summary.contains("Artifacts of <code>b</code>: <code>f &#40;f&#44; 12 bytes&#41;</code>"),
        "{summary}"
    );
}

#[test]
fn a_page_has_no_markup_of_others_and_loads_nothing() {
    let page = &all(HOSTILE, &Detail::ALL)[0];
    assert!(!page.contains("<script") && !page.contains("<img"), "{page}");
    assert!(page.contains("default-src 'none'; style-src 'sha256-"), "{page}");
    for loads in ["src=", "href=", "url(", "@import", " style=", " on"] {
        let found = page.split("<body").nth(1).unwrap_or_default().contains(loads);
        // The hostile text itself is there, escaped.
        assert!(!found || HOSTILE.contains(loads), "{loads}");
    }
    let elements: Vec<&str> =
        page.match_indices('<').map(|(at, _)| page[at..].split(['>', ' ']).next().unwrap()).collect();
    assert!(elements.contains(&"<svg") && elements.contains(&"<details"), "{elements:?}");
    assert!(!page.contains(['\u{0}', '\u{1b}', '\u{202e}']));
}

#[test]
fn junit_is_well_formed_and_has_the_texts() {
    let xml = &all(HOSTILE, &Detail::ALL)[1];
    let document = roxmltree::Document::parse(xml).unwrap_or_else(|error| panic!("{error}: {xml}"));
    let suites = document.root_element();
    let counts = ["tests", "failures", "errors", "skipped"].map(|name| suites.attribute(name).unwrap());
    assert_eq!(counts, ["3", "1", "0", "1"]);
    let failed = document.descendants().find(|node| node.has_tag_name("failure")).unwrap();
    assert!(failed.text().unwrap().contains("<script>alert(1)</script>]]>"), "the text is kept");
    let case = failed.parent().unwrap();
    assert_eq!((case.attribute("file"), case.attribute("line")), (Some("plans/demo.yaml"), Some("7")));
    assert_eq!((case.attribute("classname"), case.attribute("time")), (Some("demo.b"), Some("7.000")));
    let printed = case.children().find(|node| node.has_tag_name("system-err")).unwrap();
    assert!(printed.text().unwrap().contains("\\u{1b}[31m"), "{xml}");
}

#[test]
fn markdown_has_no_markup_of_others() {
    let text = &all(HOSTILE, &Detail::ALL)[2];
    // Each mark of the texts is a character reference, such as `&#64;` for a mention.
    for mark in ["@", "**b**", "[x]", "http:", "www.", "`", "<script", "<img", "::", " #12"] {
        assert!(!text.contains(mark), "{mark}: {text}");
    }
    // Only ours: a heading, a list of statuses, and a bold line.
    assert!(text.starts_with("### taskpawl: exit 1\n"), "{text}");
    assert!(
        text.lines().filter(|line| line.starts_with('|')).all(|row| row.matches('|').count() == 5),
        "{text}"
    );
}

#[test]
fn annotations_name_the_line_and_are_only_ours() {
    let text = annotations(&log(HOSTILE, &Detail::ALL));
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.starts_with("::error file=plans/demo.yaml,line=7,title="), "{text}");
    let plain = annotations(&log("B", &[]));
    assert_eq!(plain, "::error file=plans/demo.yaml,line=7,title=B failed::b: call c1 (exec): exit code 1\n");
}

#[test]
fn other_output_has_no_workflow_commands() {
    let text = "a :: b\n::error::x\r  ::stop-commands::t\n\t::x\nz ##[error]y\n";
    let clean = without_commands(text);
    for line in clean.split(['\n', '\r']) {
        assert!(!line.trim_start().starts_with("::") && !line.contains("##["), "{clean}");
    }
    assert!(clean.starts_with("a :: b\n: :error::x\r  : :stop"), "{clean}");
    assert!(matches!(without_commands("plain ::\n"), std::borrow::Cow::Borrowed(_)));
}
