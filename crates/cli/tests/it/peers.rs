//! The laboratory exercise: real processes, a real resource, and what comes in between.

use std::{
    fs,
    net::UdpSocket,
    path::{Path, PathBuf},
    process::Output,
};

use crate::started::{Started, free_ports, vez};

fn exercise() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/exercise")
}

/// A resource and three processes, each with its script, as the report had them; and what each of them printed.
fn play(test: &str, hold: &str) -> (Vec<String>, [Vec<String>; 3]) {
    let ports = free_ports(4);
    let [resource, addresses @ ..] = ports.as_slice() else { unreachable!("four ports") };
    let resource_process = Started::new(["lab", "resource", resource]);
    // In any order: the last one first.
    let processes: Vec<Started> = (1..=3)
        .rev()
        .map(|id: usize| {
            let script = exercise().join(test).join(id.to_string());
            let slow = if id == 1 { "2=150ms" } else { "1=150ms" };
            let mut words = vec!["lab".to_owned(), "peer".to_owned(), id.to_string()];
            words.extend(addresses.iter().cloned());
            words.extend(["--resource", resource, "--hold", hold, "--delay", slow, "--script"].map(str::to_owned));
            words.push(script.display().to_string());
            Started::new(words)
        })
        .collect();
    let mut printed = processes.into_iter().map(|process| {
        let output = process.wait();
        assert!(output.status.success(), "{output:?}");
        lines(&output)
    });
    let printed = [printed.next(), printed.next(), printed.next()].map(|lines| lines.expect("three"));
    let [three, two, one] = printed;
    (lines(&resource_process.end()), [one, two, three])
}

fn lines(output: &Output) -> Vec<String> {
    String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect()
}

/// A line of a terminal in the words of `experiments/ricart-agrawala-transcripts.toml`, where the print has one.
fn in_the_words_of_the_experiment(line: &str) -> Vec<String> {
    let Some((clock, rest)) = line.strip_prefix("clock").and_then(|rest| rest.trim_start().split_once("  ")) else {
        return Vec::new();
    };
    let node = |id: &str| format!("n{}", id.trim().parse::<u32>().expect("an ID") - 1);
    let words: Vec<&str> = rest.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect();
    match words[..] {
        ["internal event"] => vec![format!("internal event; {clock}")],
        ["asks"] => vec![format!("request; {clock}")],
        ["is inside"] => vec![format!("enter; {clock}")],
        ["leaves"] => vec![format!("leave; {clock}")],
        [to, message] if to.starts_with('→') && message.starts_with("ReplyAt") => {
            to.trim_start_matches('→').split(',').map(|to| format!("ReplyAt to {}; {clock}", node(to))).collect()
        }
        [to, _] if to.starts_with('→') => Vec::new(), // a request is printed once, not once a copy
        [from, message, ..] if message.starts_with("ReplyAt") => {
            vec![format!("ReplyAt from {}; {clock}", node(from.trim_start_matches('←')))]
        }
        [from, message, ref standing @ ..] if message.starts_with("Request") => {
            let asked = standing.first().and_then(|standing| standing.split("asked at ").nth(1));
            let mine = asked.map_or("0", |asked| asked.trim_end_matches(')'));
            vec![format!("{message} from {}, my T {mine}; {clock}", node(from.trim_start_matches('←')))]
        }
        [process, ..] if process.starts_with("process") => {
            let id = process.split(' ').nth(1).expect("an ID");
            if process.contains("is inside") { vec![format!("{} enters; {clock}", node(id))] } else { Vec::new() }
        }
        _ => Vec::new(),
    }
}

/// Every line that the report prints, with its clock, comes out of real processes. A machine that is busy may be later than the
/// script allows for, so there are three attempts.
fn comes_out(number: usize, hold: &str) {
    let path = exercise().join("../../experiments/ricart-agrawala-transcripts.toml");
    let experiment: toml::Table = fs::read_to_string(path).expect("the experiment").parse().expect("TOML");
    let printed = experiment["scene"][number - 1]["lines"]["printed"].as_table().expect("lines");
    assert!(printed.len() >= 3);
    let differences: Vec<String> = (0..3).map_while(|_| difference(number, hold, printed)).collect();
    assert!(differences.len() < 3, "test {number}: {}", differences.join("\n"));
}

