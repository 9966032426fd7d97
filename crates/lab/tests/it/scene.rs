//! Runs as scenes: what is said of them, and how they are drawn.

use std::{collections::BTreeMap, fs, path::Path};

use vez_algorithms::{Algorithm, Effect, Input, NodeId, Order, Phase, mutex::RicartAgrawala};
use vez_lab::{
    director,
    draw::{self, Axis, Hypercube, Options, Tree, TreeNode, Words},
    named::{self, Detector},
    scene::{Happening, How, Recorder, Scene, Stay, What},
    sim::{Arrivals, Config, DelayLaw, Event, Watch},
    system::System,
};

/// A run in which every message takes a tenth.
fn config(nodes: usize, script: &str, hold: f64, faults: &str) -> Config {
    let arrivals = Arrivals::Scripted(script.parse().expect("a script"));
    Config {
        hold,
        delay_law: DelayLaw::Constant,
        order: Order::Fifo,
        faults: faults.parse().expect("a fault script"),
        entries: 1,
        runs: 0..1,
        ..Config::new(System::of(nodes), arrivals)
    }
}

fn record(name: &str, config: &Config) -> Scene {
    let scene = named::record(name, Detector::Oracle, config, 0).expect("it is in the catalog");
    scene.unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn played(name: &str, transcript: &str) -> Scene {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../transcripts").join(transcript);
    let text = fs::read_to_string(path).expect("a transcript");
    let played = director::play(name, &text).expect("it is in the catalog").expect("it can be played");
    assert_eq!(played.transcript, text, "it comes out as written");
    played.scene
}

fn raymond_k() -> Scene {
    let mut config = config(8, "0 n0\n0.5 n1", 1.0, "");
    config.system.k = 5;
    record("raymond-k", &config)
}

fn assert_close(found: &BTreeMap<String, f64>, expected: &[(&str, f64)]) {
    for (name, value) in expected {
        let of = found.get(*name).unwrap_or_else(|| panic!("there is no {name} in {found:?}"));
        assert!((of - value).abs() < 1e-9, "{name} is {of}, not {value}");
    }
}

#[test]
fn facts_of_two_who_are_inside_together() {
    let scene = raymond_k();
    assert_eq!(scene.entries(), [NodeId(0), NodeId(1)]);
    let facts = scene.facts();
    assert_close(&facts, &[("entries", 2.0), ("messages", 28.0), ("sent.Request", 14.0), ("sent.Reply", 14.0)]);
    assert_close(&facts, &[("asked.n0", 0.0), ("entered.n0", 0.2), ("left.n0", 1.2)]);
    assert_close(&facts, &[("asked.n1", 0.5), ("entered.n1", 0.7), ("left.n1", 1.7), ("end", 1.7)]);
    assert_close(&facts, &[("received.n0", 8.0), ("received.n1", 8.0), ("received.n7", 2.0)]);
    assert!(!facts.contains_key("asked.n2") && !facts.contains_key("entered.n2"));
}

#[test]
fn every_message_has_its_sending_and_its_receipt() {
    let scene = raymond_k();
    for (at, message) in scene.messages.iter().enumerate() {
        let of = |what: &dyn Fn(&What) -> bool| {
            let found: Vec<_> = scene.happenings.iter().filter(|happening| what(&happening.what)).collect();
            found.into_iter().map(|happening| (happening.time, happening.node)).collect::<Vec<_>>()
        };
        let sent = of(&|what| *what == What::Send { to: message.to, message: at });
        let received = of(&|what| *what == What::Receive { from: message.from, message: at });
        assert_eq!(sent, [(message.sent, message.from)]);
        assert_eq!(received, [(message.received.expect("nothing is lost"), message.to)]);
        assert!((message.received.expect("nothing is lost") - message.sent - 0.1).abs() < 1e-9);
    }
}

/// n0 comes back for more while a reply of n2 is still on its way, and n2 replies again, in the same words.
const TWO_EQUAL_REPLIES: &str = "system nodes=3 k=2\nask n0\ndeliver n0 n1\ndeliver n1 n0\ndeliver n0 n2\nleave n0\nask n0\n\
                                 deliver n0 n2\n";

fn replies_of_n2(rest: &str) -> Vec<(f64, Option<f64>, Option<f64>)> {
    let script = format!("{TWO_EQUAL_REPLIES}{rest}---\n");
    let played = director::play("raymond-k", &script).expect("it is in the catalog").expect("it can be played");
    let of_n2 = played.scene.messages.iter().filter(|message| message.from == NodeId(2));
    of_n2.map(|message| (message.sent, message.received, message.lost)).collect()
}

#[test]
fn of_equal_messages_the_first_arrives_first() {
    let replies = replies_of_n2("deliver n2 n0 \"Reply(1)\"\ndeliver n2 n0 \"Reply(1)\"\n");
    assert_eq!(replies, [(4.0, Some(8.0), None), (7.0, Some(9.0), None)]);
}

#[test]
fn of_equal_messages_the_first_is_lost_on_a_stage() {
    // The algorithm does not survive this, and says so.
    let replies = replies_of_n2("!lose n2 n0\n!tick n1\n!deliver n2 n0\n");
    assert_eq!(replies, [(4.0, None, Some(8.0)), (7.0, Some(10.0), None)]);
}

#[test]
fn of_equal_messages_the_one_just_sent_is_lost_in_a_simulation() {
    let reply = || serde_json::from_str("\"Reply\"").expect("RicartAgrawala has such a message");
    let nodes = RicartAgrawala::system(&System::of(2).setup(0, 0).expect("two nodes")).expect("two nodes");
    let (mut recorder, send) = (Recorder::<RicartAgrawala>::default(), Effect::Send(NodeId(1), reply()));
    recorder.see(1.0, NodeId(0), Event::Effect(&send));
    recorder.see(2.0, NodeId(0), Event::Effect(&send));
    recorder.see(2.0, NodeId(0), Event::Lost(NodeId(1), &reply()));
    recorder.see(3.0, NodeId(0), Event::Doubled(NodeId(1), &reply()));
    let arrives = Input::Message { from: NodeId(0), message: reply() };
    recorder.see(4.0, NodeId(1), Event::Input(&arrives, &nodes[1], &[]));
    let scene = recorder.into_scene();
    let ends: Vec<_> = scene.messages.iter().map(|message| (message.sent, message.received, message.lost)).collect();
    assert_eq!(ends, [(1.0, Some(4.0), None), (2.0, None, Some(2.0)), (3.0, None, None)]);
    assert_eq!(scene.nodes, 2);
}

#[test]
fn a_stage_counts_its_steps() {
    let scene = played("ricart-agrawala-clock", "mutex/ricart-agrawala-clock/test-3-two-in-line");
    assert_eq!(scene.entries(), [NodeId(0), NodeId(1), NodeId(2)]);
    let expected = [("asked.n0", 2.0), ("entered.n0", 6.0), ("left.n0", 14.0), ("entered.n2", 18.0), ("end", 22.0)];
    assert_close(&scene.facts(), &expected);
    let first = &scene.messages[0];
    assert_eq!((first.text.as_str(), first.sent, first.received), ("Request(2)", 2.0, Some(3.0)));
    let clock = |happening: &Happening| happening.state.as_ref().map(|state| state["clock"].clone());
    let ticked = scene.happenings.iter().find(|happening| happening.what == What::Internal).expect("n0 ticks first");
    assert_eq!((ticked.time, ticked.node, clock(ticked)), (1.0, NodeId(0), Some(1.into())));
}

#[test]
fn who_waits_who_is_inside_and_who_is_dead() {
    let script = "system nodes=3\nask n1\nask n2\nsettle\nleave n1\nsettle\ncrash n2\ntick n1\nrestart n2\n---\n";
    let played = director::play("ricart-agrawala", script).expect("it is in the catalog").expect("it can be played");
    let stays = played.scene.stays();
    let how = |node: u32| {
        let of_node = stays.iter().filter(|stay| stay.node == NodeId(node));
        of_node.map(|Stay { how, from, until, .. }| (*how, *from, *until)).collect::<Vec<_>>()
    };
    assert!(how(0).is_empty());
    let entered = played.scene.facts()["entered.n1"];
    let left = played.scene.facts()["left.n1"];
    assert_eq!(how(1), [(How::Waiting, 1.0, entered), (How::Inside, entered, left)]);
    let crashed = left + 2.0;
    let second =
        [(How::Waiting, 2.0, left + 1.0), (How::Inside, left + 1.0, crashed), (How::Dead, crashed, crashed + 2.0)];
    assert_eq!(how(2), second);
    let last = played.scene.happenings.last().expect("n2 is back");
    assert_eq!((&last.what, last.phase), (&What::Restart, Phase::Idle));
}

#[test]
fn whoever_is_told_what_it_asked_for_waits_no_more() {
    let scene = record("superpeers-by-prefix", &config(8, "0 n0", 0.0, ""));
    let waits: Vec<_> = scene.stays().into_iter().map(|stay| (stay.node, stay.how, stay.from)).collect();
    assert_eq!(waits, [(NodeId(0), How::Waiting, 0.0)]);
    let told = scene.happenings.iter().rfind(|happening| matches!(happening.what, What::Told(_)));
    let told = told.expect("n0 finds somebody");
    assert_eq!((told.node, told.phase, told.time), (NodeId(0), Phase::Idle, scene.stays()[0].until));
}

#[test]
fn a_script_that_cannot_be_played_says_why() {
    assert!(director::play("no-such-algorithm", "").is_none());
    let why = |script: &str| {
        let played = director::play("ricart-agrawala", script).expect("it is in the catalog");
        played.expect_err("this cannot be played").to_string()
    };
    assert_eq!(
        why("ask n1\n---\n"),
        "command 'ask' failed at line 1: there is no system yet; begin with system nodes=3"
    );
    assert!(why("system nodes=2\nleave n1\n---\n").contains("n1 cannot leave: it is Idle"));
    assert!(why("dance\n---\n").contains("dance"));
}

/// The tree of figure 3 of the paper: who has the broadcast of n0 from whom.
#[test]
fn the_tree_of_a_broadcast() {
    let above = |faults: &str| {
        let scene = record("spanning-tree", &config(8, "2 n0", 0.0, faults));
        (scene.first_receipts("Tree").into_iter().map(|(node, from)| (node.0, from.0)).collect::<Vec<_>>(), scene)
    };
    let (all, scene) = above("");
    assert_eq!(all, [(1, 0), (2, 0), (3, 2), (4, 0), (5, 4), (6, 4), (7, 6)]);
    assert!(Tree::of_first_receipts(&scene, "Tree").nodes.iter().all(|node| !node.dead));
    let (without, scene) = above("0 crash n4");
    assert_eq!(without, [(1, 0), (2, 0), (3, 2), (5, 6), (6, 0), (7, 6)]);
    let dead = TreeNode { label: "n4".into(), dead: true, ..TreeNode::default() };
    assert_eq!(Tree::of_first_receipts(&scene, "Tree").nodes[4], dead);
    let (_, scene) = above("1.9 crash n4");
    assert_eq!(Tree::of_first_receipts(&scene, "Tree").nodes[4].above, Some(0), "n0 does not know of the crash yet");
}

/// Every element that is opened is closed, and nothing is where a number should be.
fn assert_well_formed(svg: &str) {
    let mut open = Vec::new();
    for (at, _) in svg.match_indices('<') {
        let tag = &svg[at + 1..];
        let tag = &tag[..tag.find('>').expect("a tag ends")];
        assert!(!tag.contains('<') && tag.matches('"').count().is_multiple_of(2), "<{tag}>");
        let name = tag.trim_start_matches('/').split([' ', '/']).next().unwrap_or("");
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "in {svg}");
        } else if !tag.ends_with('/') {
            open.push(name);
        }
    }
    assert!(open.is_empty() && svg.contains("role=\"img\""), "{open:?} is not closed");
    assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
}

