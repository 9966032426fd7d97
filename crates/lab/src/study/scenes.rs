//! Scenes: single runs, of the simulator or on a stage, that are drawn, and about which facts are stated. There is nothing
//! random in them that matters, so they are never made smaller.

use serde::Deserialize;
use vez_algorithms::catalog;

use super::{
    Figure, StudyError,
    lines::{self, Lines},
    table::{Row, Table, Value},
};
use crate::{
    director, draw, experiments, named,
    scene::{How, Scene, What},
    wanted::Wanted,
};

/// Nobody looks at a larger scene.
const MOST_NODES: usize = 256;
const MOST_ENTRIES: u64 = 1000;

/// A scene, as it stands in a file.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) struct SceneFile {
    /// What it is called in tables.
    pub name: String,
    /// What the drawing shows.
    #[serde(default)]
    title: String,
    /// Which algorithm; a transcript has it in its name.
    algorithm: Option<String>,
    /// A script for the stage.
    play: Option<String>,
    /// The same, from `transcripts/`.
    transcript: Option<String>,
    /// Numbers that concern the scene and are not measured: columns of the key.
    #[serde(default)]
    with: indexmap::IndexMap<String, Value>,
    /// What is drawn.
    #[serde(default)]
    draw: Drawing,
    /// For a tree: the kind of messages that it is made of.
    #[serde(default)]
    kind: String,
    /// What nodes are called in the drawing.
    #[serde(default)]
    labels: Vec<String>,
    /// What is written at arrows.
    #[serde(default)]
    words: draw::Words,
    /// How long the intervals are in which messages and entries are counted, if they are.
    interval: Option<f64>,
    /// Whether the page shows the transcript.
    #[serde(default)]
    tell: bool,
    /// What was printed, to be compared line by line.
    lines: Option<Lines>,
    /// Everything that concerns the simulator.
    #[serde(flatten)]
    rest: toml::Table,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Drawing {
    #[default]
    SpaceTime,
    Tree,
    Hypercube,
    Nothing,
}

/// What came of all scenes of a study.
#[derive(Clone, Debug, Default)]
pub(super) struct Staged {
    pub(super) tables: Vec<Table>,
    pub(super) figures: Vec<Figure>,
    /// Transcripts, with their titles.
    pub(super) texts: Vec<(String, String)>,
}

/// Plays them all.
pub(super) fn play(study: &str, scenes: &[SceneFile], seed: u64) -> Result<Staged, StudyError> {
    let mut staged = Staged::default();
    let table = |name: &str, keys: &[&str]| Table {
        name: name.to_owned(),
        keys: keys.iter().map(|key| (*key).to_owned()).collect(),
        rows: Vec::new(),
    };
    let (mut facts, mut timeline) = (table("scenes", &["scene"]), table("timeline", &["scene", "time"]));
    let mut lines = table("lines", &["scene", "node", "line"]);
    for file in scenes {
        let wrong = |what: String| StudyError::Scene { scene: file.name.clone(), what };
        let (scene, transcript) = file.run(seed).map_err(wrong)?;
        for key in file.with.keys() {
            for table in [&mut facts, &mut timeline] {
                if !table.keys.contains(key) {
                    table.keys.push(key.clone());
                }
            }
        }
        facts.rows.push(file.facts(&scene));
        timeline.rows.extend(file.timeline(&scene));
        if let Some(printed) = &file.lines {
            lines.rows.extend(lines::compare(&file.name, &scene, printed));
        }
        let number = staged.figures.len() + 1;
        staged.figures.extend(file.figure(&scene, format!("{study}-scene-{number}")));
        if file.tell {
            staged.texts.extend(transcript.map(|transcript| (file.heading(), transcript)));
        }
    }
    staged.tables = [facts, timeline, lines].into_iter().filter(|table| !table.rows.is_empty()).collect();
    Ok(staged)
}

impl SceneFile {
    fn heading(&self) -> String {
        if self.title.is_empty() { self.name.clone() } else { self.title.clone() }
    }

