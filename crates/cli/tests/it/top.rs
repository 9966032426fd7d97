//! `vez top` without nodes: what it makes of their answers, what keys do, and that it can be drawn at every size.

use std::time::Duration;

use ratatui::{
    Terminal,
    backend::TestBackend,
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
};
use serde_json::{Value, json};
use vez_cli::service::top::{
    draw,
    picture::{Answers, Picture, Watch},
    state::{Mode, Sort, State, Wish},
};

fn vitals(node: u64, grants: u64, busiest: &Value) -> Value {
    json!({
        "node": node, "id": format!("m{node}"), "state": "ready", "view": 7, "connections": 4, "used_names": 2,
        "grants": grants, "local_hits": grants / 2, "handovers": grants / 10, "busiest": busiest,
    })
}

fn name(name: &str, waiters: u64) -> Value {
    let waiting: Vec<Value> =
        (0..waiters).map(|at| json!({ "node": 1, "client": "c", "waited_ms": at * 100 })).collect();
    json!({
        "name": name, "kind": "lock", "waiters": waiters, "waiting": waiting,
        "holders": [{ "node": 2, "client": "10.0.0.7:51234 (billing)", "part": null, "fence": "1", "held_ms": 40 }],
    })
}

fn answers(at_ms: u64, nodes: &[Value], silent: &[u64], names: &[Value]) -> Answers {
    let member = |node: u64| json!({ "node": node, "id": format!("m{node}"), "address": "10.0.0.1:7402", "votes": 1 });
    Answers {
        at: Duration::from_millis(at_ms),
        nodes: json!({ "nodes": nodes, "silent": silent }),
        names: json!({ "names": names, "more": 0, "silent": silent }),
        status: json!({
            "node": 1, "cluster": "18d9372ba1287f5e", "state": "ready", "because": "it serves everything", "view": 7,
            "leader": 1, "leader_id": "m1", "members": [member(1), member(2), member(3)],
        }),
    }
}

/// Three nodes, one of them silent, and some names: two looks, two seconds apart.
fn picture() -> Picture {
    let busiest = json!([{ "name": "hot", "millionths": 250_000 }, { "name": "wanted", "millionths": 500_000 }]);
    let mut watch = Watch::default();
    let names = [name("wanted", 3), name("evil\u{1b}[2J", 1), name("held", 0)];
    watch.look(&answers(1000, &[vitals(1, 100, &busiest), vitals(2, 0, &json!([]))], &[3], &names));
    watch.look(&answers(3000, &[vitals(1, 300, &busiest), vitals(2, 40, &busiest)], &[3], &names))
}

fn state() -> State {
    let mut state = State::new(String::new());
    state.see(picture(), "12:00:00 UTC".into());
    state
}

fn press(state: &mut State, codes: &[KeyCode]) -> Wish {
    let mut wish = Wish::Nothing;
    for code in codes {
        wish = state.key(KeyEvent::new(*code, KeyModifiers::NONE));
    }
    wish
}

fn shown(state: &State) -> Vec<&str> {
    state.names().into_iter().map(|name| name.name.as_str()).collect()
}

/// What is on a screen of that size.
fn drawn(state: &mut State, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw::draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn rates_are_what_was_counted_between_two_looks() {
    let picture = picture();
    let [one, two, three] = &picture.nodes[..] else { panic!("{picture:?}") };
    assert_eq!((one.grants_per_second, one.at_once, one.handovers_per_second), (Some(100.0), Some(0.5), Some(10.0)));
    assert_eq!((one.leads, two.leads, two.grants_per_second), (true, false, Some(20.0)));
    assert_eq!((three.state.as_str(), three.votes, three.grants_per_second), ("silent", true, None));
    let rate = |name: &str| picture.names.iter().find(|known| known.name == name).unwrap().grants_per_second;
    assert_eq!((rate("hot"), rate("wanted"), rate("held")), (Some(30.0), Some(60.0), None));
}

#[test]
fn a_node_that_began_anew_has_no_negative_rates_and_one_that_was_silent_goes_on() {
    let mut watch = Watch::default();
    let mut look = |at_ms, grants: [Option<u64>; 2]| {
        let nodes: Vec<Value> =
            (1..).zip(grants).filter_map(|(node, grants)| Some(vitals(node, grants?, &json!([])))).collect();
        let picture = watch.look(&answers(at_ms, &nodes, &[], &[]));
        [0, 1].map(|at: usize| picture.nodes[at].grants_per_second)
    };
    assert_eq!(look(0, [Some(1000), Some(10)]), [None, None]);
    assert_eq!(look(1000, [Some(5), None]), [None, None]);
    assert_eq!(look(2000, [Some(25), Some(50)]), [Some(20.0), Some(20.0)]);
    assert_eq!(look(2000, [Some(30), Some(60)]), [None, None], "no time has passed");
}

#[test]
fn names_are_sorted_and_filtered_and_the_one_that_is_chosen_stays_so() {
    let mut state = state();
    assert_eq!(shown(&state), ["wanted", "evil\u{1b}[2J", "hot", "held"]);
    press(&mut state, &[KeyCode::Down, KeyCode::Char('j'), KeyCode::Char('j')]);
    assert_eq!(state.chosen.as_deref(), Some("hot"));
    let orders = [
        (Sort::Grants, ["wanted", "hot", "evil\u{1b}[2J", "held"]),
        (Sort::LongestWait, ["wanted", "evil\u{1b}[2J", "hot", "held"]),
        (Sort::Name, ["evil\u{1b}[2J", "held", "hot", "wanted"]),
    ];
    for (sort, names) in orders {
        press(&mut state, &[KeyCode::Char('s')]);
        assert_eq!((state.sort, shown(&state)), (sort, names.to_vec()));
        assert_eq!(state.table.selected(), names.iter().position(|name| *name == "hot"));
    }
    press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('h'), KeyCode::Char('q'), KeyCode::Backspace]);
    assert_eq!(press(&mut state, &[KeyCode::Enter]), Wish::Ask);
    assert_eq!((shown(&state), state.chosen.as_deref()), (vec!["held", "hot"], Some("hot")));
    press(&mut state, &[KeyCode::Char('/'), KeyCode::Char('z'), KeyCode::Esc]);
    assert_eq!(state.filter, "h", "what was typed is dropped");
    assert_eq!(press(&mut state, &[KeyCode::Esc]), Wish::Ask);
    assert_eq!(state.filter, "");
    assert_eq!(press(&mut state, &[KeyCode::Esc]), Wish::Quit);
}

