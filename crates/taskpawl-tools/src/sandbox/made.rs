//! Finds files that programs created and that other programs obey later. A missing file cannot be covered by a mount, so the project is
//! scanned after each call.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::closed::is_opened;
use super::warning::{MAX_LISTED, warning};
use crate::context::CallContext;
use crate::error::ToolError;
use crate::sandbox::obeyed::Obeyed;
use crate::sandbox::watch::{Watch, unseen};
use crate::scan::ScanBounds;

/// The state before a call that starts programs or talks to some. The programs may create files that others obey.
#[derive(Debug)]
pub struct BeforeCall {
    watch: Option<Arc<Watch>>,
    seen: usize,
}

/// Files that other programs obey and that were created during a call.
#[derive(Debug, Default)]
pub struct CreatedInCall {
    /// The files as they are named in messages.
    names: Vec<String>,
    /// The number of further files.
    more: usize,
    /// The part that was not searched, if it was not reported yet.
    gap: Option<String>,
    /// The files, and the watch that learns once they are reported.
    found: Option<(Arc<Watch>, Vec<Obeyed>)>,
}

impl BeforeCall {
    /// Records the state before a program starts, or receives a request.
    ///
    /// While another call is scanning, this waits on a thread of its own, because calls are polled on the thread of the run.
    ///
    /// # Errors
    /// The call was cancelled or timed out meanwhile.
    pub async fn of(cx: &CallContext) -> Result<Self, ToolError> {
        let Some(watch) = cx.closed.watch().cloned() else { return Ok(Self { watch: None, seen: 0 }) };
        if let Some(seen) = watch.seen_now() {
            return Ok(Self { watch: Some(watch), seen });
        }
        let waiting = Arc::clone(&watch);
        let seen = ScanBounds::of_call(cx).run(move |_| Ok(waiting.seen())).await?;
        Ok(Self { watch: Some(watch), seen })
    }

    /// Scans again after the program has ended or answered. Paths that were named for writing, also by `named`, are not reported.
    ///
    /// The scan is bounded even if the call has no time left. A gap then reports that files may have been missed.
    pub async fn created(self, cx: &CallContext, named: Vec<PathBuf>) -> CreatedInCall {
        let Some(watch) = self.watch else { return CreatedInCall::default() };
        let (bounds, cx) = (ScanBounds::after_call(cx), cx.clone());
        let looked = bounds.run(move |bounds| Ok(created(&watch, self.seen, &cx, &named, bounds))).await;
        looked.unwrap_or_else(|stopped| CreatedInCall {
            gap: Some(unseen(stopped)),
            ..CreatedInCall::default()
        })
    }
}

fn created(
    watch: &Arc<Watch>,
    seen: usize,
    cx: &CallContext,
    named: &[PathBuf],
    bounds: &ScanBounds,
) -> CreatedInCall {
    let (mut made, gap) = watch.since(seen, bounds);
    let found = Some((Arc::clone(watch), made.clone()));
    made.retain(|Obeyed { place, path, .. }| {
        !cx.closed.is_named(place, path) && !is_opened(place, path, named)
    });
    let shown = made.iter().take(MAX_LISTED).map(|obeyed| obeyed.shown(&cx.root)).collect();
    CreatedInCall { names: shown, more: made.len().saturating_sub(MAX_LISTED), gap, found }
}

