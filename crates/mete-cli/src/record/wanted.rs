//! What is to be recorded: a schema that fits this kernel, and the programs that record it.

use std::sync::Arc;

use anyhow::anyhow;
use mete_kernel::record::{Benchmark, Cache, Recording, Settings};
use mete_kernel::{DomainTable, KernelError};
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::known::Known;
use mete_schema::nearest;
use mete_schema::schema::{Point, Target};
use mete_schema::{Checked, Problems, Schema, Source, check};
use mete_trace::Description;

use super::Options;
use super::probes::Points;
use crate::failure;
use crate::output::Output;
use crate::schema::{refuse, sources};

/// A schema that fits this kernel, and the programs that record it.
pub struct Wanted {
    sources: Vec<Source>,
    pub schema: Schema,
    checked: Checked,
    /// Without what is not the kernel's.
    of_kernel: OfKernel,
    /// The events that are on at first: their places in the schema.
    pub events: Vec<usize>,
    /// Those whose occurrence is waited for.
    pub awaited: Vec<usize>,
    /// Whether those that are off at first may be switched on.
    may_switch: bool,
}

/// What the kernel is to record, and the text of its programs.
struct OfKernel {
    schema: Schema,
    checked: Checked,
    programs: String,
}

impl Wanted {
    /// Reads and checks it; what is wrong is told with its place.
    pub fn read(options: &Options, output: &mut Output) -> anyhow::Result<Wanted> {
        let sources = sources(&options.schema)?;
        let schema = Schema::read(&sources).or_else(|problems| refuse(&problems, &sources, output))?;
        let (checked, of_kernel) =
            programs(&schema)?.or_else(|problems| refuse(&problems, &sources, output))?;
        if checked.uses(Known::Domain) && options.domains.is_empty() {
            failure::say("nobody is bound to a domain: `domain` is 0 for all; see --domain");
        }
        let all = || (0..schema.events.len()).collect();
        let events = if options.events.is_empty() { all() } else { places(&schema, &options.events)? };
        let awaited = places(&schema, &options.dump_on)?;
        let may_switch = options.parameters.is_some();
        Ok(Wanted { sources, schema, checked, of_kernel, events, awaited, may_switch })
    }

    /// Whether any event that may be on is logged by programs themselves: it has no point.
    pub fn has_events_of_programs(&self) -> bool {
        self.may_be_on().any(|event| !is_logged(&self.schema, event))
    }

    /// Whether any that may be on is logged by the kernel's programs.
    pub fn has_events_of_kernel(&self) -> bool {
        self.may_be_on().any(|event| self.is_of_kernel(event))
    }

    /// The probe points, if any event that may be on is logged there.
    pub fn points(&self) -> Option<Points> {
        let points = Points::of(&self.schema, &self.checked);
        let may_be_on: Vec<_> = self.may_be_on().collect();
        let is_any = points.names(&may_be_on).next().is_some();
        is_any.then_some(points)
    }

    fn may_be_on(&self) -> impl Iterator<Item = usize> {
        (0..self.schema.events.len()).filter(|event| self.may_switch || self.events.contains(event))
    }

    /// Whether the kernel's programs log it.
    pub fn is_of_kernel(&self, event: usize) -> bool {
        is_logged(&self.of_kernel.schema, event)
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
        let OfKernel { schema, checked, programs } = &self.of_kernel;
        Recording::load(schema, checked, programs, &settings, &Cache::of_user())
    }

    /// What logging an event costs here, in nanoseconds.
    pub fn cost_ns(&self, event: usize, iterations: u32) -> Result<u64, KernelError> {
        Benchmark::load(&self.schema, &self.of_kernel.programs, event, &Cache::of_user())?.run(iterations)
    }

    /// What the trace says of the events.
    pub fn description(&self, may_switch: bool) -> Description {
        let description = Description::of_schema(&self.schema, &self.sources);
        let description =
            if self.has_events_of_kernel() { description.with_missed_runs() } else { description };
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
fn programs(schema: &Schema) -> anyhow::Result<Result<(Checked, OfKernel), Problems>> {
    let is_of_kernel = |point: &Point| !matches!(point.target, Target::Probe(_));
    if !schema.points.iter().any(is_of_kernel) {
        let nothing = || OfKernel {
            schema: Schema { points: Vec::new(), ..schema.clone() },
            checked: Checked { points: Vec::new(), unchecked: Vec::new() },
            programs: String::new(),
        };
        return Ok(check(schema, None).map(|checked| (checked, nothing())));
    }
    let kernel = Running::new()?;
    Ok(check(schema, Some(&kernel)).and_then(|checked| {
        let points = schema.points.iter().zip(&checked.points).filter(|(point, _)| is_of_kernel(point));
        let (points, checked_points) =
            points.map(|(point, checked)| (point.clone(), checked.clone())).unzip();
        let schema = Schema { points, ..schema.clone() };
        let of_kernel = Checked { points: checked_points, unchecked: checked.unchecked.clone() };
        let programs = bpf(&schema, &of_kernel, &kernel)?;
        Ok((checked, OfKernel { schema, checked: of_kernel, programs }))
    }))
}

/// Whether there is a point at which an event is logged.
fn is_logged(schema: &Schema, event: usize) -> bool {
    schema.points.iter().flat_map(|point| &point.logs).any(|log| log.event == event)
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
