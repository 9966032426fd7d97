//! The scripts that lock libraries send, each in every way in which it is commonly written.
//!
//! Most are put together from three parts: how a value is compared, what is done then, and what is answered otherwise. `{get}`
//! and the like stand for calls of Redis, so that a line is short enough to be read.

use std::{collections::HashMap, sync::LazyLock};

use super::{Answer, Answers, By, Meaning, lua};

/// What is known, by its form.
pub(super) static KNOWN: LazyLock<HashMap<String, Meaning>> = LazyLock::new(|| {
    let mut known = Known::default();
    compared(&mut known);
    guarded(&mut known);
    single(&mut known);
    several(&mut known);
    known.0
});

const YES: Answer = Answer::Integer(1);
const NO: Answer = Answer::Integer(0);

/// What stands for a call.
const CALLS: [(&str, &str); 8] = [
    ("{get}", r#"redis.call("get", KEYS[1])"#),
    ("{del}", r#"redis.call("del", KEYS[1])"#),
    ("{pttl}", r#"redis.call("pttl", KEYS[1])"#),
    ("{expire}", r#"redis.call("expire", KEYS[1], ARGV[2])"#),
    ("{pexpire}", r#"redis.call("pexpire", KEYS[1], ARGV[2])"#),
    ("{set}", r#"redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2])"#),
    ("{set xx}", r#"redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2], "xx")"#),
    ("{xx set}", r#"redis.call("set", KEYS[1], ARGV[1], "xx", "px", ARGV[2])"#),
];

#[derive(Default)]
struct Known(HashMap<String, Meaning>);

impl Known {
    fn add(&mut self, text: &str, meaning: Meaning) {
        let whole = CALLS.iter().fold(text.to_owned(), |text, (name, call)| text.replace(name, call));
        let form = lua::form(whole.as_bytes()).expect("what is known can be read");
        let before = self.0.insert(form, meaning);
        assert!(before.is_none_or(|before| before == meaning), "{text} means two things");
    }
}

/// What is done to a lock that is the client's own: in Lua, what that means, and what is answered then.
type Act = (&'static str, fn(Answers) -> Meaning, Answer);

fn acts() -> Vec<Act> {
    let release = Meaning::Release;
    let seconds = |answers| Meaning::Expire { by: By::Seconds, answers };
    let milliseconds = |answers| Meaning::Expire { by: By::Milliseconds, answers };
    let set = |answers| Meaning::Expire { by: By::Set, answers };
    vec![
        ("return {del}", release, YES),
        ("{del} return 1", release, YES),
        ("{del} return true", release, YES),
        ("return {expire}", seconds, YES),
        ("{expire} return 1", seconds, YES),
        ("{expire} return true", seconds, YES),
        ("return {pexpire}", milliseconds, YES),
        ("{pexpire} return 1", milliseconds, YES),
        ("{pexpire} return true", milliseconds, YES),
        ("return {set}", set, Answer::Ok),
        ("return {set xx}", set, Answer::Ok),
        ("return {xx set}", set, Answer::Ok),
        ("{set} return 1", set, YES),
        ("{set xx} return 1", set, YES),
        ("{xx set} return 1", set, YES),
    ]
}

/// `if it is ours then … else … end`.
fn compared(known: &mut Known) {
    let tests = ["if {get} == ARGV[1] then", "local value = {get} if value == ARGV[1] then"];
    let others = [
        ("else return 0 end", NO),
        ("end return 0", NO),
        ("else return -1 end", Answer::Integer(-1)),
        ("end return -1", Answer::Integer(-1)),
        ("else return nil end", Answer::Nil),
        ("else return false end", Answer::Nil),
        ("end return nil", Answer::Nil),
        ("end return false", Answer::Nil),
        ("end", Answer::Nil),
    ];
    for test in tests {
        for (act, meaning, done) in acts() {
            for (other, not_ours) in others {
                known.add(&format!("{test} {act} {other}"), meaning(Answers { done, not_ours, free: not_ours }));
            }
        }
    }
}

/// `if it is not ours then return … end …`, which redis-py and others prefer.
fn guarded(known: &mut Known) {
    let tests = [
        "if {get} ~= ARGV[1] then",
        "local value = {get} if value ~= ARGV[1] then",
        "local value = {get} if not value or value ~= ARGV[1] then",
    ];
    for test in tests {
        for (act, meaning, done) in acts() {
            for (other, not_ours) in [("return 0", NO), ("return nil", Answer::Nil), ("return false", Answer::Nil)] {
                let meaning = meaning(Answers { done, not_ours, free: not_ours });
                known.add(&format!("{test} {other} end {act}"), meaning);
                known.add(&format!("{test} {other} else {act} end"), meaning);
            }
        }
    }
}

/// What single libraries have.
fn single(known: &mut Known) {
    let plain = Answers { done: YES, not_ours: NO, free: NO };
    // sherlock.
    known.add("local done = 0 if {get} == ARGV[1] then {del} done = 1 end return done", Meaning::Release(plain));
    // redsync tells one that is free from one that is another's, and takes it anew if it has to.
    let text = "local value = {get} if value == ARGV[1] then return {del} elseif value == false then return -1 else return 0 end";
    known.add(text, Meaning::Release(Answers { free: Answer::Integer(-1), ..plain }));
    let anew = r#"redis.call("set", KEYS[1], ARGV[1], "px", ARGV[2], "nx")"#;
    let text = format!("if {{get}} == ARGV[1] then return {{pexpire}} elseif {anew} then return 1 else return 0 end");
    known.add(&text, Meaning::Take { asked: false, answers: Answers { free: YES, ..plain } });
    // rslock.
    let text = "if {get} ~= ARGV[1] then return 0 else if {set} ~= nil then return 1 else return 0 end end";
    known.add(text, Meaning::Expire { by: By::Set, answers: plain });
    // redis-py's extend.
    let text = r#"local value = {get} if not value or value ~= ARGV[1] then return 0 end local left = {pttl}
        if not left then left = 0 end if left < 0 then return 0 end local time = ARGV[2]
        if ARGV[3] == "0" then time = ARGV[2] + left end redis.call("pexpire", KEYS[1], time) return 1"#;
    known.add(text, Meaning::Prolong);
    // pottery, and redislock of Go before it had several keys.
    let text = "if {get} == ARGV[1] then local left = {pttl} return (left > 0) and left or 0 else return 0 end";
    known.add(text, Meaning::Left { endless: 0, not_ours: 0 });
    known.add("if {get} == ARGV[1] then return {pttl} else return -3 end", Meaning::Left { endless: -1, not_ours: -3 });
    // Spring Integration.
    let text = "local value = {get} if value == ARGV[1] then {pexpire} return true elseif not value then {set} return true end return false";
    let answers = Answers { done: YES, not_ours: Answer::Nil, free: YES };
    known.add(text, Meaning::Take { asked: false, answers });
    // redlock of Ruby.
    let text =
        r#"if (redis.call("exists", KEYS[1]) == 0 and ARGV[3] == "yes") or {get} == ARGV[1] then return {set} end"#;
    let answers = Answers { done: Answer::Ok, not_ours: Answer::Nil, free: Answer::Ok };
    known.add(text, Meaning::Take { asked: true, answers });
}

/// Those of redlock for Node.js, which take several keys at once. A descendant of it says in which database they are, first.
fn several(known: &mut Known) {
    let chosen = r#"redis.call("select", tonumber(ARGV[1])) "#;
    for (database, value, ttl, first) in [(false, "ARGV[1]", "ARGV[2]", ""), (true, "ARGV[2]", "ARGV[3]", chosen)] {
        let none = r#"for i, key in ipairs(KEYS) do if redis.call("exists", key) == 1 then return 0 end end"#;
        let each = format!("for i, key in ipairs(KEYS) do if redis.call('get', key) ~= {value} then return 0 end end");
        let set =
            format!("for i, key in ipairs(KEYS) do redis.call('set', key, {value}, 'px', {ttl}) end return #KEYS");
        known.add(&format!("{first}{none} {set}"), Meaning::AcquireAll { database });
        known.add(&format!("{first}{each} {set}"), Meaning::ExtendAll { database });
        let delete = format!("if redis.call('get', key) == {value} then redis.call('del', key) count = count + 1 end");
        let text = format!("{first}local count = 0 for i, key in ipairs(KEYS) do {delete} end return count");
        known.add(&text, Meaning::ReleaseAll { database });
    }
}