impl CreatedInCall {
    /// Reports the files: all of them in `sandbox`, a part of the call's result, and the first ones in a warning of the run.
    pub fn tell(self, cx: &CallContext, sandbox: &mut Map<String, Value>) {
        if let Some((watch, found)) = self.found {
            watch.told(&found);
        }
        if let Some(gap) = self.gap {
            match sandbox.get_mut("gaps").and_then(Value::as_array_mut) {
                Some(gaps) => gaps.push(gap.into()),
                None => drop(sandbox.insert("gaps".to_owned(), json!([gap]))),
            }
        }
        if self.names.is_empty() {
            return;
        }
        cx.warn(warning(&self.names, self.more, "created during the call"));
        let mut names = self.names;
        if self.more > 0 {
            names.push(format!("… and {} more", self.more));
        }
        sandbox.insert("created".to_owned(), names.into());
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::super::closed::{ClosedPlaces, Rules};
    use super::*;
    use crate::scan::ScanStopped;
    use std::path::Path;

    struct Scene {
        dir: tempfile::TempDir,
        watch: Watch,
    }

    impl Scene {
        fn new() -> Self {
            let dir = tempfile::tempdir().unwrap();
            fs::create_dir(dir.path().join("p")).unwrap();
            let watch = Watch::new(&dir.path().join("p"), None);
            Self { dir, watch }
        }

        fn opened() -> Self {
            let scene = Self::new();
            scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
            scene
        }

        fn write(&self, name: &str, text: &str) {
            let path = self.dir.path().join("p").join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn hook(&self, name: &str) {
            self.write(name, "#!/bin/sh\n");
            let path = self.dir.path().join("p").join(name);
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }

        /// Writes a repository as `git init` and `git clone` do.
        fn repository(&self, git: &str) {
            for name in ["HEAD", "objects/info/x", "refs/heads/main", "info/exclude", "description"] {
                self.write(&format!("{git}/{name}"), "ref: refs/heads/main\n");
            }
            self.hook(&format!("{git}/hooks/pre-commit.sample"));
            self.write(&format!("{git}/config"), "[core]\n\tbare = false\n[remote \"origin\"]\n\turl = x\n");
        }

        fn since(&self, seen: usize) -> Vec<String> {
            let (made, _) = self.watch.since(seen, &ScanBounds::default());
            made.iter().map(|obeyed| obeyed.shown(&self.dir.path().join("p"))).collect()
        }
    }

    #[test]
    fn a_repository_that_runs_nothing_is_not_worth_a_word() {
        let scene = Scene::opened();
        scene.repository(".git");
        scene.repository("fresh/.git");
        scene.repository("bare");
        scene.repository("fresh/.git/modules/lib");
        scene.write("fresh/.git/modules/lib/config", "[core]\n\tworktree = ../../../lib\n");
        scene.write("fresh/lib/.git", "gitdir: ../.git/modules/lib\n");
        scene.write("fresh/.git/worktrees/w/commondir", "../..\n");
        scene.write("tree/.git", "gitdir: ../fresh/.git/worktrees/w\n");
        assert_eq!(scene.since(0), Vec::<String>::new());
    }

    #[test]
    fn a_gitlink_is_a_repository_wherever_it_lies() {
        let scene = Scene::new();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).current_dir(scene.dir.path().join("p")).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.output().unwrap().status.success(), "{args:?}");
        };
        git(&["init", "-q"]);
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        scene.repository("vendor/x/.git");
        scene.write("vendor/x/.git/config", "[core]\n\tfsmonitor = ./x\n");
        assert_eq!(scene.since(0), Vec::<String>::new(), "git does not enter it");
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},vendor/x", "1".repeat(40))]);
        assert_eq!(scene.since(0), ["vendor/x (gitlink)", "vendor/x/.git/config (core.fsmonitor)"]);
        git(&["update-index", "--add", "--cacheinfo", &format!("160000,{},node_modules/y", "1".repeat(40))]);
        let seen = scene.watch.seen();
        assert_eq!(scene.since(seen), ["node_modules/y (gitlink)"], "a repository may come there later");
    }

    #[test]
    fn a_tracked_file_of_the_environment_is_hidden_only_when_it_was_changed() {
        let scene = Scene::new();
        let git = |args: &[&str]| {
            let mut command = std::process::Command::new("git");
            command.args(args).current_dir(scene.dir.path().join("p")).env("GIT_CONFIG_GLOBAL", "/dev/null");
            assert!(command.output().unwrap().status.success(), "{args:?}");
        };
        for name in ["a/.env", ".env", ".env.local"] {
            scene.write(name, "A=1\n");
        }
        git(&["init", "-q"]);
        git(&["add", "-f", ".env", "a/.env"]);
        let hidden = || -> Vec<PathBuf> {
            let mut found = scene.watch.open(&[], None, &ScanBounds::default()).unwrap().secrets;
            found.sort();
            found.iter().map(|path| path.strip_prefix(scene.dir.path().join("p")).unwrap().into()).collect()
        };
        assert_eq!(hidden(), [Path::new(".env.local")]);
        scene.write("a/.env", "A=secret\n");
        assert_eq!(hidden(), [Path::new(".env.local"), Path::new("a/.env")]);
    }

    #[test]
    fn what_git_obeys_in_a_new_repository_is_named() {
        let scene = Scene::opened();
        scene.repository("fresh/.git");
        scene.repository("bare");
        scene.hook("fresh/.git/hooks/post-checkout");
        scene.write("fresh/.git/config", "[core]\n\tfsmonitor = ./x\n[alias]\n\tst = !x\n");
        scene.write("bare/config", "[core]\n\tpager = x\n");
        scene.write(".git/modules/new/HEAD", "");
        scene.write(".git/modules/new/config", "[diff]\n\texternal = x\n");
        scene.write("e1/.git", "gitdir: ../evil\n");
        scene.write("made/worktree/.git/worktrees/w/commondir", "/elsewhere\n");
        symlink("../../evil", scene.dir.path().join("p/fresh/.git/config.worktree")).unwrap();
        assert_eq!(
            scene.since(0),
            [
                ".git/modules/new/config (diff.external)",
                "bare/config (core.pager)",
                "e1/.git (leads to ../evil)",
                "fresh/.git/config (alias.st, core.fsmonitor)",
                "fresh/.git/config.worktree",
                "fresh/.git/hooks/post-checkout",
                "made/worktree/.git/worktrees/w/commondir",
            ]
        );
    }

    #[test]
    fn what_others_than_git_obey_is_named_wherever_it_is() {
        let scene = Scene::opened();
        for name in
            ["a/.envrc", "a/b/.mcp.json", "a/.vscode/tasks.json", "a/.claude/x", "a/.bashrc", ".bashrc"]
        {
            scene.write(name, "");
        }
        scene.write("node_modules/x/.envrc", "");
        assert_eq!(scene.since(0), [".bashrc", "a/.envrc", "a/.vscode", "a/b/.mcp.json"]);
    }

    #[test]
    fn a_link_in_the_place_of_another_one_is_news() {
        let scene = Scene::new();
        let at = |name: &str| scene.dir.path().join("p").join(name);
        symlink("m.json", at(".mcp.json")).unwrap();
        symlink("x", at(".vscode")).unwrap();
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(0), Vec::<String>::new());
        for name in [".mcp.json", ".vscode"] {
            fs::remove_file(at(name)).unwrap();
        }
        symlink("evil.json", at(".mcp.json")).unwrap();
        scene.write(".vscode/tasks.json", "");
        assert_eq!(scene.since(0), [".mcp.json (leads to evil.json)", ".vscode"]);
    }

    #[test]
    fn what_comes_beside_what_was_named_in_a_protected_place_is_told() {
        let scene = Scene::new();
        scene.write(".claude/commands/old.md", "");
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        let at = |name: &str| scene.dir.path().join("p").join(name);
        let named = [(".vscode", "settings.json"), (".claude/commands", "a/b.md")];
        scene.watch.open_beside(named.map(|(place, name)| (at(place), at(place).join(name))).into());
        scene.write(".vscode/settings.json", "");
        scene.write(".claude/commands/a/b.md", "");
        assert_eq!(scene.since(0), Vec::<String>::new());
        scene.write(".vscode/tasks.json", "");
        scene.write(".claude/commands/a/c.md", "");
        assert_eq!(scene.since(0), [".claude/commands/a/c.md", ".vscode/tasks.json"]);
    }

    #[test]
    fn what_a_configuration_of_git_leads_to_is_told_when_it_comes() {
        let scene = Scene::new();
        scene.repository(".git");
        let config = "[core]\n\thooksPath = .githooks\n[include]\n\tpath = ../more.ini\n";
        scene.write(".git/config", config);
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(0), Vec::<String>::new());
        scene.hook(".githooks/pre-commit");
        scene.write("more.ini", "[alias]\n\tst = !x\n");
        assert_eq!(scene.since(0), [".githooks", ".githooks/pre-commit", "more.ini"]);
    }

    #[test]
    fn everything_is_told_by_those_who_were_there_and_by_nobody_again() {
        let scene = Scene::new();
        scene.write("old/.envrc", "");
        scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        let (first, second) = (scene.watch.seen(), scene.watch.seen());
        scene.write("new/.envrc", "");
        assert_eq!(scene.since(first), ["new/.envrc"]);
        let third = scene.watch.seen();
        assert_eq!(scene.since(second), ["new/.envrc"], "it ran meanwhile");
        assert_eq!(scene.since(third), Vec::<String>::new());
        // A file that appears between the last scan and the start of a call may be created by a program that outlived its call.
        scene.write("late/.envrc", "");
        let fourth = scene.watch.seen();
        scene.watch.open(&[scene.dir.path().join("p/late")], None, &ScanBounds::default()).unwrap();
        assert_eq!(scene.since(fourth), ["late/.envrc"]);
        fs::remove_file(scene.dir.path().join("p/new/.envrc")).unwrap();
        scene.since(fourth);
        let fifth = scene.watch.seen();
        scene.write("new/.envrc", "");
        assert_eq!(scene.since(fifth), ["new/.envrc"], "it is there anew");
    }

    #[test]
    fn a_place_is_watched_from_when_it_is_opened() {
        let scene = Scene::opened();
        let other = scene.dir.path().join("other");
        scene.write("../other/.envrc", "");
        scene.repository("../other/.git");
        scene.watch.open(std::slice::from_ref(&other), None, &ScanBounds::default()).unwrap();
        scene.write("../other/.mcp.json", "");
        scene.write("../other/.git/commondir", "x");
        let there = |name: &str| other.join(name).to_str().unwrap().to_owned();
        assert_eq!(scene.since(0), [there(".git/commondir"), there(".mcp.json")]);
    }

    fn stopped() -> ScanBounds {
        ScanBounds::default().at_most(std::time::Duration::ZERO)
    }

    #[test]
    fn a_look_that_was_stopped_says_so_and_leaves_its_news_to_the_next() {
        let scene = Scene::opened();
        scene.write("a/.envrc", "");
        let (told, gap) = scene.watch.since(0, &stopped());
        assert_eq!(told, []);
        assert_eq!(
            gap.as_deref(),
            Some(
                "new files that other programs run or load may have been missed: the scan of the project took too long"
            )
        );
        assert_eq!(scene.since(0), ["a/.envrc"]);
    }

    #[test]
    fn a_search_that_was_stopped_opens_nothing_and_the_next_is_whole() {
        let scene = Scene::new();
        scene.write("a/.env", "");
        scene.write(".bashrc", "");
        assert_eq!(scene.watch.open(&[], None, &stopped()).unwrap_err(), ScanStopped::TimedOut);
        let found = scene.watch.open(&[], None, &ScanBounds::default()).unwrap();
        assert_eq!(found.secrets, [scene.dir.path().join("p/a/.env")]);
        assert_eq!(scene.since(0), Vec::<String>::new(), "it was there before");
    }

    #[tokio::test]
    #[expect(clippy::await_holding_lock, reason = "it stands for the look of another call")]
    async fn a_call_starts_while_another_is_looking() {
        let (scene, mut cx) = (Scene::opened(), CallContext::new("/", "/"));
        let watch = Arc::new(scene.watch);
        cx.closed = ClosedPlaces::new(Path::new("/"), Rules::default(), None, Some(Arc::clone(&watch)));
        assert!(BeforeCall::of(&cx).await.is_ok());
        let _looking = watch.lock();
        cx.deadline = Some(tokio::time::Instant::now() + std::time::Duration::from_millis(20));
        assert!(matches!(BeforeCall::of(&cx).await, Err(ToolError::Timeout { .. })));
    }
}
