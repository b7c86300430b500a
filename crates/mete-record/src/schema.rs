//! A schema that fits this kernel, and the programs that record it.

use std::sync::Arc;

use mete_base::nearest;
use mete_kernel::record::{Benchmark, Cache, Recording, Settings};
use mete_kernel::{DomainTable, KernelError};
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::known::KnownValue;
use mete_schema::schema::{Event, Point, Target};
use mete_schema::{Checked, Problems, Schema, Source, check};
use mete_trace::Description;

use crate::error::RecordingError;
use crate::probes::ProbePoints;

/// A schema that fits this kernel, and the programs that record it.
pub struct RecordedSchema {
    sources: Vec<Source>,
    schema: Schema,
    checked: Checked,
    of_kernel: KernelPart,
}

/// The part of a schema that the kernel records, and the text of its programs.
struct KernelPart {
    schema: Schema,
    checked: Checked,
    programs: String,
}

impl RecordedSchema {
    /// Reads a schema, checks it against the running kernel, and generates the kernel's programs.
    ///
    /// # Errors
    ///
    /// [`RecordingError::Schema`] if it is wrong or names what this kernel does not have;
    /// [`RecordingError::Types`] if it has points in the kernel, which does not describe its types.
    pub fn read(sources: Vec<Source>) -> Result<RecordedSchema, RecordingError> {
        let schema = Schema::read(&sources).map_err(RecordingError::Schema)?;
        let (checked, of_kernel) = fit(&schema)?;
        Ok(RecordedSchema { sources, schema, checked, of_kernel })
    }

    /// Its events.
    pub fn events(&self) -> &[Event] {
        &self.schema.events
    }

    /// Whether an event or a condition of it asks for domains.
    pub fn uses_domains(&self) -> bool {
        self.checked.uses(KnownValue::Domain)
    }

    /// The places of these events in the schema.
    ///
    /// # Errors
    ///
    /// [`RecordingError::NoEvent`]
    pub fn places(&self, names: &[String]) -> Result<Vec<usize>, RecordingError> {
        names.iter().map(|name| self.place(name)).collect()
    }

    fn place(&self, name: &str) -> Result<usize, RecordingError> {
        let names = || self.schema.events.iter().map(|event| event.name.as_str());
        names().position(|known| known == name).ok_or_else(|| {
            let help = nearest::help(name, names(), "it has");
            let help = help.unwrap_or_else(|| "see mete schema explain".into());
            RecordingError::NoEvent { name: name.to_owned(), help }
        })
    }

    /// Whether the kernel's programs record an event.
    pub fn is_of_kernel(&self, event: usize) -> bool {
        has_point(&self.of_kernel.schema, event)
    }

    /// Whether there is a point at which an event is recorded. Programs record the others themselves.
    pub(crate) fn has_point(&self, event: usize) -> bool {
        has_point(&self.schema, event)
    }

    /// All probe points.
    pub(crate) fn probe_points(&self) -> ProbePoints {
        ProbePoints::of(&self.schema, &self.checked)
    }

    /// Loads the kernel's programs of these events; none of them is attached yet.
    pub(crate) fn load(
        &self,
        events: Vec<usize>,
        buffer_bytes: u64,
        low_water_percent: u8,
        domains: Option<Arc<DomainTable>>,
    ) -> Result<Recording, KernelError> {
        let settings = Settings { events, buffer_bytes, low_water_percent, domains };
        let KernelPart { schema, checked, programs } = &self.of_kernel;
        Recording::load(schema, checked, programs, &settings, &Cache::of_user())
    }

    /// What it costs on this machine to record an event, in nanoseconds: the mean of this number of runs.
    ///
    /// # Errors
    ///
    /// [`KernelError`] if the kernel does not load or run the program.
    pub fn cost_ns(&self, event: usize, iterations: u32) -> Result<u64, KernelError> {
        Benchmark::load(&self.schema, &self.of_kernel.programs, event, &Cache::of_user())?.run(iterations)
    }

    /// What a trace says of the events.
    pub(crate) fn description(&self) -> Description {
        Description::of_schema(&self.schema, &self.sources)
    }

    /// The numbers that these events have in a trace.
    pub(crate) fn numbers(&self, events: &[usize]) -> Vec<u16> {
        events.iter().map(|event| self.schema.events[*event].id).collect()
    }

    /// The names of all events but these.
    pub(crate) fn names_but(&self, events: &[usize]) -> Vec<String> {
        let others = self.schema.events.iter().enumerate().filter(|(nth, _)| !events.contains(nth));
        others.map(|(_, event)| event.name.clone()).collect()
    }
}

/// Checks the points against the kernel and generates its programs. A schema without points in the kernel
/// needs none.
fn fit(schema: &Schema) -> Result<(Checked, KernelPart), RecordingError> {
    if !schema.points.iter().any(is_of_kernel) {
        let checked = check(schema, None).map_err(RecordingError::Schema)?;
        return Ok((checked, KernelPart::empty(schema)));
    }
    let kernel = Running::new()?;
    let checked = check(schema, Some(&kernel)).map_err(RecordingError::Schema)?;
    let of_kernel = KernelPart::of(schema, &checked, &kernel).map_err(RecordingError::Schema)?;
    Ok((checked, of_kernel))
}

impl KernelPart {
    fn empty(schema: &Schema) -> KernelPart {
        KernelPart {
            schema: Schema { points: Vec::new(), ..schema.clone() },
            checked: Checked { points: Vec::new(), unchecked: Vec::new() },
            programs: String::new(),
        }
    }

    fn of(schema: &Schema, checked: &Checked, kernel: &Running) -> Result<KernelPart, Problems> {
        let points = schema.points.iter().zip(&checked.points).filter(|(point, _)| is_of_kernel(point));
        let (points, checked_points) =
            points.map(|(point, checked)| (point.clone(), checked.clone())).unzip();
        let schema = Schema { points, ..schema.clone() };
        let checked = Checked { points: checked_points, unchecked: checked.unchecked.clone() };
        let programs = bpf(&schema, &checked, kernel)?;
        Ok(KernelPart { schema, checked, programs })
    }
}

fn is_of_kernel(point: &Point) -> bool {
    !matches!(point.target, Target::Probe(_))
}

fn has_point(schema: &Schema, event: usize) -> bool {
    schema.points.iter().flat_map(|point| &point.logs).any(|log| log.event == event)
}