fn texts(svg: &str) -> Vec<&str> {
    svg.split("</text>").filter_map(|part| part.rsplit_once('>')).map(|(_, text)| text).collect()
}

#[test]
fn every_node_and_kind_is_in_the_drawing() {
    let bully = record("bully", &config(6, "0.1 n2", 0.0, "0 crash n5"));
    let clock = played("ricart-agrawala-clock", "mutex/ricart-agrawala-clock/test-3-two-in-line");
    let central = record("central", &config(4, "0 n0\n0.05 n1\n0.15 n2", 0.25, ""));
    let scenes = [(raymond_k(), Axis::Time), (bully, Axis::Time), (clock, Axis::Step), (central, Axis::Time)];
    for (scene, axis) in &scenes {
        for words in [Words::Nothing, Words::Kind, Words::Brief, Words::Text] {
            let options = Options { title: "A & B".into(), axis: *axis, words, ..Options::default() };
            let svg = draw::space_time(scene, &options);
            assert_well_formed(&svg);
            assert!(svg.contains("<title>A &amp; B</title>"));
            let texts = texts(&svg);
            for node in NodeId::all(scene.nodes) {
                assert!(texts.contains(&node.to_string().as_str()), "{node} is missing among {texts:?}");
            }
            for kind in scene.kinds() {
                assert!(texts.contains(&kind), "{kind} is missing among {texts:?}");
            }
            assert!(texts.contains(&if *axis == Axis::Step { "step" } else { "time" }));
        }
    }
}

