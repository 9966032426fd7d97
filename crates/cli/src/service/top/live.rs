//! The screen, until somebody has seen enough.

use std::{
    future::{Future, pending},
    pin::Pin,
    thread,
    time::{Duration, SystemTime},
};

use anyhow::{Context, Result};
use ratatui::{
    DefaultTerminal,
    crossterm::event::{self, Event, KeyEventKind},
};
use tokio::{
    sync::mpsc::{Receiver, channel},
    time::{Instant, sleep_until},
};

use super::{
    Stop,
    ask::Asker,
    draw,
    picture::{Answers, Watch},
    state::{Mode, State, Wish},
};

/// So many keys wait to be heeded.
const MOST_KEYS: usize = 64;
/// Who does not answer for so long is said to be silent; it may still answer.
const LATE: Duration = Duration::from_secs(2);

type Asked<'a, T> = Option<Pin<Box<dyn Future<Output = T> + 'a>>>;

/// A terminal that is as it was before when this ends, also by a panic.
struct Screen(DefaultTerminal);

/// What goes on while somebody looks.
struct Live<'a> {
    asker: &'a Asker<'a>,
    interval: Duration,
    state: State,
    watch: Watch,
    /// All that is being asked for.
    asked: Asked<'a, Result<Answers>>,
    since: Instant,
    /// Whether it was said that nobody has answered yet.
    is_late: bool,
    /// A name that is being asked for, and what is known of it.
    showing: Asked<'a, (String, String)>,
    next: Instant,
}

/// Shows what is going on until it is told to stop.
pub(super) async fn run(asker: &Asker<'_>, interval: Duration, prefix: String) -> Result<()> {
    let mut stop = Stop::new()?;
    let mut screen = Screen::new()?;
    let mut events = events()?;
    let now = Instant::now();
    let (state, watch) = (State::new(prefix), Watch::default());
    let mut live =
        Live { asker, interval, state, watch, asked: None, since: now, is_late: false, showing: None, next: now };
    loop {
        screen.0.draw(|frame| draw::draw(frame, &mut live.state)).context("cannot draw")?;
        tokio::select! {
            () = stop.told() => return Ok(()),
            event = events.recv() => match event.context("the terminal is gone")?? {
                Event::Key(key) if key.kind != KeyEventKind::Release => match live.state.key(key) {
                    Wish::Quit => return Ok(()),
                    wish => live.grant(wish),
                },
                _ => {} // Whatever it is, all is drawn anew.
            },
            answers = or_never(&mut live.asked) => live.told(answers),
            shown = or_never(&mut live.showing) => {
                live.showing = None;
                live.state.shown(&shown.0, shown.1);
            }
            () = sleep_until(live.next) => live.go_on(),
        }
    }
}

impl Live<'_> {
    fn grant(&mut self, wish: Wish) {
        match wish {
            Wish::Ask => self.next = Instant::now(),
            Wish::Show => self.show(),
            Wish::Nothing | Wish::Quit => {}
        }
    }

    /// It is time to ask again, or to wonder why nobody has answered.
    fn go_on(&mut self) {
        let now = Instant::now();
        self.next = now + self.interval.min(LATE);
        if self.asked.is_some() {
            // Why the last question failed says more, and stays.
            if now - self.since >= LATE && (self.is_late || self.state.trouble.is_none()) {
                self.is_late = true;
                let late = humantime::format_duration(Duration::from_secs((now - self.since).as_secs()));
                self.state.trouble = Some(format!("no answer for {late}; {}", self.stale()));
            }
        } else if !self.state.paused {
            self.since = now;
            let (asker, prefix) = (self.asker, self.state.filter.clone());
            self.asked = Some(Box::pin(async move { asker.ask(&prefix).await }));
            self.show();
        }
    }

    fn told(&mut self, answers: Result<Answers>) {
        (self.asked, self.is_late) = (None, false);
        self.next = self.since + self.interval;
        match answers {
            Ok(_) if self.state.paused => {} // Whoever paused wants to read what was there.
            Ok(answers) => {
                let picture = self.watch.look(&answers);
                self.state.see(picture, time());
            }
            Err(error) => self.state.trouble = Some(format!("{error:#}; {}", self.stale())),
        }
    }

    /// What is said of a picture that is not new.
    fn stale(&self) -> String {
        if self.state.time.is_empty() {
            "trying again".into()
        } else {
            format!("this is of {}; trying again", self.state.time)
        }
    }

    /// Asks for the name that is looked at, if one is.
    fn show(&mut self) {
        if let Mode::Showing { name, .. } = &self.state.mode {
            let (asker, name) = (self.asker, name.clone());
            self.showing = Some(Box::pin(async move {
                let text = asker.show(&name).await;
                (name, text)
            }));
        }
    }
}

impl Screen {
    fn new() -> Result<Self> {
        let terminal = ratatui::try_init().inspect_err(|_| ratatui::restore());
        Ok(Self(terminal.context("cannot use the terminal; say --once for text")?))
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        // A panic has restored it before it said why, and what it said would be written over.
        if !thread::panicking() {
            ratatui::restore();
        }
    }
}

/// Keys, and changes of the size. They are waited for in a thread of its own, which ends with the process.
fn events() -> Result<Receiver<std::io::Result<Event>>> {
    let (tell, events) = channel(MOST_KEYS);
    let read = move || while tell.blocking_send(event::read()).is_ok() {};
    thread::Builder::new().name("vez-keys".into()).spawn(read).context("cannot begin")?;
    Ok(events)
}

async fn or_never<T>(asked: &mut Asked<'_, T>) -> T {
    match asked {
        Some(asked) => asked.await,
        None => pending().await,
    }
}

/// What time it is. Whoever looks at nodes far away has the same as they.
fn time() -> String {
    let now = humantime::format_rfc3339_seconds(SystemTime::now()).to_string();
    now.get(11..19).map_or(now.clone(), |time| format!("{time} UTC"))
}
