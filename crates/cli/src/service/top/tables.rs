//! The two tables.

use ratatui::{
    Frame,
    layout::{Alignment, Constraint, Layout, Rect},
    style::{Color, Modifier, Style},
    text::{Line, Span},
    widgets::{HighlightSpacing, Paragraph, Row, Table, TableState},
};

use super::{
    cells,
    draw::{BAD, GOOD, HEADING, HEED, QUIET, STRONG, fit, rule},
    picture::{Name, Node},
    state::{Sort, State},
    tell::plain,
};

const GAP: u16 = 2;
const TREND: Style = Style::new().fg(Color::Cyan);
/// Who waits for longer is seen at once.
const LONG_WAIT_MS: u64 = 10_000;

/// A column of a table of some things.
struct Column<T> {
    heading: &'static str,
    width: Constraint,
    align: Alignment,
    /// It is left out where the table is narrower.
    from: u16,
    /// What stands in it, where it is so wide.
    cell: fn(&T, u16) -> Span<'static>,
}

/// A node, and the rate of the busiest at its busiest: the same bar means the same for all.
struct Beside<'a>(&'a Node, f64);

impl<T> Column<T> {
    fn new(heading: &'static str, width: Constraint, from: u16, cell: fn(&T, u16) -> Span<'static>) -> Self {
        Self { heading, width, align: Alignment::Left, from, cell }
    }

    /// Of numbers, or what is like them.
    fn right(heading: &'static str, width: u16, from: u16, cell: fn(&T, u16) -> Span<'static>) -> Self {
        Self { align: Alignment::Right, ..Self::new(heading, Constraint::Length(width), from, cell) }
    }
}

pub(super) fn nodes(frame: &mut Frame, area: Rect, nodes: &[Node]) {
    let fitting = usize::from(area.height.saturating_sub(HEADING)).min(nodes.len());
    let mut words = vec![Span::styled("nodes", STRONG)];
    if fitting < nodes.len() {
        words.push(Span::raw(format!(": the first {fitting} of {}, a taller window shows more", nodes.len())));
    }
    let most = nodes.iter().flat_map(|node| &node.trend).copied().fold(0.0, f64::max);
    let rows: Vec<Beside> = nodes[..fitting].iter().map(|node| Beside(node, most)).collect();
    let fixed = Constraint::Length;
    let columns: [Column<Beside>; 10] = [
        Column::right("NODE", 4, 0, |it, _| Span::raw(it.0.node.to_string())),
        Column::new("STATE", fixed(8), 0, |it, _| Span::styled(plain(&it.0.state), state_style(it.0))),
        Column::new("ROLE", fixed(5), 58, |it, _| Span::styled(cells::role(it.0), role_style(it.0))),
        Column::right("CLIENTS", 7, 67, |it, _| Span::raw(cells::count(it.0.connections))),
        Column::right("IN USE", 6, 90, |it, _| Span::raw(cells::count(it.0.used_names))),
        Column::right("GRANTS/S", 9, 0, |it, _| Span::raw(cells::rate(it.0.grants_per_second))),
        Column::right("AT ONCE", 7, 50, |it, _| Span::raw(cells::percent(it.0.at_once))),
        Column::right("HAND-OVERS/S", 12, 41, |it, _| Span::raw(cells::rate(it.0.handovers_per_second))),
        Column::new("ADDRESS", fixed(21), 110, |it, width| Span::styled(fit(&plain(&it.0.address), width), QUIET)),
        Column::new("", Constraint::Fill(1), 0, |it, width| {
            Span::styled(cells::trend(&it.0.trend, it.1, width.into()), TREND)
        }),
    ];
    let block = rule(words);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    table(frame, inside, (&columns, None), &rows, &mut TableState::new());
}

fn state_style(node: &Node) -> Style {
    match node.state.as_str() {
        "ready" => GOOD,
        "silent" | "stopped" => BAD,
        _ => HEED,
    }
}

fn role_style(node: &Node) -> Style {
    if node.leads { STRONG } else { QUIET }
}