#[test]
fn the_legend_says_what_occurs_and_nothing_else() {
    let legend = |scene: &Scene| {
        let svg = draw::space_time(scene, &Options { words: Words::Nothing, ..Options::default() });
        let meanings = ["waits", "inside", "dead", "asks", "is told", "crashes", "never arrives"];
        let texts = texts(&svg).into_iter().map(str::to_owned).collect::<Vec<_>>();
        meanings.into_iter().filter(|meaning| texts.iter().any(|text| text == meaning)).collect::<Vec<_>>()
    };
    assert_eq!(legend(&raymond_k()), ["waits", "inside", "asks"]);
    let bully = record("bully", &config(6, "0.1 n2", 0.0, "0 crash n5"));
    assert_eq!(legend(&bully), ["waits", "dead", "asks", "is told", "crashes", "never arrives"]);
}

#[test]
fn a_part_of_a_scene() {
    let late = Options { from: 0.45, until: Some(1.0), words: Words::Nothing, ..Options::default() };
    let svg = draw::space_time(&raymond_k(), &late);
    assert_well_formed(&svg);
    let texts = texts(&svg);
    assert!(texts.contains(&"0.5") && texts.contains(&"1.0") && !texts.contains(&"0.0") && !texts.contains(&"1.1"));
    let whole = draw::space_time(&raymond_k(), &Options { words: Words::Nothing, ..Options::default() });
    let heads = |svg: &str| svg.matches("<polygon").count();
    // Heads of arrows, and a mark: the messages before n0 enters, its reply on leaving, and where it asks.
    assert_eq!(heads(&whole) - heads(&svg), 14 + 1 + 1);
}

