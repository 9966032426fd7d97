//! What is on the screen, and what keys do with it.

use std::cmp::Reverse;

use ratatui::{
    crossterm::event::{KeyCode, KeyEvent, KeyModifiers},
    widgets::TableState,
};

use super::picture::{Name, Picture};

/// No name is longer.
const LONGEST_FILTER: usize = 255;
const PAGE: isize = 10;

/// How names are sorted.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Sort {
    /// Those that most wait for, and among them the busiest.
    #[default]
    Waiting,
    /// Those that are granted most.
    Grants,
    /// Those with the longest wait.
    LongestWait,
    /// By name.
    Name,
}

/// What keys are for.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
pub enum Mode {
    /// Choosing a name.
    #[default]
    Choosing,
    /// Typing how names begin; what was typed before.
    Typing(String),
    /// Looking at one name.
    Showing {
        /// Which one.
        name: String,
        /// What is known of it, once it was told.
        text: Option<String>,
        /// Lines that are above what is seen.
        above: u16,
        /// The most lines that there were: what shrinks and grows all the time cannot be read.
        most: u16,
    },
}

/// What somebody who pressed a key wants done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Wish {
    /// Nothing.
    Nothing,
    /// All is to be asked for now.
    Ask,
    /// The name that is looked at is to be asked for now.
    Show,
    /// The program is to end.
    Quit,
}

/// What is on the screen.
#[derive(Default)]
pub struct State {
    /// The latest picture.
    pub picture: Picture,
    /// When it was told, as people read it.
    pub time: String,
    /// Why there is no newer one.
    pub trouble: Option<String>,
    /// How names are sorted.
    pub sort: Sort,
    /// Only names with this prefix are shown.
    pub filter: String,
    /// What keys are for.
    pub mode: Mode,
    /// Whether no new pictures are taken.
    pub paused: bool,
    /// The name that is chosen. It stays so wherever it goes.
    pub chosen: Option<String>,
    /// Where the table begins, and the row that is chosen.
    pub table: TableState,
}

impl Sort {
    fn next(self) -> Self {
        match self {
            Self::Waiting => Self::Grants,
            Self::Grants => Self::LongestWait,
            Self::LongestWait => Self::Name,
            Self::Name => Self::Waiting,
        }
    }

    /// Sorts names. What they are sorted by is the same for many at most moments: the rest keeps them from jumping.
    pub fn sort(self, names: &mut [&Name]) {
        let thousandths = |name: &Name| (name.grants_per_second.unwrap_or(0.0) * 1e3) as u64;
        let pressure = |name: &Name| (name.pressure * 4.0) as u64;
        let wait = |name: &Name| name.longest_wait_ms.unwrap_or(0);
        names.sort_by_cached_key(|name| {
            let (waiters, rate, wait) = (pressure(name), thousandths(name), wait(name));
            let keys = match self {
                Self::Waiting => [waiters, rate, wait],
                Self::Grants => [rate, waiters, wait],
                Self::LongestWait => [wait, waiters, rate],
                Self::Name => [0, 0, 0],
            };
            let held = if self == Self::Name { 0 } else { name.held_ms().unwrap_or(0) };
            (Reverse(keys), Reverse(held), name.name.clone())
        });
    }
}

impl State {
    /// Nothing yet, with a filter that was given on the command line.
    pub fn new(filter: String) -> Self {
        Self { filter, ..Self::default() }
    }

    /// The names that are wanted, in order.
    pub fn names(&self) -> Vec<&Name> {
        let mut names: Vec<&Name> =
            self.picture.names.iter().filter(|name| name.name.starts_with(&self.filter)).collect();
        self.sort.sort(&mut names);
        names
    }

    /// A newer picture.
    pub fn see(&mut self, mut picture: Picture, time: String) {
        picture.steady(std::mem::take(&mut self.picture));
        (self.picture, self.time, self.trouble) = (picture, time, None);
        self.follow();
    }

    /// What is known of the name that is looked at, or was until now.
    pub fn shown(&mut self, of: &str, told: String) {
        if let Mode::Showing { name, text, .. } = &mut self.mode
            && name == of
        {
            *text = Some(told);
        }
    }