/// What one attempt printed that the report does not.
fn difference(number: usize, hold: &str, printed: &toml::Table) -> Option<String> {
    let (resource, processes) = play(&format!("test-{number}"), hold);
    printed.iter().find_map(|(who, expected)| {
        let said = match who.as_str() {
            "resource" => &resource,
            node => &processes[node[1..].parse::<usize>().expect("a node")],
        };
        let ours: Vec<String> = said.iter().flat_map(|line| in_the_words_of_the_experiment(line)).collect();
        let expected: Vec<&str> = expected.as_array().expect("lines").iter().filter_map(toml::Value::as_str).collect();
        (ours != expected).then(|| format!("{who} printed\n{}\nwhich is\n{ours:#?}", said.join("\n")))
    })
}

#[test]
fn the_first_test_one_at_a_time() {
    comes_out(1, "500ms");
}

#[test]
fn the_second_test_asked_while_inside() {
    comes_out(2, "1500ms");
}

#[test]
fn the_third_test_two_in_line() {
    comes_out(3, "2s");
}

/// Two processes and their resource, of which the first is talked to by a stranger.
#[test]
fn strangers_are_counted_and_change_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (one, two) = (script("one", "1500ms x\n4s end"), script("two", "2500ms x\n4s end"));
    let trace = folder.path().join("trace").display().to_string();
    let ports = free_ports(3);
    let common = [ports[1].as_str(), &ports[2], "--resource", &ports[0], "--hold", "100ms"];
    let resource = Started::new(["lab", "resource", &ports[0]]);
    let first = Started::new(["lab", "peer", "1"].iter().chain(&common).chain(&["--script", &one, "--trace", &trace]));
    let second = Started::new(["lab", "peer", "2"].iter().chain(&common).chain(&["--script", &two]));
    first.until("all are there");
    let stranger = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let frame = |algorithm: &str, from: u64, says: &str| {
        let message = format!(r#"{{"number":0,"clock":1,"says":{says}}}"#);
        format!(r#"{{"algorithm":"{algorithm}","life":1,"from":{from},"message":{message}}}"#).into_bytes()
    };
    let whole = frame("ricart-agrawala-clock", 1, r#"{"Request":1}"#);
    let nonsense =
        [vec![0xff, 0, 17], whole[..whole.len() / 2].to_vec(), whole, frame("lamport", 0, "1"), vec![b'x'; 65_507]];
    for bytes in nonsense.iter().chain(&nonsense) {
        stranger
            .send_to(bytes, ports[1].trim_start_matches(':').parse().map(to_loopback).expect("a port"))
            .expect("sent");
    }
    let (first, second, resource) = (first.wait(), second.wait(), resource.end());
    assert!(first.status.success() && second.status.success(), "{first:?} {second:?}");
    let said = lines(&first);
    let refused: Vec<&String> = said.iter().filter(|line| line.starts_with("ignored what came")).collect();
    assert_eq!(refused.len(), 4, "each kind once: {said:#?}");
    assert_eq!(
        said.last().map(String::as_str),
        Some("refused: 4 no frame, 2 other algorithm, 2 too long, 2 unknown sender")
    );
    let entered = |lines: &[String]| lines.iter().filter(|line| line.ends_with("is inside")).count();
    assert_eq!((entered(&said), entered(&lines(&second))), (1, 1));
    assert_eq!(lines(&resource).iter().filter(|line| line.contains("is inside and says")).count(), 2);
    let replay = vez(["lab", "replay", &trace]);
    assert!(replay.status.success(), "{replay:?}");
}

fn to_loopback(port: u16) -> std::net::SocketAddr {
    (std::net::Ipv4Addr::LOCALHOST, port).into()
}

fn refuses<const N: usize>(words: [&str; N], sentence: &str) {
    let output = vez(words);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.trim_end()), (Some(2), sentence), "{words:?}");
}