#[test]
fn nothing_at_all_can_be_drawn() {
    let empty = draw::space_time(&Scene::default(), &Options::default());
    assert_well_formed(&empty);
    assert_well_formed(&draw::tree(&Tree::default()));
}

#[test]
fn trees_and_hypercubes() {
    let scene = record("spanning-tree", &config(16, "2 n0", 0.0, "0 crash n12"));
    let tree = draw::tree(&Tree::of_first_receipts(&scene, "Tree"));
    assert_well_formed(&tree);
    assert_eq!((tree.matches("<circle").count(), tree.matches("<polygon").count()), (16, 14));
    let arrows: Vec<_> = scene.first_receipts("Tree").into_iter().map(|(node, from)| (from, node)).collect();
    let cube = Hypercube { dimension: 4, arrows, dead: [NodeId(12)].into(), ..Hypercube::default() };
    let drawing = draw::hypercube(&cube).expect("four dimensions are not too many");
    assert_well_formed(&drawing);
    assert!(texts(&drawing).contains(&"1101"));
    let elements = ["<circle", "<polygon", "<path"].map(|element| drawing.matches(element).count());
    assert_eq!(elements, [16, 14, 2], "n8 goes around the dead n12, and so does n14");
    assert_eq!(draw::hypercube(&Hypercube { dimension: 5, ..cube }), None);
}
