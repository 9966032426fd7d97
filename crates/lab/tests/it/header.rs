//! The first line of a trace: a system that goes through JSON is the same system.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::{Value, json};
use vez_lab::{
    named::Detector,
    system::{Quorum, System, Topology},
    trace::Header,
};

fn header(system: &System, detector: Option<Detector>) -> Header {
    let extra = json!({ "driver": "emulator", "transport": "tcp", "since": [1, 2.5] });
    let Value::Object(extra) = extra else { unreachable!("an object was written") };
    Header::new("robust-k", system, (u64::MAX, 3), detector, extra)
}

fn through_json(header: &Header) -> Header {
    let line = serde_json::to_string(header).expect("it can be written");
    Header::read(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// The usual one, with one field changed.
fn refused(field: &str, value: Value, sentence: &str) {
    let mut line = serde_json::to_value(header(&System::of(3), Some(Detector::Oracle))).expect("it can be written");
    if value == "missing" {
        line.as_object_mut().expect("an object").shift_remove(field);
    } else {
        line[field] = value;
    }
    let error = Header::read(&line.to_string()).and_then(|header| header.system().cloned()).expect_err(sentence);
    assert_eq!(error.to_string(), sentence);
}

fn any_duration() -> impl Strategy<Value = Duration> {
    let seconds = prop_oneof![Just(0), 0..1_000_000_u64, 0..1_000_000_000_u64];
    (seconds, 0..1_000_000_000_u32).prop_map(|(seconds, nanos)| Duration::new(seconds, nanos))
}

proptest! {
    #[test]
    fn a_system_comes_back_to_the_nanosecond(
        (one, other) in (any_duration(), any_duration()), patience in any_duration(), period in any_duration()
    ) {
        let retry = one.min(other)..one.max(other);
        let system = System { retry, patience, period, ..System::of(5) };
        let header = header(&system, Some(Detector::HiAdsd));
        let back = through_json(&header);
        prop_assert_eq!(&back, &header);
        prop_assert_eq!(back.system(), Ok(&system));
    }
}

#[test]
fn every_field_comes_back() {
    let system = System {
        topology: Topology::Tree(7),
        quorum: Quorum::Plane,
        k: 4,
        groups: 9,
        replicas: 32,
        majority: 24,
        bits: 60,
        prefix: 5,
        ..System::of(13)
    };
    for detector in [Detector::HiAdsd, Detector::Oracle] {
        let back = through_json(&header(&system, Some(detector)));
        assert_eq!((back.system(), back.detector), (Ok(&system), Some(detector)));
        assert_eq!((back.seed, back.run, back.extra["transport"].as_str()), (u64::MAX, 3, Some("tcp")));
    }
}

#[test]
fn a_usual_time_is_a_number_and_the_order_is_pinned() {
    let line = serde_json::to_string(&header(&System::of(3), Some(Detector::HiAdsd))).expect("it can be written");
    assert_eq!(
        line,
        "{\"time\":0.0,\"node\":null,\"kind\":\"system\",\"format\":\"vez-trace-1\",\"algorithm\":\"robust-k\",\"nodes\":3,\
         \"topology\":\"binary\",\"quorum\":\"grid\",\"k\":2,\"groups\":3,\"replicas\":5,\"majority\":3,\"bits\":16,\"prefix\":2,\
         \"retry\":[0.05,0.15],\"patience\":0.25,\"period\":2.5,\"detector\":\"hi-adsd\",\"driver\":\"emulator\",\
         \"transport\":\"tcp\",\"since\":[1,2.5],\"seed\":18446744073709551615,\"run\":3}"
    );
}

#[test]
fn mistakes() {
    let no_header = "no header, and so no trace; its first line is of kind \"system\", as vez lab trace writes it";
    for line in ["", "hello", "[1]", "7", "{\"kind\":\"start\"}", "{\"kind\":\"system\",\"for"] {
        assert_eq!(Header::read(line).expect_err(line).to_string(), no_header);
    }
    refused(
        "format",
        json!("vez-trace-9"),
        "the format is \"vez-trace-9\", which is unknown here; there is vez-trace-1",
    );
    let senseless = |what: &str| format!("the header makes no sense: {what}; see docs/trace.md");
    refused("format", json!("missing"), &senseless("missing field `format`"));
    refused("k", json!("missing"), &senseless("missing field `k`"));
    refused("retry", json!("missing"), &senseless("missing field `retry`"));
    refused("patience", json!(-1), &senseless("-1 is no span of time"));
    refused("patience", json!("1.5"), &senseless("\"1.5\" is no span of time"));
    let topologies = "there are binary, tree:K, line, star, random, hypercube, grid and geometric";
    refused("topology", json!("ring"), &senseless(&format!("unknown topology \"ring\"; {topologies}")));
    refused("detector", json!("me"), &senseless("unknown detector \"me\"; there are hi-adsd and oracle"));
    refused("algorithm", json!("robust"), "unknown algorithm \"robust\"; did you mean robust-k?");
    refused("algorithm", json!("zzz"), "unknown algorithm \"zzz\"; see vez lab list");
    let impossible = |what| format!("the header makes no system: {what}");
    refused("nodes", json!(0), &impossible("a system of 0 nodes does nothing; take at least 1"));
    refused("nodes", json!(u64::MAX), &impossible("18446744073709551615 nodes are too many; take at most 200000"));
    refused("period", json!(1e10), &impossible("period is 10000000000; take at most 1000000000"));
    refused("retry", json!([2, 1]), &impossible("retry ends before it begins; take [from, to]"));
    let untold = "robust-k must be told of crashes, and no detector is named; there are hi-adsd and oracle";
    refused("detector", json!("missing"), &impossible(untold));
}
