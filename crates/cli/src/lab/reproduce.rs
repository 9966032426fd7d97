//! `vez lab reproduce`

use std::{collections::BTreeMap, path::PathBuf, process::ExitCode};

use anyhow::{Context, Result, anyhow};
use serde_json::json;
use vez_lab::{
    experiments,
    meant::nearest,
    study::{Heading, Study, sweep::Options},
};

use super::report;
use crate::output::{print, progress};

/// Run the experiments of the papers, and judge what they claim.
#[derive(clap::Args)]
#[command(after_help = "Examples:
  vez lab reproduce                            # the names of all experiments
  vez lab reproduce all --quick                # less than a minute on two cores
  vez lab reproduce nxr-wait --out wait        # one of them, in full
  vez lab reproduce all --json > report.json

The report is a directory: index.html, which opens without a server, the plots as SVG, and the data as CSV, a row for each run.
What a claim comes down to is a rule in the file of the experiment, under experiments/.

Exit code: 0 judged, whatever the verdicts; 1 a law was broken in a simulation, or nothing moved any more; 2 could not run.")]
pub(crate) struct Args {
    /// Which ones, or all. Without any, their names are listed.
    experiments: Vec<String>,
    /// Where the report goes: a directory, which is made if need be. Files of the same name are replaced.
    #[arg(long, value_name = "DIRECTORY", default_value = "report")]
    out: PathBuf,
    /// Simulate less. What is not random stays as it is.
    #[arg(long)]
    quick: bool,
    /// Where all randomness comes from.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON object: experiments, each with its name, claims and series.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        if self.experiments.is_empty() {
            return list(self.json);
        }
        let options = Options { quick: self.quick, seed: Some(self.seed) };
        let mut work = Vec::new();
        for name in self.names()? {
            let study = study(name)?;
            let prepared = study.prepare(name, options).with_context(|| name.to_owned())?;
            work.push((name, study, prepared));
        }
        let none = BTreeMap::new();
        let bar = progress(work.iter().map(|(.., prepared)| prepared.work.entries(&none)).sum(), "entries");
        let mut all = Vec::new();
        for (name, study, prepared) in work {
            bar.set_message(name);
            let table = prepared.work.run(&none, &|_| Ok(()), &|entries| bar.inc(entries))?;
            all.push(study.find(name, prepared, table).with_context(|| name.to_owned())?);
        }
        bar.finish_and_clear();
        let made_by = format!(
            "Made by vez {} lab reproduce{}, seed {}. ± is a 95 % interval over independent runs.",
            env!("CARGO_PKG_VERSION"),
            if self.quick { " --quick" } else { "" },
            self.seed,
        );
        let heading = Heading { title: "What the papers claim, and what came out", made_by: &made_by };
        report::conclude(&self.out, &heading, &all, self.json)
    }

    /// Those that were asked for, each once, in the order of the papers.
    fn names(&self) -> Result<Vec<&'static str>> {
        let known = experiments::names();
        if let Some(name) = self.experiments.iter().find(|name| *name != "all" && !known.contains(&name.as_str())) {
            return Err(match nearest(name, known.iter().copied()) {
                Some(nearest) => anyhow!("unknown experiment \"{name}\"; did you mean {nearest}?"),
                None => anyhow!("unknown experiment \"{name}\"; there are all, {}", known.join(", ")),
            });
        }
        let wanted = |name: &&str| self.experiments.iter().any(|wanted| wanted == "all" || wanted == *name);
        Ok(known.into_iter().filter(wanted).collect())
    }
}

fn study(name: &str) -> Result<Study> {
    experiments::find(name).expect("it is listed").with_context(|| name.to_owned())
}

fn list(json: bool) -> Result<ExitCode> {
    let all = experiments::names().into_iter().map(|name| Ok((name, study(name)?))).collect::<Result<Vec<_>>>()?;
    if json {
        let list = all.iter().map(|(name, study)| json!({ "name": name, "title": study.title, "of": study.of }));
        let object = json!({ "experiments": list.collect::<Vec<_>>() });
        return print(&format!("{object:#}\n")).map(|()| ExitCode::SUCCESS);
    }
    let mut text = String::new();
    for (name, study) in all {
        text += &format!("{name:28}  {}\n{:28}  {}\n", study.title, "", study.of);
    }
    print(&(text + "\nvez lab reproduce NAME… runs some of them, vez lab reproduce all runs all; see --help.\n"))?;
    Ok(ExitCode::SUCCESS)
}
