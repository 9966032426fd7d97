//! `vez lab replay`

use std::{
    fs::File,
    io::{self, BufReader},
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Result;
use serde_json::{Value, json};
use vez_lab::{
    named,
    replay::{Cause, Summary, Trouble},
};

use crate::output::{counted, print, tell, thousands};

/// Let the algorithm live through a trace once more, and compare.
#[derive(clap::Args)]
#[command(
    after_help = "Every input of a trace, wherever it was written, happens to the algorithm again. The state after it and all that it leads to must be \
what stands in the trace. No timer may fire that was not set, no message arrive that was not sent, and the law must hold. The \
first line at which that is not so is shown, with a few lines before it. See docs/trace.md.

Examples:
  vez lab trace nxr --nodes 7 --arrivals saturated --entries 20 --out nxr.jsonl
  vez lab replay nxr.jsonl
  vez lab replay nxr.jsonl fila.jsonl --json
  vez lab trace fila | vez lab replay -

--json prints an array with an object a file: verdict is same, parted, law broken or unreadable.

Exit code: 0 the algorithm does the same, 1 it does not, or the law is broken, 2 a file is no trace."
)]
pub(crate) struct Args {
    /// The traces; - is standard input.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print an array of objects.
    #[arg(long)]
    json: bool,
}

impl Args {
    pub(crate) fn run(self) -> Result<ExitCode> {
        let mut objects = Vec::new();
        let mut worst = 0;
        for path in &self.files {
            let name = if is_standard_input(path) { "standard input".to_owned() } else { path.display().to_string() };
            let result = replay(path);
            match &result {
                Ok(Ok(summary)) if !self.json => print(&describe(&name, summary))?,
                Ok(Ok(_)) => {}
                Ok(Err(trouble)) => explain(&name, trouble),
                Err(error) => tell(format_args!("vez: cannot read {name}: {error}")),
            }
            worst = worst.max(exit_code(&result));
            objects.push(as_json(&name, &result));
        }
        if self.json {
            print(&format!("{:#}\n", Value::Array(objects)))?;
        }
        Ok(ExitCode::from(worst))
    }
}

type Outcome = io::Result<Result<Summary, Trouble>>;

fn is_standard_input(path: &Path) -> bool {
    path.as_os_str() == "-"
}

fn replay(path: &Path) -> Outcome {
    if is_standard_input(path) {
        return Ok(named::replay(&mut io::stdin().lock()));
    }
    Ok(named::replay(&mut BufReader::new(File::open(path)?)))
}

/// The worse, the higher: of several files the worst counts.
fn exit_code(result: &Outcome) -> u8 {
    match result {
        Ok(Ok(_)) => 0,
        Ok(Err(Trouble { cause: Cause::Parted | Cause::LawBroken, .. })) => 1,
        Ok(Err(Trouble { cause: Cause::Unreadable, .. })) | Err(_) => 2,
    }
}

fn describe(name: &str, summary: &Summary) -> String {
    let nodes = counted(summary.nodes, "node", "nodes");
    let whose = if summary.present == summary.nodes { nodes } else { format!("{} of {nodes}", summary.present) };
    let entries = counted(summary.entries as usize, "entry", "entries");
    let objections = match summary.objections {
        0 => String::new(),
        objections => format!(", {}", counted(objections as usize, "objection", "objections")),
    };
    let end = summary
        .ends_within
        .map_or(String::new(), |line| format!("; the trace ends in the midst of line {}", thousands(line)));
    let verdict = if summary.inputs == 0 { "there is nothing to compare" } else { "the algorithm does the same" };
    format!(
        "{name}: {}, {} of {whose}, {entries}{objections}: {verdict}{end}\n",
        counted(summary.lines as usize, "line", "lines"),
        counted(summary.inputs as usize, "input", "inputs"),
    )
}

/// What is wrong, and for what can be understood the lines that led to it.
fn explain(name: &str, trouble: &Trouble) {
    if trouble.cause != Cause::Unreadable {
        let width = trouble.line.to_string().len();
        trouble.before.iter().for_each(|(number, line)| tell(format_args!("{number:>width$}  {line}")));
    }
    tell(format_args!("vez: {name}: {trouble}"));
}

fn as_json(name: &str, result: &Outcome) -> Value {
    let halted = |verdict, line, what: String| json!({ "file": name, "verdict": verdict, "line": line, "what": what });
    match result {
        Ok(Ok(summary)) => {
            let mut object = json!({ "file": name, "verdict": "same" });
            for (field, value) in json!(summary).as_object().into_iter().flatten() {
                object[field] = value.clone();
            }
            object
        }
        Ok(Err(trouble)) => {
            let verdict = match trouble.cause {
                Cause::Unreadable => "unreadable",
                Cause::Parted => "parted",
                Cause::LawBroken => "law broken",
            };
            halted(verdict, json!(trouble.line), trouble.what.clone())
        }
        Err(error) => halted("unreadable", Value::Null, error.to_string()),
    }
}
