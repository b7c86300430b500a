//! What is to be recorded: a schema that fits this kernel, and the programs that record it.

use std::sync::Arc;

use anyhow::anyhow;
use mete_kernel::record::{Benchmark, Cache, Recording, Settings};
use mete_kernel::{DomainTable, KernelError};
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::known::Known;
use mete_schema::nearest;
use mete_schema::{Checked, Problems, Schema, Source, check};
use mete_trace::Description;

use super::Options;
use crate::failure;
use crate::output::Output;
use crate::schema::{refuse, sources};

/// A schema that fits this kernel, and the programs that record it.
pub struct Wanted {
    sources: Vec<Source>,
    pub schema: Schema,
    checked: Checked,
    programs: String,
    /// The events that are on at first: their places in the schema.
    pub events: Vec<usize>,
    /// Those whose occurrence is waited for.
    pub awaited: Vec<usize>,
    /// Whether those that are off at first may be switched on.
    may_switch: bool,
}

impl Wanted {
    /// Reads and checks it; what is wrong is told with its place.
    pub fn read(options: &Options, output: &mut Output) -> anyhow::Result<Wanted> {
        let sources = sources(&options.schema)?;
        let schema = Schema::read(&sources).or_else(|problems| refuse(&problems, &sources, output))?;
        let (checked, programs) =
            programs(&schema)?.or_else(|problems| refuse(&problems, &sources, output))?;
        if checked.uses(Known::Domain) && options.domains.is_empty() {
            failure::say("nobody is bound to a domain: `domain` is 0 for all; see --domain");
        }
        let all = || (0..schema.events.len()).collect();
        let events = if options.events.is_empty() { all() } else { places(&schema, &options.events)? };
        let awaited = places(&schema, &options.dump_on)?;
        let may_switch = options.parameters.is_some();
        Ok(Wanted { sources, schema, checked, programs, events, awaited, may_switch })
    }

    /// Whether any event that may be on is logged by programs themselves: it has no point.
    pub fn has_events_of_programs(&self) -> bool {
        self.may_be_on().any(|event| !self.has_point(event))
    }

    /// Whether any that may be on is logged by the kernel's programs.
    pub fn has_events_of_kernel(&self) -> bool {
        self.may_be_on().any(|event| self.has_point(event))
    }

    fn may_be_on(&self) -> impl Iterator<Item = usize> {
        (0..self.schema.events.len()).filter(|event| self.may_switch || self.events.contains(event))
    }

    /// Whether the kernel's programs log it.
    pub fn has_point(&self, event: usize) -> bool {
        self.schema.points.iter().flat_map(|point| &point.logs).any(|log| log.event == event)
    }

    /// Loads the programs. If events may be switched, those of all events, of which none is on yet.
    pub fn load(
        &self,
        buffer_bytes: u64,
        low_water_percent: u8,
        domains: Option<Arc<DomainTable>>,
    ) -> Result<Recording, KernelError> {
        let settings =
            Settings { events: self.may_be_on().collect(), buffer_bytes, low_water_percent, domains };
        Recording::load(&self.schema, &self.checked, &self.programs, &settings, &Cache::of_user())
    }

    /// What logging an event costs here, in nanoseconds.
    pub fn cost_ns(&self, event: usize, iterations: u32) -> Result<u64, KernelError> {
        Benchmark::load(&self.schema, &self.programs, event, &Cache::of_user())?.run(iterations)
    }

    /// What the trace says of the events.
    pub fn description(&self, may_switch: bool) -> Description {
        let description = Description::of_schema(&self.schema, &self.sources);
        if may_switch { description.with_switches() } else { description }
    }

    /// The numbers that events have in the trace.
    pub fn numbers(&self, events: &[usize]) -> Vec<u16> {
        events.iter().map(|event| self.schema.events[*event].id).collect()
    }

    /// The names of all events but these.
    pub fn names_but(&self, events: &[usize]) -> Vec<String> {
        let others = self.schema.events.iter().enumerate().filter(|(nth, _)| !events.contains(nth));
        others.map(|(_, event)| event.name.clone()).collect()
    }
}

/// The schema as the kernel has its points, and the programs for them. What only programs log needs no kernel.
fn programs(schema: &Schema) -> anyhow::Result<Result<(Checked, String), Problems>> {
    if schema.points.is_empty() {
        return Ok(check(schema, None).map(|checked| (checked, String::new())));
    }
    let kernel = Running::new()?;
    let checked = check(schema, Some(&kernel));
    Ok(checked.and_then(|checked| bpf(schema, &checked, &kernel).map(|programs| (checked, programs))))
}

/// Where these events are in the schema.
fn places(schema: &Schema, names: &[String]) -> anyhow::Result<Vec<usize>> {
    names.iter().map(|name| place(schema, name)).collect()
}

fn place(schema: &Schema, name: &str) -> anyhow::Result<usize> {
    let mut known = schema.events.iter().map(|event| event.name.as_str());
    let help =
        || nearest::help(name, known.clone(), "it has").unwrap_or_else(|| "see mete schema explain".into());
    let unknown = anyhow!("the schema has no event {name:?}; {}", help());
    known.position(|known| known == name).ok_or(unknown)
}