#[test]
fn a_name_is_looked_at_until_escape() {
    let mut state = state();
    assert_eq!(press(&mut state, &[KeyCode::Enter]), Wish::Nothing, "nothing is chosen");
    assert_eq!(press(&mut state, &[KeyCode::Down, KeyCode::Enter]), Wish::Show);
    state.shown("another", "no".into());
    assert!(drawn(&mut state, 80, 24).contains("asking …"));
    state.shown("wanted", "wanted: lock, home node 2, view 7\nheld by  node 2, client billing\n".into());
    let screen = drawn(&mut state, 80, 24);
    assert!(screen.contains("│ lock, home node 2, view 7") && screen.contains("│ held by  node 2"), "{screen}");
    assert_eq!(press(&mut state, &[KeyCode::Esc]), Wish::Nothing);
    assert_eq!(state.mode, Mode::Choosing);
    press(&mut state, &[KeyCode::Enter, KeyCode::Down]);
    assert_eq!(state.key(KeyEvent::new(KeyCode::Char('c'), KeyModifiers::CONTROL)), Wish::Quit);
}

#[test]
fn pauses_and_troubles_are_seen_and_the_picture_stays() {
    let mut state = state();
    assert_eq!(press(&mut state, &[KeyCode::Char('p')]), Wish::Nothing);
    assert!(drawn(&mut state, 80, 24).contains("PAUSED"));
    assert_eq!(press(&mut state, &[KeyCode::Char('p')]), Wish::Ask);
    state.trouble = Some("cannot reach a node at 10.0.0.1:7400; trying again".into());
    let screen = drawn(&mut state, 80, 24);
    assert!(screen.contains("cannot reach a node") && screen.contains("wanted"), "{screen}");
}

#[test]
fn what_is_in_use_now_and_then_does_not_jump() {
    let mut state = state();
    press(&mut state, &[KeyCode::Down]);
    for (missed, rows) in [(1, 4), (5, 4), (6, 0)] {
        while state.picture.names.iter().all(|name| name.missed < missed) && !state.picture.names.is_empty() {
            state.see(Picture::default(), String::new());
        }
        assert_eq!(state.picture.names.len(), rows, "missed {missed} times");
    }
    assert_eq!(state.chosen, None);
}

#[test]
fn the_screen_at_80_columns() {
    let screen = drawn(&mut state(), 80, 20);
    for line in [
        " vez top  cluster 18d9372b…  view 7  3 members  node 1 leads       12:00:00 UTC ",
        " 120 grants/s  50 % at once  12 hand-overs/s  8 clients  4 waiting",
        "    1  ready     leads        4        100     50 %            10             █",
        "    3  silent    votes        -          -        -             -",
        " wanted                      60         3    200 ms  node 2, billing",
        " evil\\u{1b}[2J                -         1      0 ms  node 2, billing",
    ] {
        assert!(screen.contains(line), "{line:?} is not in\n{screen}");
    }
}

#[test]
fn nothing_panics_at_any_size_or_on_any_answer() {
    let mut strange = Watch::default();
    let nothing =
        || Answers { at: Duration::ZERO, nodes: json!(7), names: Value::Null, status: json!({ "state": [] }) };
    let odd = json!([{ "name": 5, "millionths": -3 }, { "name": "漢字".repeat(80), "millionths": u64::MAX }]);
    let huge = [vitals(1, u64::MAX, &odd), vitals(1, 3, &odd), json!("?")];
    let pictures = [
        strange.look(&nothing()),
        strange.look(&answers(5, &huge, &[9, 9], &[name("漢\u{202e}字\n".repeat(60).as_str(), 2), json!({})])),
        strange.look(&answers(6, &[], &[], &[])),
        picture(),
    ];
    for picture in pictures {
        for keys in [&[][..], &[KeyCode::Down, KeyCode::Enter], &[KeyCode::Char('/'), KeyCode::Char('漢')]] {
            let mut state = State::default();
            state.see(picture.clone(), String::new());
            press(&mut state, keys);
            state.shown("wanted", format!("wanted: {}\n", "字 long ".repeat(300)));
            for (width, height) in
                (1..=130).step_by(7).flat_map(|width| (1..=40).step_by(3).map(move |height| (width, height)))
            {
                drawn(&mut state, width, height);
            }
        }
    }
}
