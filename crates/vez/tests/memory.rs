//! Names that were used once leave nothing behind. It is alone in its program: whatever else ran would be counted too.

#[path = "../examples/names.rs"]
mod names;

const NAMES: u64 = 50_000;
/// What sockets and tables keep for the next time differs from run to run, and is beside the point: five bytes a name.
const ROOM: f64 = 256.0 * 1024.0;

#[tokio::test]
async fn names_used_once_leave_nothing_behind() {
    let outcome = names::run(NAMES).await.unwrap();
    assert!(outcome.busy_bytes > outcome.base_bytes + 1_000_000, "something was known of them: {outcome:?}");
    assert!(outcome.rest_bytes as f64 <= outcome.base_bytes as f64 * 1.1 + ROOM, "{outcome:?}");
}
