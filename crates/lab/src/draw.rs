//! Drawings as SVG: a run as a space–time diagram, a tree, a hypercube.
//!
//! A drawing stands for itself: it needs no font, style sheet or script of the page that it is put into, has no identifiers
//! that could meet those of another, and is the same text whenever the same thing is drawn. What differs, differs in shape or
//! in the pattern of its dashes and not in colour alone.

mod hypercube;
mod labels;
mod legend;
mod space_time;
mod svg;
mod tree;

pub use self::{
    hypercube::{Hypercube, MAX_DIMENSION, hypercube},
    space_time::{Axis, Options, Words, space_time},
    tree::{Tree, TreeNode, tree},
};

/// What a program prints of a value, shorter: the names of fields left out, and what says nothing.
///
/// `Elected { leader: n4, term: 10 }` becomes `Elected(n4, 10)`.
fn brief(text: &str) -> String {
    let is_field = |name: &str| !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    let mut short = String::with_capacity(text.len());
    for word in text.split_inclusive(' ') {
        if word.trim_end() == "{" {
            short.truncate(short.trim_end().len());
            short.push('(');
        } else if let Some(rest) = word.strip_prefix('}') {
            short.truncate(short.trim_end().len());
            short.push(')');
            short += rest;
        } else if !word.trim_end().strip_suffix(':').is_some_and(is_field) {
            short += word;
        }
    }
    for (from, to) in [("((), ", "("), (", ()", ""), ("(())", ""), ("()", "")] {
        short = short.replace(from, to);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::brief;

    #[test]
    fn what_says_nothing_is_left_out() {
        assert_eq!(brief("Elected { leader: n4, term: 10 }"), "Elected(n4, 10)");
        assert_eq!(brief("Tree { root: n0, number: 1, payload: (), hops: 3 }"), "Tree(n0, 1, 3)");
        assert_eq!(brief("Reply(1)"), "Reply(1)");
        assert_eq!(brief("Broadcast(())"), "Broadcast");
        assert_eq!(brief("Token { served: {n0: 1, n2: 4} }"), "Token({n0: 1, n2: 4})");
        assert_eq!(brief("Some(Waiting { clock: 2 })"), "Some(Waiting(2))");
        assert_eq!(brief(""), "");
    }
}