    /// A key was pressed.
    pub fn key(&mut self, key: KeyEvent) -> Wish {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        if control && key.code == KeyCode::Char('c') {
            return Wish::Quit;
        }
        let wish = match &self.mode {
            Mode::Choosing => self.choose(key.code),
            Mode::Typing(before) => self.type_in(key.code, control, before.clone()),
            Mode::Showing { .. } => self.look(key.code),
        };
        self.follow();
        wish
    }

    fn choose(&mut self, key: KeyCode) -> Wish {
        match key {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc if self.filter.is_empty() => return Wish::Quit,
            KeyCode::Esc => {
                self.filter.clear();
                return Wish::Ask;
            }
            KeyCode::Up | KeyCode::Char('k') => self.step(-1),
            KeyCode::Down | KeyCode::Char('j') => self.step(1),
            KeyCode::PageUp => self.step(-PAGE),
            KeyCode::PageDown => self.step(PAGE),
            KeyCode::Home | KeyCode::Char('g') => self.step(isize::MIN),
            KeyCode::End | KeyCode::Char('G') => self.step(isize::MAX),
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('/') => self.mode = Mode::Typing(self.filter.clone()),
            KeyCode::Char('p' | ' ') => {
                self.paused = !self.paused;
                return if self.paused { Wish::Nothing } else { Wish::Ask };
            }
            KeyCode::Enter => {
                let Some(name) = self.chosen.clone() else { return Wish::Nothing };
                self.mode = Mode::Showing { name, text: None, above: 0, most: 0 };
                return Wish::Show;
            }
            _ => {}
        }
        Wish::Nothing
    }

    fn type_in(&mut self, key: KeyCode, control: bool, before: String) -> Wish {
        match key {
            KeyCode::Enter => {
                self.mode = Mode::Choosing;
                return Wish::Ask;
            }
            KeyCode::Esc => {
                (self.filter, self.mode) = (before, Mode::Choosing);
                return Wish::Ask;
            }
            KeyCode::Backspace => {
                self.filter.pop();
            }
            KeyCode::Char('u') if control => self.filter.clear(),
            KeyCode::Char(letter) if !control && self.filter.len() + letter.len_utf8() <= LONGEST_FILTER => {
                self.filter.push(letter);
            }
            _ => {}
        }
        Wish::Nothing
    }

    fn look(&mut self, key: KeyCode) -> Wish {
        let Mode::Showing { above, .. } = &mut self.mode else { return Wish::Nothing };
        match key {
            KeyCode::Char('q') => return Wish::Quit,
            KeyCode::Esc | KeyCode::Enter => self.mode = Mode::Choosing,
            KeyCode::Up | KeyCode::Char('k') => *above = above.saturating_sub(1),
            KeyCode::Down | KeyCode::Char('j') => *above = above.saturating_add(1),
            _ => {}
        }
        Wish::Nothing
    }

    /// Chooses a name so many rows further down. Before anything was chosen, that is the first.
    fn step(&mut self, rows: isize) {
        let names: Vec<String> = self.names().into_iter().map(|name| name.name.clone()).collect();
        let at = self.chosen.as_ref().and_then(|chosen| names.iter().position(|name| name == chosen));
        let next = at.map_or(0, |at| at.saturating_add_signed(rows)).min(names.len().saturating_sub(1));
        self.chosen = names.get(next).cloned();
    }

    /// Finds the row of the name that is chosen. One that is gone leaves its row to the name that is there now.
    fn follow(&mut self) {
        let Some(chosen) = &self.chosen else { return };
        let names = self.names();
        let row = names.iter().position(|name| name.name == *chosen);
        if let Mode::Typing(_) = self.mode {
            self.table.select(row); // Nothing is gone that another letter may bring back.
            return;
        }
        let row = row.or_else(|| Some(self.table.selected()?.min(names.len().checked_sub(1)?)));
        let chosen = row.and_then(|row| names.get(row)).map(|name| name.name.clone());
        self.table.select(row);
        self.chosen = chosen;
    }
}
