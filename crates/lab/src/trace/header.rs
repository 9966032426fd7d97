//! The first line of a trace: the system, so that it can be set up again.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use vez_algorithms::NodeId;

use crate::{meant, named::Detector, system::System, wanted::word_if_any};

/// The format that is written and read.
pub const FORMAT: &str = "vez-trace-1";

/// No algorithm waits longer than this, and a few times as long can still be added up.
const LONGEST: Duration = Duration::from_secs(1_000_000_000);

/// The first line of a trace. Its fields stand in the order in which they are written.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Header {
    /// When the trace begins: 0.
    pub time: f64,
    /// At no node.
    pub node: Option<NodeId>,
    /// What kind of line it is: `system`.
    pub kind: String,
    /// [`FORMAT`].
    pub format: String,
    /// The name of the algorithm.
    pub algorithm: String,
    /// The nodes, but for those that some algorithms add, and what they know from the start. Nobody has asked yet whether there
    /// can be such a system.
    #[serde(flatten)]
    system: System,
    /// Who tells of crashes; nobody if the algorithm need not be told.
    #[serde(default, deserialize_with = "word_if_any", skip_serializing_if = "Option::is_none")]
    pub detector: Option<Detector>,
    /// Whatever else the driver has to say about its world, `driver` first.
    #[serde(flatten)]
    pub extra: Map<String, Value>,
    /// What a random tree, and the places of the nodes, were drawn from.
    pub seed: u64,
    /// Which run of that seed.
    pub run: u64,
}

/// Why the first line of a trace makes no system.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum HeaderError {
    /// It is something else, or it breaks off.
    #[error("no header, and so no trace; its first line is of kind \"system\", as vez lab trace writes it")]
    NoHeader,
    /// Another format.
    #[error("the format is \"{0}\", which is unknown here; there is {FORMAT}")]
    Format(String),
    /// A field is missing, or is not what it should be.
    #[error("the header makes no sense: {0}; see docs/trace.md")]
    Field(String),
    /// There is no such algorithm.
    #[error(transparent)]
    Algorithm(#[from] meant::UnknownAlgorithm),
    /// There can be no such system.
    #[error("the header makes no system: {0}")]
    System(String),
}

impl Header {
    /// The header of a run on this system.
    #[must_use]
    pub fn new(
        algorithm: &str,
        system: &System,
        (seed, run): (u64, u64),
        detector: Option<Detector>,
        extra: Map<String, Value>,
    ) -> Self {
        Self {
            time: 0.0,
            node: None,
            kind: "system".to_owned(),
            format: FORMAT.to_owned(),
            algorithm: algorithm.to_owned(),
            system: system.clone(),
            detector,
            extra,
            seed,
            run,
        }
    }

    /// Reads the first line of a trace.
    ///
    /// # Errors
    /// If it is no header, or one of another format, or a field is missing.
    pub fn read(line: &str) -> Result<Self, HeaderError> {
        let value: Value = serde_json::from_str(line).map_err(|_| HeaderError::NoHeader)?;
        if value["kind"] != "system" {
            return Err(HeaderError::NoHeader);
        }
        match value["format"].as_str() {
            Some(FORMAT) => {}
            Some(other) => return Err(HeaderError::Format(other.to_owned())),
            None => return Err(HeaderError::Field("missing field `format`".to_owned())),
        }
        serde_json::from_value(value).map_err(|error| HeaderError::Field(error.to_string()))
    }

    /// The system, to be set up with the seed and the run of this header.
    ///
    /// # Errors
    /// If it is of another format, the algorithm is unknown, or there can be no such system.
    pub fn system(&self) -> Result<&System, HeaderError> {
        let entry = meant::find(&self.algorithm)?;
        if entry.assumptions.detector && self.detector.is_none() {
            let what = format!("{} must be told of crashes, and no detector is named", entry.name);
            return Err(HeaderError::System(format!("{what}; there are hi-adsd and oracle")));
        }
        let system = self.arrangement()?;
        system.setup(self.seed, self.run).map_err(|error| HeaderError::System(error.to_string()))?;
        Ok(system)
    }

    /// The same for an algorithm that is perhaps not in the catalog.
    pub(crate) fn arrangement(&self) -> Result<&System, HeaderError> {
        if self.format != FORMAT {
            return Err(HeaderError::Format(self.format.clone()));
        }
        let system = &self.system;
        let times = [("retry", system.retry.end), ("patience", system.patience), ("period", system.period)];
        if let Some((name, time)) = times.into_iter().find(|(_, time)| *time > LONGEST) {
            let most = LONGEST.as_secs_f64();
            return Err(HeaderError::System(format!("{name} is {}; take at most {most}", time.as_secs_f64())));
        }
        if system.retry.start > system.retry.end {
            return Err(HeaderError::System("retry ends before it begins; take [from, to]".to_owned()));
        }
        Ok(system)
    }
}