#[test]
fn a_mistake_gets_a_sentence() {
    let ports = free_ports(3);
    let [one, two, three] = ports.as_slice() else { unreachable!("three ports") };
    let full = |port: &str| format!("127.0.0.1{port}");
    refuses(["lab", "peer", "3", one, two], "vez: there are 2 addresses, so ID is from 1 to 2, not 3");
    refuses(["lab", "peer", "0", one, two], "vez: there are 2 addresses, so ID is from 1 to 2, not 0");
    let twice = format!("vez: {} is given twice; every process, and the resource, needs a port of its own", full(one));
    refuses(["lab", "peer", "1", one, one], &twice);
    refuses(["lab", "peer", "1", one, two, "--resource", one], &twice);
    refuses(
        ["lab", "peer", "1", one, two, "--algorithm", "bully"],
        "vez: bully is of the family election; the exercise is about mutex",
    );
    refuses(
        ["lab", "peer", "1", one, two, "--algorithm", "voting"],
        "vez: voting cannot be run by 2 processes; give at least 6 addresses",
    );
    refuses(
        ["lab", "peer", "1", one, two, "--script", "/no/such/file"],
        "vez: cannot read /no/such/file: No such file or directory (os error 2)",
    );
    let taken = UdpSocket::bind(full(three)).expect("a free port");
    let in_use = "is this process, or another one, already running there?";
    let sentence = format!("vez: cannot listen on {}: Address already in use (os error 98); {in_use}", full(three));
    refuses(["lab", "peer", "2", one, three], &sentence);
    let other = "is there another resource? take another port, or end that one";
    let sentence = format!("vez: cannot listen on {}: Address already in use (os error 98); {other}", full(three));
    refuses(["lab", "resource", three], &sentence);
    drop(taken);
    let advice = "give an address of this machine, such as 127.0.0.1:10001";
    let why = "Cannot assign requested address (os error 99)";
    let sentence = format!("vez: cannot listen on 192.0.2.1:77: {why}; {advice}");
    refuses(["lab", "resource", "192.0.2.1:77"], &sentence);
    refuses(["lab", "peer", "1", "192.0.2.1:77", two], &sentence);
}

/// Whoever is already there says so to a second process of its number, and to one that runs something else.
#[test]
fn two_with_one_number() {
    let ports = free_ports(5);
    let [resource, one, two, other, third] = ports.as_slice() else { unreachable!("five ports") };
    let second = Started::new(["lab", "peer", "2", one, two, "--resource", resource]);
    second.until("waiting for process 1");
    refuses(
        ["lab", "peer", "1", other, two, "--resource", resource],
        &format!(
            "vez: process 2 at 127.0.0.1{two} refuses: process 1 is at 127.0.0.1{one} here; give every process the same addresses"
        ),
    );
    refuses(
        ["lab", "peer", "1", one, two, "--resource", resource, "--algorithm", "lamport"],
        &format!(
            "vez: process 2 at 127.0.0.1{two} refuses: ricart-agrawala-clock is run here; give every process the same \
             --algorithm"
        ),
    );
    // What is wrong is told on both sides.
    second.until(&format!("refused 127.0.0.1{other}: process 1 is at 127.0.0.1{one} here"));
    refuses(
        ["lab", "peer", "1", one, two, third, "--resource", resource],
        &format!(
            "vez: process 2 at 127.0.0.1{two} refuses: there are 2 processes here; give every process the same addresses"
        ),
    );
    second.end();
    let line = Started::new(["lab", "peer", "2", one, two, "--resource", resource, "--algorithm", "raymond"]);
    line.until("waiting for process 1");
    let star = ["lab", "peer", "1", one, two, "--resource", resource, "--algorithm", "raymond", "--topology", "star"];
    let why = "raymond, topology = binary here; give every process the same options";
    refuses(star, &format!("vez: process 2 at 127.0.0.1{two} refuses: {why}"));
    line.end();
}

