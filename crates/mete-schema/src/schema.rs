//! A schema whose names are resolved: events with numbers and layouts, counters, points.

use crate::ast::Expr;
use crate::counter::Counter;
use crate::layout::Layout;
use crate::source::Span;
use crate::types::FieldType;

/// A schema that is right in itself. Whether a kernel has what its points name is for
/// [`check`](crate::check).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// What the virtual counters count, on which architectures.
    pub bindings: Vec<Binding>,
    /// The events; the number of each is 16 and its place in here.
    pub events: Vec<Event>,
    /// Where they are logged.
    pub points: Vec<Point>,
}

/// What a virtual counter counts on an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The architecture's name as written; [`ANY`](crate::counter::ANY) is all others.
    pub arch: String,
    /// The virtual counter.
    pub number: u8,
    /// What it counts.
    pub counter: &'static Counter,
    /// What is said of it.
    pub docs: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its number in records.
    pub id: u16,
    /// Its name.
    pub name: String,
    /// What it means.
    pub docs: String,
    /// Its fields in the order of their arguments.
    pub fields: Vec<Field>,
    /// Where they lie.
    pub layout: Layout,
    /// Where it is defined.
    pub span: Span,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// The type's word, as written.
    pub word: &'static str,
    /// What it holds.
    pub kind: FieldType,
    /// What it means.
    pub docs: String,
}

/// Where something is logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The place.
    pub target: Target,
    /// What is said of it.
    pub docs: String,
    /// Only if this is true.
    pub when: Option<Expr>,
    /// What is logged, in this order.
    pub logs: Vec<Log>,
    /// Where it is defined.
    pub span: Span,
}

/// An event that a point logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// Its place in [`Schema::events`].
    pub event: usize,
    /// Only if this is true.
    pub condition: Option<Expr>,
    /// A value for each field.
    pub arguments: Vec<Expr>,
}

/// A place in the kernel or in a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tracepoint, its arguments read with their types.
    TpBtf(String),
    /// The same tracepoint on kernels that do not offer it with types to programs.
    RawTracepoint(String),
    /// A tracepoint by its record, as in `/sys/kernel/tracing/events`.
    Tracepoint {
        /// Its group.
        group: String,
        /// Its name.
        name: String,
    },
    /// Where a kernel function begins.
    Fentry(String),
    /// Where a kernel function returns.
    Fexit(String),
    /// Where a kernel function begins, by a breakpoint.
    Kprobe(String),
    /// Where a function of a program begins.
    Uprobe {
        /// The program or library.
        path: String,
        /// The function.
        symbol: String,
    },
    /// Where a function of a program returns.
    Uretprobe {
        /// The program or library.
        path: String,
        /// The function.
        symbol: String,
    },
    /// A static probe that the program's authors have put there.
    Usdt {
        /// The program or library.
        path: String,
        /// The provider.
        provider: String,
        /// The probe.
        name: String,
    },
    /// A probe point of this project in a program, by its event's name.
    Probe(String),
}

impl Schema {
    /// The event of this name.
    pub fn event(&self, name: &str) -> Option<&Event> {
        self.events.iter().find(|event| event.name == name)
    }

    /// What each counter counts on a machine that goes by these names, the best one first: such as
    /// `["AMD", "x86_64"]`. Where none of them binds a counter, `any` may.
    pub fn bindings_for(&self, names: &[&str]) -> Vec<&Binding> {
        let mut found: Vec<&Binding> = Vec::new();
        for arch in names.iter().chain(&[crate::counter::ANY]) {
            let here = self.bindings.iter().filter(|binding| binding.arch.eq_ignore_ascii_case(arch));
            for binding in here {
                if found.iter().all(|other| other.number != binding.number) {
                    found.push(binding);
                }
            }
        }
        found
    }

    /// A number that changes with whatever a decoder must know: names, types and places of all fields.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.add(&[crate::layout::VERSION]);
        for event in &self.events {
            hash.add(&event.fingerprint().to_le_bytes());
        }
        hash.0
    }
}

impl Event {
    /// A number that changes with the event's name and the names and types of its fields, not with its
    /// number: a program and a recorder that agree on it mean the same.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.add(self.name.as_bytes());
        for field in &self.fields {
            hash.add(&[0]);
            hash.add(field.kind.to_string().as_bytes());
            hash.add(&[0]);
            hash.add(field.name.as_bytes());
        }
        hash.0
    }
}

/// FNV-1a, 64 bits: not against forgers, only against mistakes.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
