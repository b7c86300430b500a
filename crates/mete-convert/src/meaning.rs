//! What the fields of events mean. The schema that travels with a trace tells where each event was logged,
//! and what its fields were filled with. So a format knows that an event is a context switch, whatever its
//! name is, and which of its fields is the thread that got the processor.

use mete_schema::ast::{Binary, Expr, ExprKind};
use mete_schema::schema::{Log, Point, Target};
use mete_schema::{Schema, Source};
use mete_trace::description::Description;
use mete_trace::{EventLayout, FieldKind, FieldLayout};

/// What a field says about its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FieldSubject {
    /// The number of a thread, the kernel's `pid`.
    Thread,
    /// The number of a process, the kernel's `tgid`.
    Process,
    /// The name, the kernel's `comm`.
    Name,
    /// The priority, as the kernel counts it.
    Priority,
    /// The state in which a thread left the processor, as the kernel keeps it.
    State,
    /// The same state in the bits that the kernel's record of a switch reports.
    ReportedState,
    /// Whether the thread was preempted.
    Preempted,
    /// A processor.
    Processor,
    /// The accounting domain.
    Domain,
}

/// The meaning of a field: its subject, and what it says about that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The subject, in the words of the point: `next`, `prev`, `p`, `child`. It is empty for the running
    /// thread.
    pub who: String,
    /// What it says.
    pub what: FieldSubject,
    /// The field.
    pub field: FieldLayout,
}

/// A place where an event is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogSite {
    /// The tracepoint's name. It is empty for other kinds of points.
    pub tracepoint: String,
    /// Whether its arguments are the kernel's own, and not those of a record in the tracing file system.
    pub is_raw: bool,
    /// Whether the event is logged each time the point is passed.
    pub is_always: bool,
}

/// What one event means.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Meaning {
    /// Where it is logged.
    pub places: Vec<LogSite>,
    /// What is known about its fields.
    pub said: Vec<Said>,
}

impl Meaning {
    /// The field that says this about this subject.
    pub fn field(&self, who: &str, what: FieldSubject) -> Option<&FieldLayout> {
        self.said.iter().find(|said| said.who == who && said.what == what).map(|said| &said.field)
    }

    /// The fields that say this, about any subject.
    pub fn fields(&self, what: FieldSubject) -> impl Iterator<Item = &Said> {
        self.said.iter().filter(move |said| said.what == what)
    }

    /// The place at this tracepoint, if the event is logged there.
    pub fn place(&self, tracepoint: &str) -> Option<&LogSite> {
        self.places.iter().find(|place| place.tracepoint == tracepoint)
    }
}

/// What the events of a trace mean, by their numbers.
#[derive(Clone, Debug, Default)]
pub struct Meanings(Vec<Meaning>);

impl Meanings {
    /// The meanings in a trace's description. If the schema cannot be read, fields mean what their names say,
    /// where these are beyond doubt.
    pub fn of(description: &Description) -> Meanings {
        let source = Source::new("schema", description.schema.clone());
        let schema = Schema::read(std::slice::from_ref(&source)).ok();
        let most = description.events.iter().map(|event| usize::from(event.id) + 1).max().unwrap_or(0);
        let mut meanings = vec![Meaning::default(); most];
        for event in &description.events {
            meanings[usize::from(event.id)] = meaning(event, schema.as_ref());
        }
        Meanings(meanings)
    }

    /// The meaning of an event.
    pub fn event(&self, number: u16) -> Option<&Meaning> {
        self.0.get(usize::from(number))
    }
}

fn meaning(event: &EventLayout, schema: Option<&Schema>) -> Meaning {
    let mut meaning = Meaning::default();
    let Some((nth, schema)) = schema.and_then(|schema| Some((position(event, schema)?, schema))) else {
        meaning.said = by_names(event);
        return meaning;
    };
    for point in &schema.points {
        for log in point.logs.iter().filter(|log| log.event == nth) {
            meaning.places.push(place(point, log));
            let known = event.fields.iter().zip(&log.arguments);
            meaning.said.extend(known.filter_map(|(field, argument)| said(field, argument)));
        }
    }
    // Programs log this event themselves.
    if meaning.places.is_empty() {
        meaning.said = by_names(event);
    }
    // Two points may fill an event's only known field alike.
    meaning.said.dedup();
    meaning
}

