//! The options that `mete show` and `mete convert` share: the trace, and the choice of its events.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::{Context, anyhow, bail};
use clap::error::ErrorKind;
use mete_base::nearest::question;
use mete_command::command_line::Mistake;
use mete_command::value::none_or_more;
use mete_convert::{FieldSubject, Meanings};
use mete_trace::names::without_controls;
use mete_trace::{FieldLayout, Filter, Trace};

/// A trace, and the choice of its events.
#[derive(Debug, clap::Args)]
pub struct TraceChoice {
    /// The trace's directory
    #[arg(value_name = "DIR")]
    trace: PathBuf,
    /// Only these events
    #[arg(long, alias = "events", value_name = "NAME", value_delimiter = ',')]
    event: Vec<String>,
    /// Only these processors
    #[arg(long, value_name = "N", value_delimiter = ',', value_parser = none_or_more::<u32>)]
    processor: Vec<u32>,
    /// Only events about these processes or threads, by the kernel's numbers
    #[arg(long, value_name = "PID", value_delimiter = ',', value_parser = none_or_more::<u32>)]
    process: Vec<u32>,
    /// Only events of these accounting domains, by their names or numbers in the recording
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    domain: Vec<String>,
    /// Only from this time on, in seconds of CLOCK_MONOTONIC
    #[arg(long = "from", value_name = "S", value_parser = seconds)]
    from_ns: Option<u64>,
    /// Only up to this time, in seconds of CLOCK_MONOTONIC
    #[arg(long = "until", value_name = "S", value_parser = seconds)]
    until_ns: Option<u64>,
    /// Leave out the events by which the recorder marks its own work
    #[arg(long)]
    without_marks: bool,
}

/// Nanoseconds from seconds.
fn seconds(text: &str) -> Result<u64, String> {
    let number: f64 = text.parse().map_err(|_| "not a number of seconds, such as 1283.5".to_owned())?;
    // 64 bits hold some 1.8e19 nanoseconds.
    if (0.0..=1.8e10).contains(&number) {
        Ok((number * 1e9).round() as u64)
    } else {
        Err("must be at least 0 and less than 18000000000".to_owned())
    }
}

impl TraceChoice {
    /// Whether the options go together.
    ///
    /// # Errors
    ///
    /// Which options do not go together, and what to do.
    pub fn check(&self) -> Result<(), Mistake> {
        if self.from_ns.zip(self.until_ns).is_some_and(|(from, until)| from > until) {
            let mistake = "nothing can be chosen: --from is later than --until";
            return Err((ErrorKind::ValueValidation, mistake.to_owned()));
        }
        Ok(())
    }

    fn filter(&self, trace: &Trace) -> anyhow::Result<Filter> {
        let mut filter = Filter::default();
        if !self.event.is_empty() {
            let numbers = self.event.iter().map(|name| number_of(trace, name));
            filter = filter.events(numbers.collect::<anyhow::Result<Vec<_>>>()?);
        }
        if !self.processor.is_empty() {
            self.processor.iter().try_for_each(|processor| has_processor(trace, *processor))?;
            filter = filter.processors(self.processor.iter().copied());
        }
        filter.without_marks = self.without_marks;
        filter = self.saying(trace, filter)?;
        if self.from_ns.is_some() || self.until_ns.is_some() {
            let clock = trace.description().clock.converter();
            let clock = clock.ok_or_else(|| {
                anyhow!(
                    "this trace's clock was read only once, so its times are not known; leave out --from and \
                     --until"
                )
            })?;
            filter.from_ticks = self.from_ns.map(|ns| clock.ticks(ns));
            // A nanosecond may have several ticks: the last one is the one before the next nanosecond.
            filter.until_ticks = self.until_ns.map(|ns| clock.ticks(ns.saturating_add(1)).saturating_sub(1));
        }
        Ok(filter)
    }