/// A second process of a number takes nothing from the first, not even at the resource; and one that is killed inside of an
/// algorithm that survives it does not stay there.
#[test]
fn the_resource_knows_who_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("written");
        path.display().to_string()
    };
    let (one_says, two_says) = (script("one", "100ms x\n60s end"), script("two", "1500ms x\n8s end"));
    let ports = free_ports(4);
    let [resource, one, two, other] = ports.as_slice() else { unreachable!("four ports") };
    let resource_process = Started::new(["lab", "resource", resource]);
    let common = [one.as_str(), two, "--resource", resource, "--hold", "60s", "--algorithm", "ricart-agrawala-robust"];
    let first = Started::new(["lab", "peer", "1"].iter().chain(&common).chain(&["--script", &one_says]));
    let second = Started::new(["lab", "peer", "2"].iter().chain(&common).chain(&["--script", &two_says]));
    first.until("all are there");
    refuses(
        ["lab", "peer", "1", other, "127.0.0.1:9", "--resource", resource, "--algorithm", "ricart-agrawala-robust"],
        &format!(
            "vez: the resource at 127.0.0.1{resource} refuses: process 1 is at 127.0.0.1{one} here; end it and the resource"
        ),
    );
    first.until("is inside");
    resource_process.until("process 1 is inside and says");
    first.end();
    second.until("is inside");
    resource_process.until("process 2 is inside and says");
    resource_process.until("process 1 does not answer: it is dead, and no longer inside");
    assert!(second.wait().status.success());
    resource_process.until("process 2 has left");
    resource_process.end();
}

/// Two who say that they are inside, and of whom the first is still there when it is asked.
#[test]
fn two_inside_together_are_told() {
    let ports = free_ports(1);
    let resource = Started::new(["lab", "resource", &ports[0]]);
    resource.until("listens");
    let address: std::net::SocketAddr = format!("127.0.0.1{}", ports[0]).parse().expect("an address");
    let cheats: Vec<UdpSocket> = (0..2).map(|_| UdpSocket::bind("127.0.0.1:0").expect("a port")).collect();
    let say = |from: usize, body: &str| {
        let frame = format!(r#"{{"algorithm":"central","life":{from},"from":{from},{body}}}"#);
        cheats[from].send_to(frame.as_bytes(), address).expect("sent");
        let mut answer = [0; 1000];
        let length = cheats[from].recv(&mut answer).expect("an answer");
        String::from_utf8_lossy(&answer[..length]).into_owned()
    };
    for from in [0, 1] {
        let answer = say(from, r#""hello":{"processes":2}"#);
        assert!(answer.ends_with(&format!(r#""from":2,"welcome":{from}}}"#)), "{answer}");
    }
    let enter = r#""message":{"number":0,"clock":1,"says":{"Enter":"me"}}"#;
    assert!(say(0, enter).ends_with(r#""ack":0}"#));
    assert!(say(1, enter).ends_with(r#""ack":0}"#));
    // It is asked whether it is there, and answers by leaving.
    let leave = r#"{"algorithm":"central","life":0,"from":0,"message":{"number":1,"clock":1,"says":"Leave"}}"#;
    cheats[0].send_to(leave.as_bytes(), address).expect("sent");
    let output = resource.wait();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!((output.status.code(), said.trim_end()), (Some(1), "vez: processes 1 and 2 are inside together"));
}

/// It has forgotten what it promised, so the others do not take it back.
#[test]
fn a_process_that_was_started_again() {
    let ports = free_ports(3);
    let [resource, one, two] = ports.as_slice() else { unreachable!("three ports") };
    let resource_process = Started::new(["lab", "resource", resource]);
    let [first, second] = ["1", "2"].map(|id| Started::new(["lab", "peer", id, one, two, "--resource", resource]));
    first.until("all are there");
    second.until("all are there");
    first.end();
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("script").display().to_string();
    fs::write(&script, "1s end").expect("written");
    refuses(
        ["lab", "peer", "1", one, two, "--resource", resource, "--script", &script],
        &format!(
            "vez: process 2 at 127.0.0.1{two} refuses: process 1 was here before; end all processes and start them again"
        ),
    );
    second.end();
    resource_process.end();
}
