//! What is known of one name, above the rest.

use ratatui::{
    Frame,
    layout::{Constraint, Flex, Layout},
    text::{Line, Span},
    widgets::{Block, BorderType, Clear, Padding, Paragraph},
};

use super::{
    draw::{QUIET, STRONG, fit},
    state::{Mode, State},
    tell::plain,
};

const WIDEST: u16 = 110;
/// Borders, and room within them.
const FRAME: u16 = 4;
/// What stands before what is said, and below it where a line goes on.
const LABEL: usize = 9;

pub(super) fn draw(frame: &mut Frame, state: &mut State) {
    let Mode::Showing { name, text, above, most } = &mut state.mode else { return };
    let name = plain(name);
    let text = text.as_deref().unwrap_or("asking …");
    let text = text.strip_prefix(&format!("{name}: ")).unwrap_or(text); // That is above it already.
    let area = frame.area();
    let width = area.width.saturating_sub(FRAME).min(WIDEST);
    let inside = width.saturating_sub(FRAME);
    let lines: Vec<Line> = text.lines().flat_map(|line| wrapped(line, usize::from(inside))).map(Line::from).collect();
    let needed = u16::try_from(lines.len()).unwrap_or(u16::MAX);
    *most = needed.max(*most);
    let height = most.saturating_add(2).min(area.height.saturating_sub(2));
    *above = (*above).min(needed.saturating_sub(height.saturating_sub(2)));
    let [area] = Layout::horizontal([Constraint::Length(width)]).flex(Flex::Center).areas(area);
    let [area] = Layout::vertical([Constraint::Length(height)]).flex(Flex::Center).areas(area);
    let title = Line::styled(format!(" {} ", fit(&name, inside)), STRONG);
    let block = Block::bordered().border_type(BorderType::Rounded).border_style(QUIET);
    let block = block.title(title).padding(Padding::horizontal(1));
    frame.render_widget(Clear, area);
    frame.render_widget(Paragraph::new(lines).scroll((*above, 0)).block(block), area);
}

/// A line as some that are not wider: it goes on below what is said, and not below its label.
fn wrapped(line: &str, width: usize) -> Vec<String> {
    let wide = |text: &str| Span::raw(text).width();
    let indent = if width > 3 * LABEL { " ".repeat(LABEL) } else { String::new() };
    let mut lines = Vec::new();
    let mut last = String::new();
    for word in line.split_inclusive(' ') {
        if wide(last.trim_end()) > 0 && wide(&last) + wide(word.trim_end()) > width {
            lines.push(std::mem::replace(&mut last, indent.clone()));
        }
        for letter in word.chars() {
            last.push(letter);
            // No word is broken but one that is wider than all the room.
            if wide(last.trim_end()) > width {
                last.pop();
                lines.push(std::mem::replace(&mut last, indent.clone() + &letter.to_string()));
            }
        }
    }
    lines.push(last);
    lines
}
