//! Metrics and status, over HTTP.

use std::time::Duration;

use serde_json::Value;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::machines::Machines;

/// The code of the answer, and what it says.
async fn get(machines: &Machines, number: u16, path: &str) -> (u16, String) {
    let mut stream = TcpStream::connect(&machines.node(number).http).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: here\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
}

async fn json(machines: &Machines, number: u16, path: &str) -> Value {
    let (code, body) = get(machines, number, path).await;
    assert_eq!(code, 200, "{body}");
    serde_json::from_str(&body).unwrap()
}

#[tokio::test]
async fn what_is_going_on_can_be_read() {
    let machines = Machines::new(3, Duration::from_secs(20)).await;
    let guard = machines.lock(2, "orders/42 é").await;
    assert_eq!(get(&machines, 1, "/healthz").await, (200, "ok\n".into()));
    assert_eq!(get(&machines, 1, "/readyz").await, (200, "ready\n".into()));
    let status = json(&machines, 3, "/v1/status").await;
    assert_eq!((&status["node"], &status["state"]), (&Value::from(3), &Value::from("ready")));
    assert_eq!(status["members"].as_array().unwrap().len(), 3);
    let lock = json(&machines, 3, "/v1/locks/orders/42%20%C3%A9").await;
    assert_eq!(lock["name"], "orders/42 é");
    assert_eq!(lock["holders"][0]["node"], 2);
    assert_eq!(lock["holders"][0]["fence"], guard.fence().to_string());
    let locks = json(&machines, 1, "/v1/locks?prefix=orders/").await;
    assert_eq!(locks["names"][0]["name"], "orders/42 é");
    assert_eq!(json(&machines, 1, "/v1/locks?prefix=others/").await["names"].as_array().unwrap().len(), 0);
    let (code, metrics) = get(&machines, 2, "/metrics").await;
    assert_eq!(code, 200);
    for line in [
        "vez_grants_total{kind=\"lock\"} 1",
        "vez_members 3",
        "vez_ready 1",
        "vez_used_names 1",
        "# TYPE vez_handovers counter",
    ] {
        assert!(metrics.lines().any(|found| found == line), "{line} is not in\n{metrics}");
    }
    assert!(!metrics.contains("orders"), "no name is a label");
    let long = "n".repeat(300);
    assert_eq!(get(&machines, 1, &format!("/v1/locks/{long}")).await.0, 400);
    assert_eq!(get(&machines, 1, "/nothing").await.0, 404);
}