pub(super) fn names(frame: &mut Frame, area: Rect, state: &mut State) {
    let names = state.names();
    let mut words = vec![Span::styled("names", STRONG)];
    if !state.filter.is_empty() {
        words.extend([Span::raw(" that begin with "), Span::styled(plain(&state.filter), HEED)]);
    }
    if state.picture.more {
        words.push(Span::raw(": not all that are in use, / asks for some"));
    }
    let block = rule(words);
    let inside = block.inner(area);
    frame.render_widget(block, area);
    if names.is_empty() && !state.picture.state.is_empty() {
        let nothing = Line::styled(" none is held, waited for, or busy", QUIET);
        frame.render_widget(Paragraph::new(nothing), inside);
        return;
    }
    let fill = Constraint::Fill;
    let columns: [Column<&Name>; 6] = [
        Column::new("NAME", fill(3), 0, |name, width| Span::raw(fit(&plain(&name.name), width))),
        Column::new("KIND", Constraint::Length(10), 90, |name, width| Span::styled(kind(name, width), QUIET)),
        Column::right("GRANTS/S", 9, 30, |name, _| Span::raw(cells::rate(name.grants_per_second))),
        Column::right("WAITING", 8, 0, |name, _| waiting(name)),
        Column::right("LONGEST", 8, 40, |name, _| longest(name)),
        Column::new("HELD BY", fill(4), 56, |name, width| holder(name, width)),
    ];
    let sorted = match state.sort {
        Sort::Name => 0,
        Sort::Grants => 2,
        Sort::Waiting => 3,
        Sort::LongestWait => 4,
    };
    let mut place = state.table;
    table(frame, inside, (&columns, Some(sorted)), &names, &mut place);
    state.table = place;
}

/// A semaphore is one, of however many units, where there is no room for more.
fn kind(name: &Name, width: u16) -> String {
    fit(cells::kind(name).split(' ').next().unwrap_or_default(), width)
}

fn waiting(name: &Name) -> Span<'static> {
    let style = if name.waiters > Some(0) { HEED } else { QUIET };
    Span::styled(cells::waiters(name), style)
}

fn longest(name: &Name) -> Span<'static> {
    let style = match name.longest_wait_ms {
        Some(LONG_WAIT_MS..) => BAD,
        Some(_) => Style::new(),
        None => QUIET,
    };
    Span::styled(cells::longest_wait(name), style)
}

fn holder(name: &Name, width: u16) -> Span<'static> {
    let (first, more) = cells::holder(name, cells::short);
    let room = width.saturating_sub(u16::try_from(more.len()).unwrap_or(width));
    let is_known = name.holders.as_ref().is_some_and(|holders| !holders.is_empty());
    Span::styled(fit(&first, room) + &more, if is_known { Style::new() } else { QUIET })
}

/// Rows below a heading; one column may be marked as that by which they are sorted.
fn table<T>(
    frame: &mut Frame,
    area: Rect,
    (columns, sorted): (&[Column<T>], Option<usize>),
    rows: &[T],
    state: &mut TableState,
) {
    let shown: Vec<(usize, &Column<T>)> =
        columns.iter().enumerate().filter(|(_, column)| area.width >= column.from).collect();
    let wanted = shown.iter().map(|(_, column)| column.width);
    // The mark of what is chosen comes before all columns, and nothing after.
    let inside = Rect { width: area.width.saturating_sub(2), ..area };
    let widths: Vec<u16> =
        Layout::horizontal(wanted).spacing(GAP).split(inside).iter().map(|column| column.width).collect();
    let heading = shown.iter().map(|(at, column)| {
        let is_sorted = sorted == Some(*at);
        let text = match column.align {
            Alignment::Right if is_sorted => format!("▾{}", column.heading),
            _ if is_sorted => format!("{}▾", column.heading),
            _ => column.heading.to_owned(),
        };
        Line::styled(text, if is_sorted { STRONG } else { QUIET }).alignment(column.align)
    });
    let cells = |row: &T| {
        let cell = |((_, column), width): (&(usize, &Column<T>), &u16)| {
            Line::from((column.cell)(row, *width)).alignment(column.align)
        };
        Row::new(shown.iter().zip(&widths).map(cell))
    };
    let table = Table::new(rows.iter().map(cells), widths.iter().copied().map(Constraint::Length))
        .header(Row::new(heading))
        .column_spacing(GAP)
        .highlight_symbol("▸")
        .highlight_spacing(HighlightSpacing::Always)
        .row_highlight_style(Style::new().add_modifier(Modifier::REVERSED));
    frame.render_stateful_widget(table, area, state);
}