    /// Adds the choice of processes and domains to a filter.
    fn saying(&self, trace: &Trace, mut filter: Filter) -> anyhow::Result<Filter> {
        let domains = self.domain.iter().map(|domain| domain_of(trace, domain));
        let domains = domains.collect::<anyhow::Result<Vec<_>>>()?;
        let choices: [(_, &[FieldSubject], Vec<u64>); 2] = [
            (
                "process",
                &[FieldSubject::Thread, FieldSubject::Process],
                self.process.iter().map(|it| (*it).into()).collect(),
            ),
            ("domain", &[FieldSubject::Domain], domains),
        ];
        for (what, kinds, numbers) in choices.into_iter().filter(|(.., numbers)| !numbers.is_empty()) {
            let fields = fields(trace, kinds);
            if fields.is_empty() {
                bail!("{}", nothing_says(trace, what));
            }
            filter = filter.saying(fields, numbers);
        }
        Ok(filter)
    }

    /// Opens the trace.
    pub fn open(&self) -> anyhow::Result<(Trace, Filter)> {
        if self.trace.is_file() {
            bail!(
                "this is no trace: {} is a file, and mete record makes directories; mete replay reads what mete sim \
                 --trace writes, and texts of perf and ftrace",
                self.trace.display()
            );
        }
        let trace = Trace::open(&self.trace).context("this is no trace")?;
        let filter = self.filter(&trace)?;
        let trace = trace.of_time(filter.from_ticks, filter.until_ticks);
        Ok((trace, filter))
    }
}

/// The fields that hold numbers of these kinds, each with the number of its event.
fn fields(trace: &Trace, kinds: &[FieldSubject]) -> Vec<(u16, FieldLayout)> {
    let description = &trace.description().description;
    let meanings = Meanings::of(description);
    let mut fields = Vec::new();
    for event in &description.events {
        let said = meanings.event(event.id).into_iter().flat_map(|meaning| &meaning.said);
        let wanted = said.filter(|said| kinds.contains(&said.what));
        fields.extend(wanted.map(|said| (event.id, said.field.clone())));
    }
    fields
}

fn nothing_says(trace: &Trace, what: &str) -> String {
    let events = &trace.description().description.events;
    let fields = events
        .iter()
        .flat_map(|event| event.fields.iter().map(move |field| format!("{}.{}", event.name, field.name)));
    let known: Vec<_> = fields.take(20).collect();
    format!(
        "no field of this trace says which {what} an event is about: the schema fills no field with such a number; the \
         trace has {}",
        known.join(", ")
    )
}

/// A domain's number, by its name where the recording has names.
fn domain_of(trace: &Trace, domain: &str) -> anyhow::Result<u64> {
    let known = &trace.description().circumstances.domains;
    if let Some(number) = known.iter().position(|name| name == domain) {
        return Ok(number as u64);
    }
    let number = domain.parse::<u16>().map(u64::from);
    number.map_err(|_| match known.is_empty() {
        true => anyhow!("the trace has no names of domains, so {domain:?} is none; give a number"),
        false => {
            anyhow!("the trace has no domain {domain:?}; it has {}", without_controls(&known.join(", ")))
        }
    })
}

fn has_processor(trace: &Trace, processor: u32) -> anyhow::Result<()> {
    let places: BTreeSet<_> = trace.description().files.iter().map(|file| file.place()).collect();
    if places.contains(&processor) {
        return Ok(());
    }
    let known: Vec<_> = places.iter().map(u32::to_string).collect();
    bail!("the trace has no processor {processor}; it has {}", known.join(", "))
}

fn number_of(trace: &Trace, name: &str) -> anyhow::Result<u16> {
    let events = &trace.description().description.events;
    if let Some(event) = events.iter().find(|event| event.name == name) {
        return Ok(event.id);
    }
    let known: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    let meant = question(name, known.iter().copied());
    bail!("the trace has no event {name:?}: it has {}{meant}", known.join(", "))
}
