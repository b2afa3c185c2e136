//! The HTML of each screen.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::Value;
use taskpawl::FixedSource;

use super::Site;
use crate::PageOptions;

const PLAN: &str = "name: site\ndescription: Build the site\ntasks: [{id: build, name: Build it, call: {fail: {message: broken}}}, \
    {id: publish, needs: build, milestone: true}, {id: ask, approval: {ask: Publish now?}, call: {write_file: {path: a, content: b}}}, \
    {id: write, description: Write the news}]";

const SCREENS: [&str; 12] = [
    "/fragment/",
    "/fragment/outlook",
    "/fragment/tasks",
    "/fragment/task/build",
    "/fragment/log/build",
    "/fragment/graph/build",
    "/fragment/questions",
    "/fragment/runs",
    "/fragment/history",
    "/fragment/undo/1",
    "/fragment/plans",
    "/fragment/?at=2",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_screen_is_as_it_was_reviewed() {
    let now = "2026-11-28T09:00:00Z".parse().unwrap();
    let site = Site::at(PLAN, PageOptions::default(), Arc::new(FixedSource::new(now, 1))).await;
    site.plans.run().await.unwrap();
    // The counts of the page follow the store a moment later.
    let revision = site.plans.manager().revision().unwrap();
    while serde_json::from_str::<Value>(&site.get("/api/v1/state").await.1).unwrap()["revision"] != revision {
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    let mut all = String::new();
    for path in SCREENS {
        let (status, mut html) = site.get(path).await;
        // Approvals are bound to the directory of the project, which is another in each test.
        for hash in hashes(&html) {
            html = html.replace(&hash, "HASH").replace(&hash[..12], "HASH");
        }
        let _ = writeln!(all, "== {path} {status}\n{}\n", html.replace("><", ">\n<"));
    }
    insta::assert_snapshot!(all);
    site.close().await;
}

/// Returns the hashes of the questions in a fragment.
fn hashes(html: &str) -> Vec<String> {
    let keys = html.split("data-key=\"").skip(1).filter_map(|rest| rest.split('"').next());
    keys.filter(|key| key.len() == 64 && key.bytes().all(|byte| byte.is_ascii_hexdigit()))
        .map(str::to_owned)
        .collect()
}
