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
mod risks;
mod scenes;
pub mod sweep;
pub mod table;

use serde::Deserialize;

pub use self::{
    chart::Chart,
    page::{Heading, page},
    sweep::{Unit, Work},
};
use self::{
    claim::{Claim, Judged},
    sweep::Options,
    table::Table,
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
    #[error("{}", .0.to_string().trim_end())]
    Toml(#[from] toml::de::Error),
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
    /// A risk that cannot be computed.
    #[error("risk: {0}")]
    Risk(#[from] crate::risk::RiskError),
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
        Ok(toml::from_str(text)?)
    }

    /// Draws and judges what was measured.
    ///
    /// # Errors
    /// If a plot or a claim does not fit the tables.
    pub fn find(self, name: &str, swept: Table, options: Options) -> Result<Findings, StudyError> {
        let seed = options.seed.or(self.seed).unwrap_or(1);
        let scenes::Staged { tables: staged, mut figures, texts } = scenes::play(name, &self.scenes, seed)?;
        let (clusters, cubes) = clusters::all(name, &self.clusters);
        figures.splice(0..0, cubes);
        let tables = [swept].into_iter().chain(staged).chain([clusters, risks::all(&self.risks)?]);
        let tables: Vec<Table> = tables.filter(|table| !table.rows.is_empty()).collect();
        for chart in &self.charts {
            figures.extend(chart.draw(name, figures.len(), &tables)?);
        }
        let claims = self.claims.iter().map(|claim| claim.judge(&tables)).collect::<Result<_, _>>()?;
        Ok(Findings { name: name.to_owned(), study: self, tables, figures, texts, claims })
    }
}
