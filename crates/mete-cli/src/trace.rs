//! `mete show` and `mete convert`: what is in a trace, for people and for other programs.

use std::fs::File;
use std::io::{Write, stdout};
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use mete_trace::convert::{Converted, Csv, Format, JsonLines, Perl, Text, convert};
use mete_trace::{Filter, Trace};

use crate::{failure, output};

/// Options of `mete show`.
#[derive(Debug, clap::Args)]
#[command(after_help = SHOW_EXAMPLES)]
pub struct ShowOptions {
    #[command(flatten)]
    choice: Choice,
    /// Print JSON lines: see docs/json.md
    #[arg(long)]
    json: bool,
}

/// Options of `mete convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = CONVERT_EXAMPLES)]
pub struct ConvertOptions {
    #[command(flatten)]
    choice: Choice,
    /// The form to convert to
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// Where to write it, instead of standard output
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const SHOW_EXAMPLES: &str = "\
Examples:
  mete show trace
  mete show trace --event SCHEDIN,SCHEDOUT --processor 0
  mete show trace --from 1283.5 --until 1284 --without-marks
  mete show trace --json | jq -r 'select(.kind == \"event\") | .fields.pid'

A line tells when (CLOCK_MONOTONIC, in seconds), the processor, the event's serial number there, the event and
its fields. Lines that begin with -- tell what is missing.";

const CONVERT_EXAMPLES: &str = "\
Examples:
  mete convert trace --to perl -o trace.pl
  mete convert trace --to csv --event SCHEDIN -o schedin.csv
  mete convert trace --to json | jq -r 'select(.kind == \"lost\") | .events'";

/// Which trace, and what of it.
#[derive(Debug, clap::Args)]
struct Choice {
    /// The trace's directory
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Only these events
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    event: Vec<String>,
    /// Only these processors
    #[arg(long, value_name = "N", value_delimiter = ',')]
    processor: Vec<u32>,
    /// Only from this time on, in seconds of CLOCK_MONOTONIC
    #[arg(long, value_name = "S", value_parser = seconds)]
    from: Option<u64>,
    /// Only up to this time, in seconds of CLOCK_MONOTONIC
    #[arg(long, value_name = "S", value_parser = seconds)]
    until: Option<u64>,
    /// Leave out the events by which the recorder marks its own work
    #[arg(long)]
    without_marks: bool,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Form {
    /// An array of hashes, as KLogger writes it
    Perl,
    /// JSON lines
    Json,
    /// One table of all events
    Csv,
    /// Lines for people, as `mete show` prints them
    Text,
}

/// Nanoseconds from seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds, such as 1283.5".to_owned())?;
    if (0.0..=1.8e10).contains(&number) {
        Ok((number * 1e9).round() as u64)
    } else {
        Err("must be at least 0 and less than 18000000000".to_owned())
    }
}

impl Choice {
    fn filter(&self, trace: &Trace) -> anyhow::Result<Filter> {
        let mut filter = Filter::default();
        if !self.event.is_empty() {
            let numbers = self.event.iter().map(|name| number_of(trace, name));
            filter = filter.events(numbers.collect::<anyhow::Result<Vec<_>>>()?);
        }
        if !self.processor.is_empty() {
            filter = filter.processors(self.processor.iter().copied());
        }
        filter.without_marks = self.without_marks;
        if self.from.is_some() || self.until.is_some() {
            let clock = trace.description().clock.converter();
            let clock = clock.ok_or_else(|| anyhow!("this trace's clock was read only once, so nobody knows its times; leave out --from and --until"))?;
            filter.from = self.from.map(|ns| clock.ticks(ns));
            filter.until = self.until.map(|ns| clock.ticks(ns.saturating_add(1)).saturating_sub(1));
        }
        Ok(filter)
    }

    fn open(&self) -> anyhow::Result<(Trace, Filter)> {
        let trace = Trace::open(&self.trace).context("this is no trace")?;
        let filter = self.filter(&trace)?;
        Ok((trace, filter))
    }
}

fn number_of(trace: &Trace, name: &str) -> anyhow::Result<u16> {
    let events = &trace.description().description.events;
    if let Some(event) = events.iter().find(|event| event.name == name) {
        return Ok(event.id);
    }
    let known: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    bail!("the trace has no event {name:?}; it has {}", known.join(", "))
}

/// Prints a trace.
pub fn show(options: &ShowOptions) -> anyhow::Result<()> {
    let (trace, filter) = options.choice.open()?;
    let form = if options.json { Form::Json } else { Form::Text };
    write(&trace, filter, form, stdout().lock()).map(drop)
}

/// Converts a trace.
pub fn run_convert(options: &ConvertOptions) -> anyhow::Result<()> {
    let (trace, filter) = options.choice.open()?;
    let done = match &options.output {
        None => write(&trace, filter, options.to, stdout().lock())?,
        Some(path) => {
            let file = File::create(path).with_context(|| format!("cannot create {}", path.display()))?;
            write(&trace, filter, options.to, file).with_context(|| path.display().to_string())?
        }
    };
    // Not every form has a place for this, and nobody should miss it.
    done.accounts.iter().for_each(|account| failure::say(&account.to_string()));
    Ok(())
}

fn write(trace: &Trace, filter: Filter, form: Form, to: impl Write) -> anyhow::Result<Converted> {
    let mut format: Box<dyn Format + '_> = match form {
        Form::Perl => Box::new(Perl::new(to)),
        Form::Json => Box::new(JsonLines::new(to)),
        Form::Csv => Box::new(Csv::new(to)),
        Form::Text => Box::new(Text::new(to)),
    };
    let done = convert(trace, filter, &mut *format).map_err(|error| output::failed(&error))?;
    tell_missed_runs(trace.description().circumstances.missed_runs);
    done.errors.iter().for_each(|error| failure::say(&error.to_string()));
    Ok(done)
}

/// Says that something is missing which no gap shows, if so.
pub fn tell_missed_runs(runs: u64) {
    if runs > 0 {
        failure::say(&format!(
            "{runs} times an interrupt came in the middle of an event to the same place; what it would have recorded is missing, without a gap"
        ));
    }
}
