//! What is different between a line that stands in a trace and one that would, and how to say so.

use serde::de::DeserializeOwned;
use serde_json::{Number, Value};
use vez_algorithms::Protocol;

use super::lines::{Told, shortened};

/// The first place at which two values differ, and what is there in each of them.
pub(super) fn difference(there: &Value, here: &Value) -> Option<(String, String, String)> {
    let of_two = |path: String, (there, here): (Option<&Value>, Option<&Value>)| match (there, here) {
        (Some(there), Some(here)) => {
            difference(there, here).map(|(rest, there, here)| (joined(&path, &rest), there, here))
        }
        (there, here) => Some((path, text_of(there, "absent"), text_of(here, "none"))),
    };
    match (there, here) {
        (Value::Object(one), Value::Object(other)) => {
            let added = one.keys().filter(|name| !other.contains_key(*name));
            let mut names = other.keys().chain(added);
            names.find_map(|name| of_two(name.clone(), (one.get(name), other.get(name))))
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => {
            let mut pairs = one.iter().zip(other).enumerate();
            pairs.find_map(|(at, (one, other))| of_two(at.to_string(), (Some(one), Some(other))))
        }
        (Value::Number(one), Value::Number(other)) if is_same(one, other) => None,
        (one, other) if one == other => None,
        (one, other) => Some((String::new(), text(one), text(other))),
    }
}

/// A program between may have written 1 for 1.0.
fn is_same(one: &Number, other: &Number) -> bool {
    one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
}

fn joined(path: &str, rest: &str) -> String {
    if rest.is_empty() { path.to_owned() } else { format!("{path}.{rest}") }
}

fn text_of(value: Option<&Value>, otherwise: &str) -> String {
    value.map_or(otherwise.to_owned(), text)
}

/// A value, or its beginning.
pub(super) fn text(value: &Value) -> String {
    shortened(&value.to_string())
}

/// What a line tells of.
pub(super) fn in_words<P: Protocol>(told: &Told) -> String {
    format!("{} {}", told.node, phrase::<P>(&told.fields))
}

/// What the node of a line does, or what happens to it.
pub(super) fn phrase<P: Protocol>(line: &Value) -> String {
    phrase_with(line, named::<P::Message>, named::<P::Timer>)
}

fn phrase_with(line: &Value, message: fn(&Value) -> String, timer: fn(&Value) -> String) -> String {
    let peer = || line["peer"].as_u64().map_or("nobody".to_owned(), |peer| format!("n{peer}"));
    let message = || message(&line["message"]);
    let timer = || timer(&line["timer"]);
    let what = || shortened(line["what"].as_str().unwrap_or("nothing"));
    match line["kind"].as_str().unwrap_or_default() {
        "start" => "starts".to_owned(),
        "restart" => "is back".to_owned(),
        "ask" => format!("asks for {}", what()),
        "leave" => "leaves".to_owned(),
        "receive" => format!("receives {} from {}", message(), peer()),
        "fire" => format!("is woken by {}", timer()),
        "notice" => format!("learns that {} has crashed", peer()),
        "internal" => "has something happen to itself".to_owned(),
        "send" => format!("sends {} to {}", message(), peer()),
        "set" => format!("sets {} after {}", timer(), text(&line["after"])),
        "cancel" => format!("cancels {}", timer()),
        "enter" => "enters".to_owned(),
        "output" => format!("tells its client {}", what()),
        "object" => format!("objects: {}", what()),
        "lose" => format!("loses {} to {}", message(), peer()),
        "double" => format!("has {} to {} doubled", message(), peer()),
        "crash" => "crashes".to_owned(),
        other => shortened(other),
    }
}

/// A message or a timer as the algorithm writes it, or as it stands there if the algorithm has none such.
fn named<T: DeserializeOwned + std::fmt::Debug>(value: &Value) -> String {
    let known = serde_json::from_value::<T>(value.clone());
    known.map_or_else(|_| text(value), |known| shortened(&format!("{known:?}")))
}
