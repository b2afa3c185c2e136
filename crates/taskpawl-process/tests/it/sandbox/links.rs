//! Links that lead to protected paths.

use std::fs;
use std::os::unix::fs::symlink;

use super::Home;

/// A program that replaces a link also replaces its target for every reader of the link.
#[tokio::test]
async fn links_to_what_is_kept_are_not_replaced() {
    let mut home = Home::new();
    for directory in ["project/dots/config/own", "project/settings"] {
        fs::create_dir_all(home.bench.path(directory)).unwrap();
    }
    for file in ["project/dots/config/own/policy", "project/settings/m.json", "project/env"] {
        fs::write(home.bench.path(file), "old").unwrap();
    }
    for (to, link) in [
        ("dots/middle", "cfg"),
        ("config", "dots/middle"),
        ("settings/m.json", ".mcp.json"),
        ("nowhere", ".idea"),
        ("env", ".envrc"),
    ] {
        symlink(to, home.bench.path(&format!("project/{link}"))).unwrap();
    }
    let own = home.bench.path("project/cfg/own");
    home.profile.read_only.extend([".idea", "cfg/own"].map(|name| home.bench.path("project").join(name)));
    home.profile.hidden.push(home.bench.path("project/.envrc"));
    home.profile.guarded = vec![own];
    if !home.has_mounts().await {
        return;
    }
    home.works("write ~/project/new").await;
    for link in ["cfg", "dots/middle", ".mcp.json", ".idea", ".envrc"] {
        home.fails(&format!("remove ~/project/{link}")).await;
        home.fails(&format!("rename ~/project/{link} ~/project/away")).await;
        home.fails(&format!("rename ~/project/new ~/project/{link}")).await;
    }
    home.fails("rename ~/project/dots ~/project/away").await;
    home.fails("write ~/project/cfg/own/policy").await;
    home.fails("write ~/project/.mcp.json").await;
    assert_eq!(home.works("read ~/project/cfg/own/policy").await, "old");
    assert_eq!(home.works("read ~/project/.mcp.json").await, "old");
    home.works("write ~/project/cfg/other").await;
    assert!(home.bench.path("project/dots/config/other").exists());
    let gaps = home.enforcement().await.gaps.join("; ");
    assert!(!gaps.contains("replaced"), "{gaps}");
}

/// A missing path cannot be covered by a mount, so programs could create it.
#[tokio::test]
async fn nothing_is_started_that_could_make_what_decides_about_it() {
    let mut home = Home::new();
    symlink("dots/config", home.bench.path("project/cfg")).unwrap();
    home.profile.guarded = vec![home.bench.path("project/cfg/own")];
    let refused = home.bench.run(&home.program(&["true"])).await.unwrap_err().to_string();
    let refused = refused.replace(home.bench.path("").to_str().unwrap().trim_end_matches('/'), "");
    insta::assert_snapshot!(refused, @"the sandbox of the program cannot be enforced: `/project/cfg/own`, which controls the permissions of programs, leads to `/project/dots/config/own`, which does not exist, so programs could create it; create it, or open a narrower path than `/project`, or run programs with all your permissions with `--sandbox=off`");
    fs::create_dir_all(home.bench.path("project/dots/config/own")).unwrap();
    // Without mounts Landlock closes the whole directory of the link for writing.
    if home.has_mounts().await {
        home.works("write ~/project/new").await;
    }
}

/// A path such as `a/b/../x` depends on `a/b`: with another directory or link in its place it leads elsewhere.
#[tokio::test]
async fn a_directory_that_a_link_leaves_is_not_replaced() {
    let mut home = Home::new();
    for directory in ["project/a/b", "project/dots", "project/c"] {
        fs::create_dir_all(home.bench.path(directory)).unwrap();
    }
    for file in ["project/dots/policy", "project/dots/m.json"] {
        fs::write(home.bench.path(file), "old").unwrap();
    }
    for (link, to) in [("policy", "project/a/b/../../dots/policy"), ("project/.mcp.json", "c/../dots/m.json")]
    {
        symlink(to, home.bench.path(link)).unwrap();
    }
    home.profile.read_only.push(home.bench.path("policy"));
    home.profile.guarded = vec![home.bench.path("policy")];
    if !home.has_mounts().await {
        return;
    }
    for directory in ["a", "a/b", "c", "dots"] {
        home.fails(&format!("rename ~/project/{directory} ~/project/away")).await;
    }
    home.works("write ~/project/a/b/new").await;
    home.works("write ~/project/c/new").await;
    fs::rename(home.bench.path("project/a"), home.bench.path("project/d")).unwrap();
    // A changed profile gets a supervisor of its own, which resolves the links again.
    home.profile.hidden.push(home.bench.path("project/d"));
    let refused = home.bench.run(&home.program(&["true"])).await.unwrap_err().to_string();
    assert!(refused.contains("/project/a`, which does not exist"), "{refused}");
}