/// Which of the schema's events this is.
fn position(event: &EventLayout, schema: &Schema) -> Option<usize> {
    let mut events = schema.events.iter();
    events.position(|other| other.name == event.name && other.fields.len() == event.fields.len())
}

/// The meaning of fields by their names. This is for events that programs log: the schema does not say what
/// fills their fields.
fn by_names(event: &EventLayout) -> Vec<Said> {
    event.fields.iter().filter_map(|field| said_by(&field.name, field)).collect()
}

/// The meaning of a field that is filled with what this path names.
fn said_by(path: &str, field: &FieldLayout) -> Option<Said> {
    let (who, what) = whose(path)?;
    suits(what, field.kind).then(|| Said { who, what, field: field.clone() })
}

/// The meaning of a field that is filled with this argument.
fn said(field: &FieldLayout, argument: &Expr) -> Option<Said> {
    if let Some(path) = path(argument) {
        return said_by(&path, field);
    }
    let (who, what) = (reported_of(argument)?, FieldSubject::ReportedState);
    suits(what, field.kind).then(|| Said { who, what, field: field.clone() })
}

/// The subject whose state an expression gives, if it only chooses and masks. An expression that masks a
/// state does so to get the reported bits.
fn reported_of(argument: &Expr) -> Option<String> {
    match &argument.kind {
        ExprKind::Choice(_, one, other) => reported_of(one).or_else(|| reported_of(other)),
        ExprKind::Binary(Binary::BitAnd, state, _) => match whose(&path(state)?)? {
            (who, FieldSubject::State) => Some(who),
            _ => None,
        },
        _ => None,
    }
}

/// Whether a field of this kind can say this: a name is text, and everything else a number.
fn suits(what: FieldSubject, kind: FieldKind) -> bool {
    match kind {
        FieldKind::Text => what == FieldSubject::Name,
        FieldKind::Unsigned | FieldKind::Signed | FieldKind::Bool => what != FieldSubject::Name,
        _ => false,
    }
}

/// The path, such as `next.pid`, if the expression is nothing more than that.
fn path(argument: &Expr) -> Option<String> {
    match &argument.kind {
        ExprKind::Name(name) => Some(name.clone()),
        ExprKind::Member(of, member) => Some(format!("{}.{}", path(of)?, member.text)),
        ExprKind::Cast(_, of) => path(of),
        _ => None,
    }
}

/// What a path says about the running thread, which has no name.
fn running(what: FieldSubject) -> Option<(String, FieldSubject)> {
    Some((String::new(), what))
}

/// The subject of a path, and what it says about it. In the kernel's structures that is the last member. In
/// the records of the tracing file system it is the last part of the word, as in `next_pid`.
fn whose(path: &str) -> Option<(String, FieldSubject)> {
    // `here.` stands for the running thread, which needs no name.
    let path = path.strip_prefix("here.").unwrap_or(path);
    match path {
        "pid" => return running(FieldSubject::Thread),
        "tgid" => return running(FieldSubject::Process),
        "comm" => return running(FieldSubject::Name),
        "domain" => return running(FieldSubject::Domain),
        "preempt" => return Some(("prev".to_owned(), FieldSubject::Preempted)),
        "target_cpu" | "args.target_cpu" => return Some(("p".to_owned(), FieldSubject::Processor)),
        _ => {}
    }
    if let Some(who) = path.strip_suffix(".thread_info.cpu").or_else(|| path.strip_suffix(".wake_cpu")) {
        return Some((who.to_owned(), FieldSubject::Processor));
    }
    let (who, last) = path.rsplit_once(['.', '_'])?;
    let what = match last {
        "pid" => FieldSubject::Thread,
        "tgid" => FieldSubject::Process,
        "comm" => FieldSubject::Name,
        "prio" => FieldSubject::Priority,
        "state" if who == "prev" => FieldSubject::State,
        _ => return None,
    };
    // In a record of the tracing file system, the fields about the record's own subject have no prefix.
    Some((if who == "args" { "p" } else { who }.to_owned(), what))
}

fn place(point: &Point, log: &Log) -> LogSite {
    let (tracepoint, is_raw) = match &point.target {
        Target::TpBtf(name) | Target::RawTracepoint(name) => (name.as_str(), true),
        Target::Tracepoint { name, .. } => (name.as_str(), false),
        _ => ("", true),
    };
    let is_always = [&point.when, &log.condition].into_iter().flatten().all(always_holds);
    LogSite { tracepoint: tracepoint.to_owned(), is_raw, is_always }
}

