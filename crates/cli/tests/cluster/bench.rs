//! `vez bench`: that it measures, not what comes out.

use serde_json::Value;

use crate::machines::vez;

#[test]
fn everything_is_measured() {
    let output = vez().args(["bench", "--seconds", "0.05", "--json"]).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let measured: Value = serde_json::from_slice(&output.stdout).unwrap();
    let positive = |what: &str, number: &str| measured[what][number].as_f64().is_some_and(|number| number > 0.0);
    assert!(positive("in_process", "nanoseconds") && positive("loopback_ping_pong", "per_second"), "{measured}");
    let pairs =
        ["resp_one_connection", "resp_64_connections", "handovers_between_3_nodes", "resp_handovers_between_3_nodes"];
    for pair in pairs {
        for number in ["per_second", "bare_table_per_second", "ratio"] {
            assert!(positive(pair, number), "{pair}: {measured}");
        }
    }
}