    /// The run, and its transcript if it was on a stage.
    fn run(&self, seed: u64) -> Result<(Scene, Option<String>), String> {
        if self.interval.is_some_and(|interval| !(1e-6..=1e9).contains(&interval)) {
            return Err("interval is a time above 0, such as 5.0".to_owned());
        }
        let from_path = self.transcript.as_ref().and_then(|path| path.split('/').nth(1));
        let name = self.algorithm.as_deref().or(from_path).ok_or("algorithm is missing; name one")?;
        let entry = catalog::find(name).ok_or_else(|| format!("unknown algorithm \"{name}\"; see vez lab list"))?;
        let script = match (&self.play, &self.transcript) {
            (Some(_), Some(_)) => return Err("take play or transcript, not both".to_owned()),
            (Some(script), None) => Some(script.as_str()),
            (None, Some(path)) => {
                let found = experiments::transcript(path);
                Some(found.ok_or_else(|| format!("there is no transcripts/{path}"))?)
            }
            (None, None) => None,
        };
        if let Some(script) = script {
            if let Some(key) = self.rest.keys().next() {
                return Err(format!("{key} is for the simulator; a script says all itself"));
            }
            // Whoever writes a script here need not say what comes of it.
            let script = if script.contains("---") { script.to_owned() } else { format!("{}\n---\n", script.trim()) };
            let played = director::play(name, &script).expect("it is in the catalog");
            let played = played.map_err(|error| error.to_string())?;
            return Ok((played.scene, Some(played.transcript)));
        }
        if let Some(key) = ["seed", "runs", "warmup", "keep-going"].into_iter().find(|key| self.rest.contains_key(*key))
        {
            return Err(format!("a scene has no {key}: it is one run, from its beginning"));
        }
        let wanted: Wanted =
            self.rest.clone().try_into().map_err(|error: toml::de::Error| error.message().to_owned())?;
        let wanted = Wanted { seed, runs: 1, ..wanted };
        if wanted.script.is_none() && wanted.until.is_none() && wanted.entries.is_none() {
            return Err("a scene is short; give a script, or when it ends: until or entries".to_owned());
        }
        if wanted.nodes > MOST_NODES || wanted.entries.is_some_and(|entries| entries > MOST_ENTRIES) {
            return Err(format!("a scene is small; take at most {MOST_NODES} nodes and {MOST_ENTRIES} entries"));
        }
        let config = wanted.config(entry).map_err(|error| error.to_string())?;
        let scene = named::record(name, wanted.detector, &config, 0).expect("it is in the catalog");
        let scene = scene.map_err(|error| error.to_string())?;
        Ok((Scene { end: wanted.until.unwrap_or(scene.end), ..scene }, None))
    }

    fn row(&self) -> Row {
        let mut row = Row::default();
        row.set("scene", self.name.as_str());
        self.with.iter().for_each(|(column, value)| row.set(column.as_str(), value.clone()));
        row
    }

    fn facts(&self, scene: &Scene) -> Row {
        let mut row = self.row();
        let order = scene.entries().iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
        row.set("order", order);
        scene.facts().into_iter().for_each(|(name, value)| row.set(name, value));
        for (node, told) in scene.last_told() {
            row.set(format!("told.{node}"), told);
        }
        for (node, from) in scene.first_receipts(&self.kind) {
            row.set(format!("learned_from.{node}"), from.to_string());
        }
        row
    }

    /// Entries and messages, interval by interval.
    fn timeline(&self, scene: &Scene) -> Vec<Row> {
        let Some(interval) = self.interval else { return Vec::new() };
        // An interval that is cut short by the end would look as if less happened in it.
        let whole = (scene.end / interval) as usize;
        let mut rows: Vec<Row> = (0..whole.min(10_000))
            .map(|at| {
                let mut row = self.row();
                row.set("time", at as f64 * interval);
                row.set("entries", 0.0);
                row.set("messages", 0.0);
                row
            })
            .collect();
        let mut count = |time: f64, column: &str| {
            if let Some(row) = rows.get_mut((time / interval) as usize) {
                let before = row.get(column).number().unwrap_or(0.0);
                row.set(column, before + 1.0);
            }
        };
        for message in &scene.messages {
            count(message.sent, "messages");
            count(message.sent, &format!("sent.{}", message.kind));
        }
        let entered = scene.happenings.iter().filter(|happening| happening.what == What::Enter);
        entered.for_each(|happening| count(happening.time, "entries"));
        // What came first, for claims about what stays as it was.
        let first: Vec<(String, Value)> = rows.first().map_or(Vec::new(), |row| {
            let counts = row.0.iter().filter(|(column, _)| *column != "time" && !self.row().0.contains_key(*column));
            counts.map(|(column, value)| (format!("first.{column}"), value.clone())).collect()
        });
        for row in &mut rows {
            row.0.extend(first.iter().cloned());
        }
        rows
    }

    fn figure(&self, scene: &Scene, name: String) -> Option<Figure> {
        let title = self.heading();
        let svg = match self.draw {
            Drawing::Nothing => return None,
            Drawing::SpaceTime => draw::space_time(
                scene,
                &draw::Options {
                    title: title.clone(),
                    axis: if self.rest.is_empty() { draw::Axis::Step } else { draw::Axis::Time },
                    words: self.words,
                    labels: self.labels.clone(),
                    ..draw::Options::default()
                },
            ),
            Drawing::Tree => {
                draw::tree(&draw::Tree { title: title.clone(), ..draw::Tree::of_first_receipts(scene, &self.kind) })
            }
            Drawing::Hypercube => {
                let dead = scene.stays().into_iter().filter(|stay| stay.how == How::Dead).map(|stay| stay.node);
                draw::hypercube(&draw::Hypercube {
                    title: title.clone(),
                    dimension: vez_algorithms::hypercube::dimension(scene.nodes),
                    arrows: scene.first_receipts(&self.kind).into_iter().map(|(to, from)| (from, to)).collect(),
                    dead: dead.collect(),
                })?
            }
        };
        Some(Figure { name, title, svg, series: Vec::new() })
    }
}
