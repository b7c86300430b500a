//! Which records of a trace are wanted.

use mete_log::Ticks;

use crate::description::FieldLayout;
use crate::record::Record;
use crate::value::Value;

/// Which records are wanted. The default is all of them. Gaps are shown whatever events are wanted, because
/// it is not known which events are in a gap.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    events: Option<Vec<u16>>,
    processors: Option<Vec<u32>>,
    /// Not before this time stamp.
    pub from_ticks: Option<Ticks>,
    /// Not after this time stamp.
    pub until_ticks: Option<Ticks>,
    /// Leave out the recorder's own marks around flushes.
    pub without_marks: bool,
    conditions: Vec<FieldCondition>,
    /// Also hand out what was before `from_ticks`.
    overhears: bool,
}

/// A condition on the content of a record.
#[derive(Clone, Debug)]
struct FieldCondition {
    /// The fields that count, of each event by its number.
    fields: Vec<Vec<FieldLayout>>,
    /// One of the fields must have one of these numbers.
    numbers: Vec<u64>,
}

impl FieldCondition {
    fn holds_of(&self, record: &Record<'_>) -> bool {
        let fields = self.fields.get(usize::from(record.event)).map_or(&[][..], Vec::as_slice);
        fields.iter().filter_map(|field| number(field, record)).any(|number| self.numbers.contains(&number))
    }
}

/// The number in a field, if it is one that is not negative.
fn number(field: &FieldLayout, record: &Record<'_>) -> Option<u64> {
    match field.value(record.bytes)? {
        Value::Unsigned(number) => Some(number),
        Value::Signed(number) => u64::try_from(number).ok(),
        _ => None,
    }
}

impl Filter {
    /// Only these events.
    pub fn events(mut self, events: impl IntoIterator<Item = u16>) -> Filter {
        self.events = Some(events.into_iter().collect());
        self
    }

    /// Only these processors.
    pub fn processors(mut self, processors: impl IntoIterator<Item = u32>) -> Filter {
        self.processors = Some(processors.into_iter().collect());
        self
    }

    /// Only from this time stamp on.
    pub fn from_ticks(mut self, ticks: Ticks) -> Filter {
        self.from_ticks = Some(ticks);
        self
    }

    /// Only up to this time stamp.
    pub fn until_ticks(mut self, ticks: Ticks) -> Filter {
        self.until_ticks = Some(ticks);
        self
    }

    /// Only events that have one of these numbers in one of these fields. Each field is given with its
    /// event's number. The recorder's own marks have no such fields and are left out.
    pub fn saying(
        mut self,
        fields: impl IntoIterator<Item = (u16, FieldLayout)>,
        numbers: impl IntoIterator<Item = u64>,
    ) -> Filter {
        let mut of_events: Vec<Vec<FieldLayout>> = Vec::new();
        for (event, field) in fields {
            let event = usize::from(event);
            of_events.resize(of_events.len().max(event + 1), Vec::new());
            of_events[event].push(field);
        }
        self.conditions.push(FieldCondition { fields: of_events, numbers: numbers.into_iter().collect() });
        self
    }

    /// Without the recorder's own marks.
    pub fn without_marks(mut self) -> Filter {
        self.without_marks = true;
        self
    }

    /// The same processors and the same time, with all events and those before that time. This is for a pass
    /// that also learns from events that it does not show. That pass asks [`Filter::has`] which events it
    /// shows. Losses and accounts are those of the time.
    pub fn with_all_events(&self) -> Filter {
        let Filter { processors, from_ticks, until_ticks, .. } = self.clone();
        Filter { processors, from_ticks, until_ticks, overhears: true, ..Filter::default() }
    }

    /// Where reading begins.
    pub(crate) fn read_from(&self) -> Option<Ticks> {
        self.from_ticks.filter(|_| !self.overhears)
    }

    pub(crate) fn has_processor(&self, processor: u32) -> bool {
        self.processors.as_ref().is_none_or(|wanted| wanted.contains(&processor))
    }

    /// Whether this record is wanted.
    pub fn has(&self, record: &Record<'_>) -> bool {
        self.events.as_ref().is_none_or(|wanted| wanted.contains(&record.event))
            && self.read_from().is_none_or(|from| record.time >= from)
            && self.until_ticks.is_none_or(|until| record.time <= until)
            && !(self.without_marks && record.is_dump_mark())
            && self.conditions.iter().all(|condition| condition.holds_of(record))
    }
}
