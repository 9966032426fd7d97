//! The screen, as it follows from the state.

use ratatui::{
    Frame,
    layout::{Constraint, Layout},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{Block, Borders, Paragraph},
};

use super::{
    cells, popup,
    state::{Mode, Sort, State},
    tables,
    tell::plain,
};

/// A table has a line with what it is, and one with what its columns are.
pub(super) const HEADING: u16 = 2;
/// So many names are seen before any node is left out.
const LEAST_NAMES: u16 = 5;
const TITLE: &str = " vez top";

pub(super) const QUIET: Style = Style::new().fg(Color::DarkGray);
pub(super) const STRONG: Style = Style::new().add_modifier(Modifier::BOLD);
pub(super) const GOOD: Style = Style::new().fg(Color::Green);
pub(super) const HEED: Style = Style::new().fg(Color::Yellow);
pub(super) const BAD: Style = Style::new().fg(Color::Red);

/// Draws a state on the screen.
pub fn draw(frame: &mut Frame, state: &mut State) {
    let nodes = u16::try_from(state.picture.nodes.len()).unwrap_or(u16::MAX);
    let room = frame.area().height.saturating_sub(3 + HEADING + HEADING + LEAST_NAMES);
    // Who has no room for a single node looks for names.
    let nodes = if room == 0 { 0 } else { nodes.clamp(1, room) + HEADING };
    let [head, top, middle, foot] =
        Layout::vertical([Constraint::Length(2), Constraint::Length(nodes), Constraint::Min(1), Constraint::Length(1)])
            .areas(frame.area());
    frame.render_widget(Paragraph::new(header(state, head.width)), head);
    tables::nodes(frame, top, &state.picture.nodes);
    tables::names(frame, middle, state);
    frame.render_widget(footer(state), foot);
    popup::draw(frame, state);
}

fn header(state: &State, width: u16) -> Vec<Line<'static>> {
    let picture = &state.picture;
    let pause = state.paused.then(|| Span::styled(" PAUSED ", HEED.add_modifier(Modifier::BOLD)));
    let second = match &state.trouble {
        Some(trouble) => vec![Span::styled(format!(" {}", plain(trouble)), BAD)],
        None if picture.state.is_empty() => vec![Span::styled(" asking …", QUIET)],
        None if picture.state != "ready" => vec![Span::styled(format!(" {}", cells::standing(picture)), HEED)],
        None => vec![Span::raw(format!(" {}", cells::totals(&picture.totals()).join("  ")))],
    };
    vec![first_line(state, width), Line::from_iter(pause.into_iter().chain(second))]
}

/// Who they are, and when that was told. What can be left out is, until there is room.
fn first_line(state: &State, width: u16) -> Line<'static> {
    let picture = &state.picture;
    let variant = |(letters, says_who): (usize, bool)| {
        let asked = picture.asked.filter(|_| says_who).map_or(String::new(), |node| format!("by node {node}, "));
        let left = format!("  {}", cells::cluster(picture, letters).join("  "));
        (left, format!("{asked}{} ", state.time))
    };
    let room = |(left, right): &(String, String)| {
        let taken = TITLE.len() + Span::raw(left).width() + Span::raw(right).width();
        usize::from(width).checked_sub(taken).filter(|room| *room > 1)
    };
    let variants = [(usize::MAX, true), (usize::MAX, false), (8, false), (0, false)].map(variant);
    let shown = variants.iter().find(|variant| room(variant).is_some()).unwrap_or(&variants[3]);
    let gap = " ".repeat(room(shown).unwrap_or(2));
    Line::from_iter([
        Span::styled(TITLE, STRONG),
        Span::raw(shown.0.clone()),
        Span::raw(gap),
        Span::styled(shown.1.clone(), QUIET),
    ])
}

/// The line above a table.
pub(super) fn rule(words: Vec<Span<'static>>) -> Block<'static> {
    let mut title = vec![Span::raw(" ")];
    title.extend(words);
    title.push(Span::raw(" "));
    Block::new().borders(Borders::TOP).border_style(QUIET).title(Line::from(title))
}

fn footer(state: &State) -> Line<'static> {
    let keys: &[(&str, &str)] = match &state.mode {
        Mode::Choosing => &[("q", "quit"), ("↑↓", "choose"), ("Enter", "show"), ("/", "filter"), ("p", "pause")],
        Mode::Typing(_) => &[("Enter", "keep"), ("Esc", "drop")],
        Mode::Showing { .. } => &[("Esc", "close"), ("↑↓", "scroll"), ("q", "quit")],
    };
    let mut spans = vec![Span::raw(" ")];
    if let Mode::Typing(_) = state.mode {
        let cursor = Span::styled(" ", Style::new().add_modifier(Modifier::REVERSED));
        spans.extend([Span::raw("names that begin with "), Span::styled(plain(&state.filter), STRONG), cursor]);
        spans.push(Span::raw("  "));
    }
    let key = |(key, what): &(&'static str, &'static str)| {
        [Span::styled(*key, STRONG), Span::styled(format!(" {what}   "), QUIET)]
    };
    spans.extend(keys.iter().flat_map(key));
    if state.mode == Mode::Choosing {
        spans.extend([Span::styled("s", STRONG), Span::styled(format!(" by {}", sorted_by(state.sort)), QUIET)]);
    }
    Line::from(spans)
}

fn sorted_by(sort: Sort) -> &'static str {
    match sort {
        Sort::Waiting => "waiting",
        Sort::Grants => "grants",
        Sort::LongestWait => "longest wait",
        Sort::Name => "name",
    }
}

/// As much of a text as there is room for, and a sign if that is not all.
pub(super) fn fit(text: &str, width: u16) -> String {
    let width = usize::from(width);
    if Span::raw(text).width() <= width {
        return text.to_owned();
    }
    let mut fitting = String::new();
    for letter in text.chars() {
        fitting.push(letter);
        if Span::raw(fitting.as_str()).width() >= width {
            fitting.pop();
            break;
        }
    }
    if width > 0 { fitting + "…" } else { String::new() }
}