/// Whether a condition always holds. `prev.pid != next.pid` does: no switch is from a thread to itself.
fn always_holds(condition: &Expr) -> bool {
    let ExprKind::Binary(Binary::Unequal, left, right) = &condition.kind else { return false };
    // Either side may stand first.
    let mut sides = [path(left), path(right)].map(|path| whose(&path?));
    sides.sort_by_key(|side| side.as_ref().map(|(who, _)| who.clone()));
    sides == ["next", "prev"].map(|who| Some((who.to_owned(), FieldSubject::Thread)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn meanings(schema: &str) -> Meanings {
        let source = Source::new("test", schema);
        let read =
            Schema::read(std::slice::from_ref(&source)).unwrap_or_else(|_| panic!("it is right: {schema}"));
        Meanings::of(&Description::of_schema(&read, &[source]))
    }

    fn known(meaning: &Meaning) -> Vec<(&str, FieldSubject, &str)> {
        meaning.said.iter().map(|said| (said.who.as_str(), said.what, said.field.name.as_str())).collect()
    }

    #[test]
    fn new_6_the_shipped_scheduler_says_who_gets_the_processor() {
        let shipped = mete_schema::shipped::by_name("scheduler").unwrap_or_else(|| panic!("it is shipped"));
        let meanings = meanings(shipped.text);
        let [waking, runq, remove, out, into, fork, exec, exit] =
            std::array::from_fn(|nth| meanings.event(16 + nth as u16).cloned().unwrap_or_default());
        use FieldSubject::{Name, Preempted, Priority, Process, Processor, ReportedState, Thread};
        assert_eq!(known(&waking)[..2], [("p", Thread, "pid"), ("", Thread, "waker")]);
        assert_eq!(known(&waking)[2..], [("p", Processor, "last_cpu"), ("p", Priority, "priority")]);
        assert!(runq.place("sched_wakeup").is_some() && runq.place("sched_wakeup_new").is_some());
        assert!(!remove.place("sched_switch").is_some_and(|place| place.is_always));
        let state = ("prev", ReportedState, "state");
        assert_eq!(known(&out), [("prev", Thread, "pid"), state, ("prev", Preempted, "is_preempted")]);
        assert_eq!(known(&remove), [("prev", Thread, "pid"), state]);
        assert!(into.place("sched_switch").is_some_and(|place| place.is_always && place.is_raw));
        let expected = [("next", Thread, "pid"), ("next", Priority, "priority"), ("next", Process, "tgid")];
        assert_eq!(known(&into), expected);
        assert!(fork.field("child", Name).is_some() && fork.field("child", Process).is_some());
        assert!(exec.field("p", Name).is_some() && exit.field("prev", Process).is_some());
    }

    #[test]
    fn new_6_records_of_the_tracing_file_system_mean_the_same() {
        let meanings = meanings(
            "event S { int who  long how }\nevent W { int who  int by }\n\
             at tracepoint:sched:sched_switch when prev_pid != next_pid log S(next_pid, prev_state)\n\
             at tracepoint:sched:sched_waking log W(args.pid, here.pid)",
        );
        let [switch, waking] = [16, 17].map(|number| meanings.event(number).cloned().unwrap_or_default());
        assert_eq!(
            known(&switch),
            [("next", FieldSubject::Thread, "who"), ("prev", FieldSubject::State, "how")]
        );
        assert!(switch.places[0].is_always && !switch.places[0].is_raw);
        assert_eq!(known(&waking), [("p", FieldSubject::Thread, "who"), ("", FieldSubject::Thread, "by")]);
    }

    #[test]
    fn new_6_what_is_computed_means_nothing_and_what_has_no_point_means_its_name() {
        let meanings = meanings(
            "event A { int pid  u16 domain }\nevent B { long pid }\nat tp_btf:sched_switch log B(next.pid + 1)",
        );
        let [a, b] = [16, 17].map(|number| meanings.event(number).cloned().unwrap_or_default());
        assert_eq!(known(&a), [("", FieldSubject::Thread, "pid"), ("", FieldSubject::Domain, "domain")]);
        assert!(known(&b).is_empty());
    }
}
