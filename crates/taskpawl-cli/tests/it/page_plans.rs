//! Each plan that a page shows is valid, with the configuration that the page shows. Those of the language reference also run, see
//! `language.rs`.

use std::fs;
use std::path::{Path, PathBuf};

use crate::harness::Cli;

/// Plans with an error on purpose: the end of the path of their page, and a part of the error.
const INVALID: [(&str, &str); 1] = [("how-to/editor.md", "unknown field `retri`")];

fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let pages_in =
        |directory: &str| fs::read_dir(root.join(directory)).unwrap().map(|entry| entry.unwrap().path());
    let all = ["", "docs", "docs/how-to"].into_iter().flat_map(pages_in);
    all.filter(|path| path.extension().is_some_and(|extension| extension == "md")).collect()
}

/// Returns the blocks of code of a language.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fenced = page.split("```").skip(1).step_by(2).filter_map(|block| block.split_once('\n'));
    fenced.filter(|(info, _)| info.split(' ').next() == Some(language)).map(|(_, block)| block).collect()
}

/// Returns the blocks with the names of files, which other plans of the page may include.
fn named(page: &str) -> Vec<(&str, &str)> {
    let blocks = page.split("```yaml ").skip(1);
    blocks.filter_map(|block| block.split("```").next()?.split_once('\n')).collect()
}

#[test]
fn plans_of_the_pages_are_valid() {
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let plans =
            blocks(&page, "yaml").into_iter().filter(|block| block.lines().any(|line| line == "tasks:"));
        for plan in plans {
            let cli = Cli::without_store().with_programs();
            let config = cli.path(".config/taskpawl/config.toml");
            fs::create_dir_all(config.parent().unwrap()).unwrap();
            let sections = ["[secrets.", "[mcpServers."];
            let shown = blocks(&page, "toml").into_iter();
            let configs = shown.filter(|block| sections.iter().any(|section| block.starts_with(section)));
            fs::write(&config, configs.collect::<String>()).unwrap();
            for (name, included) in named(&page) {
                cli.file(name, included);
            }
            cli.file("plan.yaml", plan);
            if plan.contains("worktree:") {
                cli.shell("git init -q; git -c user.name=a -c user.email=a@example.org commit -q --allow-empty -m a");
            }
            let run = cli.run(&["plan", "check", "plan.yaml"]);
            let expected = INVALID.iter().find(|(page, _)| path.ends_with(page));
            let is_right = match expected {
                Some((_, error)) => {
                    run.code == Some(7) && format!("{}{}", run.stdout, run.stderr).contains(error)
                }
                None => run.code == Some(0),
            };
            assert!(is_right, "{}:\n{plan}\n{run}", path.display());
            count += 1;
        }
    }
    assert!(count > 20, "{count} plans");
}
