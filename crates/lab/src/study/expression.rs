//! The arithmetic of rules and plots: numbers, columns, and what can be computed from them.
//!
//! `messages[nxr] <= min(messages[raymond], 3)`: a column of the table, and in brackets the value of the series column, if more
//! than one series has a part in it. A rule may have several parts with `and` between them. A hyphen between letters belongs to
//! a name; whoever subtracts leaves a space.

use std::fmt;

/// Something to be computed at each point of a table.
#[derive(Clone, PartialEq, Debug)]
pub enum Expression {
    /// A number.
    Number(f64),
    /// A text in quotation marks.
    Text(String),
    /// A column, of one series if one is named.
    Column(String, Option<String>),
    /// A function of others; arithmetic is one, too.
    Call(Function, Vec<Self>),
}

/// What can be computed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Function {
    /// a + b
    Add,
    /// a − b
    Subtract,
    /// a · b
    Multiply,
    /// a / b
    Divide,
    /// The smallest of all.
    Min,
    /// The largest of all.
    Max,
    /// Without its sign.
    Abs,
    /// The square root.
    Sqrt,
    /// The logarithm to base 2.
    Log2,
    /// e to this power.
    Exp,
    /// The next whole number above.
    Ceil,
    /// 1 + 1/2 + … + 1/n
    Harmonic,
}

const NAMED: [(&str, Function); 8] = [
    ("min", Function::Min),
    ("max", Function::Max),
    ("abs", Function::Abs),
    ("sqrt", Function::Sqrt),
    ("log2", Function::Log2),
    ("exp", Function::Exp),
    ("ceil", Function::Ceil),
    ("harmonic", Function::Harmonic),
];

/// The function of that name.
pub(super) fn named(name: &str) -> Option<Function> {
    NAMED.iter().find(|(known, _)| *known == name).map(|(_, function)| *function)
}

impl Function {
    /// Applies it.
    #[must_use]
    pub fn of(self, values: &[f64]) -> f64 {
        let [first, rest @ ..] = values else { return f64::NAN };
        match (self, rest) {
            (Self::Add, [b]) => first + b,
            (Self::Subtract, [b]) => first - b,
            (Self::Subtract, []) => -first,
            (Self::Multiply, [b]) => first * b,
            (Self::Divide, [b]) => first / b,
            (Self::Min, rest) => rest.iter().copied().fold(*first, f64::min),
            (Self::Max, rest) => rest.iter().copied().fold(*first, f64::max),
            (Self::Abs, []) => first.abs(),
            (Self::Sqrt, []) => first.sqrt(),
            (Self::Log2, []) => libm::log2(*first),
            (Self::Exp, []) => libm::exp(*first),
            (Self::Ceil, []) => first.ceil(),
            (Self::Harmonic, []) => (1..=(first.clamp(0.0, 1e6) as u64)).map(|i| 1.0 / i as f64).sum(),
            (
                Self::Add
                | Self::Subtract
                | Self::Multiply
                | Self::Divide
                | Self::Abs
                | Self::Sqrt
                | Self::Log2
                | Self::Exp
                | Self::Ceil
                | Self::Harmonic,
                _,
            ) => f64::NAN,
        }
    }

    /// How many values it takes.
    pub(super) fn takes(self, values: usize) -> bool {
        match self {
            Self::Min | Self::Max => values >= 1,
            Self::Add | Self::Subtract | Self::Multiply | Self::Divide => values == 2,
            Self::Abs | Self::Sqrt | Self::Log2 | Self::Exp | Self::Ceil | Self::Harmonic => values == 1,
        }
    }
}

impl Expression {
    /// Calls `visit` for each column in it.
    pub fn columns(&self, visit: &mut impl FnMut(&str, Option<&str>)) {
        match self {
            Self::Number(_) | Self::Text(_) => {}
            Self::Column(name, series) => visit(name, series.as_deref()),
            Self::Call(_, parts) => parts.iter().for_each(|part| part.columns(visit)),
        }
    }
}

/// How two sides of a rule stand to each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Less.
    Less,
    /// Less, or more by no more than a small part of the right side.
    AtMost,
    /// More.
    More,
    /// More, or less by no more than a small part of the right side.
    AtLeast,
    /// The same, without any chance in it.
    Equal,
    /// Different by no more than a part of the right side.
    Near,
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::More => ">",
            Self::AtLeast => ">=",
            Self::Equal => "=",
            Self::Near => "~",
        })
    }
}

/// One comparison of a rule.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// What stands on the left.
    pub left: Expression,
    /// How it stands to the right side.
    pub relation: Relation,
    /// What stands on the right.
    pub right: Expression,
    /// Both sides, as they were written.
    pub words: [String; 2],
}
