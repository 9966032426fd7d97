//! Studies: what is to be measured, plotted and judged, as data. An experiment of a paper is one, and so is a user's sweep.
//!
//! A study is a TOML file; `docs/studies.md` describes it. What it measures goes into tables; plots and claims are about the
//! tables and nothing else, so that a verdict can only come from what was measured.

mod chart;
pub mod claim;
mod clusters;
pub mod expression;
mod lines;
mod page;
pub mod point;
mod question;
pub mod reader;
mod risks;
mod scenes;
pub mod sweep;
pub mod table;

use serde::Deserialize;

pub use self::{
    chart::Chart,
    page::{Heading, page},
    sweep::Work,
};
use self::{
    claim::{Claim, Judged},
    sweep::Options,
    table::{Row, Table},
};

/// A study, as it stands in its file.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Study {
    /// Where it stands among others.
    #[serde(default)]
    pub place: u32,
    /// What it is about, in a line.
    pub title: String,
    /// What it reproduces: a paper, and which of its figures.
    #[serde(default)]
    pub of: String,
    /// The setting, as the paper states it.
    #[serde(default)]
    pub setting: String,
    /// What the paper does not state, what we took, and what is different otherwise.
    #[serde(default)]
    pub assumed: Vec<String>,
    /// Where all randomness comes from, unless the command line says so.
    pub seed: Option<u64>,
    /// Grids of simulations.
    #[serde(default, rename = "sweep")]
    pub sweeps: Vec<toml::Table>,
    /// Single runs.
    #[serde(default, rename = "scene")]
    scenes: Vec<scenes::SceneFile>,
    /// Votes that may be forgotten.
    #[serde(default, rename = "risk")]
    risks: Vec<risks::RiskFile>,
    /// Hypercubes, and the clusters that nodes see in them.
    #[serde(default, rename = "clusters")]
    clusters: Vec<clusters::ClustersFile>,
    /// What is drawn.
    #[serde(default, rename = "plot")]
    pub charts: Vec<Chart>,
    /// What is claimed.
    #[serde(default, rename = "claim")]
    pub claims: Vec<Claim>,
}

/// A mistake in a study.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    /// It cannot be read.
    #[error("{0}")]
    Toml(String),
    /// A sweep that cannot be run.
    #[error("sweep {number}: {what}")]
    Sweep {
        /// Which one, from 1.
        number: usize,
        /// What is wrong.
        what: String,
    },
    /// A scene that cannot be played.
    #[error("the scene \"{scene}\": {what}")]
    Scene {
        /// Its name.
        scene: String,
        /// What is wrong.
        what: String,
    },
    /// A risk that cannot be computed, or a hypercube that cannot be drawn.
    #[error("{0}")]
    Formula(String),
    /// A seed that cannot be written down.
    #[error("the seed {0} is too large; take one up to {MAX_SEED}")]
    Seed(u64),
    /// A claim that cannot be judged.
    #[error("the claim \"{claim}\": {what}")]
    Claim {
        /// Its text.
        claim: String,
        /// What is wrong.
        what: String,
    },
    /// A plot that cannot be drawn.
    #[error("the plot \"{plot}\": {what}")]
    Chart {
        /// Its title.
        plot: String,
        /// What is wrong.
        what: String,
    },
}

/// A study that was run: what the page shows of it.
#[derive(Clone, Debug)]
pub struct Findings {
    /// What it is called.
    pub name: String,
    /// What was run.
    pub study: Study,
    /// What was measured.
    pub tables: Vec<Table>,
    /// What was drawn.
    pub figures: Vec<Figure>,
    /// What was played, in words, with titles.
    pub texts: Vec<(String, String)>,
    /// What became of the claims.
    pub claims: Vec<Judged>,
}

impl Findings {
    /// The simulations that went wrong: which, and how.
    pub fn failures(&self) -> impl Iterator<Item = (String, String)> + '_ {
        let key = |table: &Table, row: &Row| {
            let columns = table.keys.iter().map(String::as_str).chain([table::RUN]);
            let told = columns.filter(|column| *row.get(column) != table::Value::Missing);
            told.map(|column| format!("{column} {}", row.get(column))).collect::<Vec<_>>().join(", ")
        };
        self.tables.iter().flat_map(move |table| {
            let failed = table.rows.iter().filter(|row| row.0.contains_key(table::FAILURE));
            failed.map(move |row| (key(table, row), row.get(table::FAILURE).to_string()))
        })
    }
}

/// A picture.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// The name of its file, without an ending.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// The picture.
    pub svg: String,
    /// The lines in it, if it is a plot.
    pub series: Vec<crate::plot::Series>,
}

impl Study {
    /// Reads a study.
    ///
    /// # Errors
    /// If it is none.
    pub fn parse(text: &str) -> Result<Self, StudyError> {
        toml::from_str(text).map_err(|error| StudyError::Toml(error.to_string().trim_end().to_owned()))
    }

    /// What there is to simulate. Everything else is done here, and looked through for mistakes: afterwards may be hours later.
    ///
    /// # Errors
    /// If there is a mistake in the study.
    pub fn prepare(&self, name: &str, options: Options) -> Result<Prepared, StudyError> {
        let seed = options.seed.or(self.seed).unwrap_or(1);
        if seed > MAX_SEED {
            return Err(StudyError::Seed(seed));
        }
        let (mut work, mut otherwise) = (Work::new(), Work::new());
        for (number, sweep) in (1..).zip(&self.sweeps) {
            let wrong = |what: String| StudyError::Sweep { number, what };
            work.add(sweep, options.quick, seed).map_err(wrong)?;
            otherwise.add(sweep, !options.quick, seed).map_err(wrong)?;
        }
        let scenes::Staged { mut tables, mut figures, texts } = scenes::play(name, &self.scenes, seed)?;
        let (clusters, cubes) = clusters::all(name, &self.clusters)?;
        figures.splice(0..0, cubes);
        tables.extend([clusters, risks::all(&self.risks)?]);
        tables.retain(|table| !table.rows.is_empty());
        let prepared = Prepared { work, tables, figures, texts };
        if !prepared.work.is_empty() {
            self.clone().find(name, prepared.clone(), prepared.work.foreseen())?;
        }
        Ok(prepared)
    }

    /// Draws and judges what was measured.
    ///
    /// # Errors
    /// If a plot or a claim does not fit the tables.
    pub fn find(self, name: &str, prepared: Prepared, swept: Table) -> Result<Findings, StudyError> {
        let Prepared { tables, mut figures, texts, .. } = prepared;
        let tables: Vec<Table> = [swept].into_iter().filter(|table| !table.rows.is_empty()).chain(tables).collect();
        for chart in &self.charts {
            figures.extend(chart.draw(name, figures.len(), &tables)?);
        }
        let claims = self.claims.iter().map(|claim| claim.judge(&tables)).collect::<Result<_, _>>()?;
        Ok(Findings { name: name.to_owned(), study: self, tables, figures, texts, claims })
    }
}

/// A larger seed is not written down exactly, as a number of a table.
pub const MAX_SEED: u64 = 1 << 53;

/// A study that can be run, and all of it that is not random, which is done.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// What there is to simulate.
    pub work: Work,
    /// Tables of what is not random.
    pub tables: Vec<Table>,
    /// Drawings.
    pub figures: Vec<Figure>,
    texts: Vec<(String, String)>,
}

/// The table of that name, or the first.
fn find<'t>(tables: &'t [Table], name: Option<&str>) -> Option<&'t Table> {
    tables.iter().find(|table| name.is_none_or(|name| name == table.name))
}
