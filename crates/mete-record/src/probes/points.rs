//! Which records a schema makes of the rows of each probe.

use mete_probe::wire::Name;
use mete_schema::evaluate::{Row, WORDS};
use mete_schema::schema::{Event, Log, Target};
use mete_schema::{Checked, CheckedLog, CheckedPoint, Schema};

/// The probe points of a schema.
pub struct ProbePoints {
    events: Vec<Event>,
    probes: Vec<Probe>,
}

/// A probe, and the points of the schema at it.
struct Probe {
    /// As programs publish it, which cut long names.
    name: String,
    points: Vec<SchemaPoint>,
}

/// One point of the schema.
struct SchemaPoint {
    checked: CheckedPoint,
    logs: Vec<Log>,
}

impl Probe {
    fn records_any_of(&self, events: &[usize]) -> bool {
        self.points.iter().flat_map(|point| &point.logs).any(|log| events.contains(&log.event))
    }
}

impl ProbePoints {
    /// The probe points of a checked schema.
    pub fn of(schema: &Schema, checked: &Checked) -> ProbePoints {
        let mut probes: Vec<Probe> = Vec::new();
        for (point, checked) in schema.points.iter().zip(&checked.points) {
            let Target::Probe(name) = &point.target else { continue };
            let name = Name::new(name).as_str().to_owned();
            let point = SchemaPoint { checked: checked.clone(), logs: point.logs.clone() };
            match probes.iter_mut().find(|probe| probe.name == name) {
                Some(probe) => probe.points.push(point),
                None => probes.push(Probe { name, points: vec![point] }),
            }
        }
        ProbePoints { events: schema.events.clone(), probes }
    }

    /// How many events the schema has.
    pub fn events(&self) -> usize {
        self.events.len()
    }

    /// The number of the probe of this name.
    pub fn probe(&self, name: &str) -> Option<usize> {
        self.probes.iter().position(|probe| probe.name == name)
    }

    /// The name of a probe.
    pub fn name(&self, probe: usize) -> &str {
        &self.probes[probe].name
    }

    /// The names of the probes at which one of these events is recorded.
    pub fn names(&self, events: &[usize]) -> impl Iterator<Item = &str> {
        let probes = self.probes.iter().filter(|probe| probe.records_any_of(events));
        probes.map(|probe| probe.name.as_str())
    }

    /// Calls `each` with the number and the fields of each record that the schema makes of a row.
    pub fn records(&self, probe: usize, row: &Row, is_on: &[bool], mut each: impl FnMut(u16, &[u64])) {
        let mut words = [0; WORDS];
        for SchemaPoint { checked, logs } in &self.probes[probe].points {
            if !row.fulfils(checked.when.as_ref()) {
                continue;
            }
            for (log, checked) in logs.iter().zip(&checked.logs) {
                let CheckedLog { condition, .. } = checked;
                if is_on[log.event] && row.fulfils(condition.as_ref()) {
                    let event = &self.events[log.event];
                    let count = row.encode(event, checked, &mut words);
                    each(event.id, &words[..count]);
                }
            }
        }
    }
}
