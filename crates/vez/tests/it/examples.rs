//! The examples, as a reader would run them.

#[path = "../../examples/client.rs"]
mod client;
#[path = "../../examples/embedded.rs"]
mod embedded;

use vez::Node;

#[tokio::test]
async fn a_node_inside_a_service() {
    let (folder, mut out) = (tempfile::tempdir().unwrap(), Vec::new());
    embedded::run(folder.path(), &mut out).await.unwrap();
    let expected = "orders/42 is ours\n\
        for less than a lease, unless it is renewed: true\n\
        others find it busy: true, also after a while: true\n\
        and the next has a larger fence: true\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}

#[tokio::test]
async fn a_client_of_a_node_elsewhere() {
    let (folder, mut out) = (tempfile::tempdir().unwrap(), Vec::new());
    let builder = Node::builder(1, folder.path().join("1")).client_addr("127.0.0.1:0").bootstrap();
    let node = builder.start().await.unwrap();
    client::run(&node.client_addr().unwrap().to_string(), &mut out).await.unwrap();
    let expected = "inside, and not lost: true\nand one that comes late is refused: true\n";
    assert_eq!(String::from_utf8(out).unwrap(), expected);
}
