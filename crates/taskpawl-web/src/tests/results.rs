//! Questions about results.

use super::Site;
use crate::PageOptions;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_question_about_a_result_shows_it_as_data() {
    let plan = "tasks: [{id: r, call: {log: {message: '<b>made</b>'}}, approval: {after: true}}]";
    let site = Site::open(plan, PageOptions::default()).await;
    site.plans.run().await.unwrap();
    let (_, html) = site.get("/fragment/questions").await;
    assert!(html.contains("Is the result accepted?") && html.contains("Result of"), "{html}");
    assert!(!html.contains("<b>made") && !html.contains("Nothing is run by it"), "{html}");
    let (_, follows) = site.get("/fragment/consequences/r").await;
    assert!(follows.contains("Its result is accepted"), "{follows}");
    site.close().await;
}
