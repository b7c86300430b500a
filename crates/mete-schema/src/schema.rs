//! A schema whose names are resolved: events with numbers and layouts, counters, points.

use crate::ast::Expr;
use crate::counter::Counter;
use crate::kernel::KernelTypes;
use crate::layout::Layout;
use crate::source::Span;
use crate::types::FieldType;

/// A schema without mistakes of its own. [`check`](crate::check) finds out whether a kernel has what the
/// points name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// What the virtual counters count, on which architectures.
    pub bindings: Vec<Binding>,
    /// The events. An event's number is its index here plus [`FIRST_EVENT`](crate::layout::FIRST_EVENT).
    pub events: Vec<Event>,
    /// The points that log them.
    pub points: Vec<Point>,
}

/// What a virtual counter counts on an architecture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Binding {
    /// The architecture's name as written. [`ANY`](crate::counter::ANY) stands for all architectures that do
    /// not bind the counter themselves.
    pub arch: String,
    /// The virtual counter.
    pub number: u8,
    /// What it counts.
    pub counter: &'static Counter,
    /// The binding's documentation.
    pub docs: String,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Event {
    /// The event's number in records.
    pub id: u16,
    /// The event's name.
    pub name: String,
    /// The event's documentation.
    pub docs: String,
    /// The fields in the order of their arguments.
    pub fields: Vec<Field>,
    /// Where the fields lie in a record.
    pub layout: Layout,
    /// Where the event is defined.
    pub span: Span,
}

/// A field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// The field's name.
    pub name: String,
    /// The type's word, as written.
    pub word: &'static str,
    /// The type that the word means.
    pub kind: FieldType,
    /// The field's documentation.
    pub docs: String,
}

/// A place where events are logged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Point {
    /// The place.
    pub target: Target,
    /// The point's documentation.
    pub docs: String,
    /// The condition under which the point logs anything.
    pub when: Option<Expr>,
    /// What is logged, in this order.
    pub logs: Vec<Log>,
    /// Where the point is defined.
    pub span: Span,
}

/// An event that a point logs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Log {
    /// The event's index in [`Schema::events`].
    pub event: usize,
    /// The condition under which the event is logged.
    pub condition: Option<Expr>,
    /// A value for each field.
    pub arguments: Vec<Expr>,
}

/// A place in the kernel or in a program.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// A tracepoint whose arguments are read with their types.
    TpBtf(String),
    /// A tracepoint on kernels that do not give programs the types of its arguments.
    RawTracepoint(String),
    /// A tracepoint whose arguments are the fields of its record, as in `/sys/kernel/tracing/events`.
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
    /// Where a kernel function begins, by means of a breakpoint.
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
    /// A static probe that the authors of a program have put into it.
    Usdt {
        /// The program or library.
        path: String,
        /// The provider.
        provider: String,
        /// The probe.
        name: String,
    },
    /// A probe point of this project in a program, named by its event.
    Probe(String),
}

impl Schema {
    /// The number of points in the kernel itself.
    pub fn points_of_kernel(&self) -> usize {
        self.points.iter().filter(|point| point.target.is_kernel()).count()
    }

    /// The number of points in programs that can be looked into: only the running kernel's types come with
    /// programs.
    pub fn points_in_programs(&self, kernel: &dyn KernelTypes) -> usize {
        let looked_into = |target: &Target| match target {
            Target::Uprobe { path, .. } | Target::Uretprobe { path, .. } | Target::Usdt { path, .. } => {
                kernel.program(path).is_some()
            }
            _ => false,
        };
        self.points.iter().filter(|point| looked_into(&point.target)).count()
    }

    /// What each counter counts on a machine that has these names, the most specific one first, such as
    /// `["AMD", "x86_64"]`. A binding of `any` applies to a counter that none of these names binds.
    pub fn bindings_for(&self, names: &[&str]) -> Vec<&Binding> {
        let mut found: Vec<&Binding> = Vec::new();
        for arch in names.iter().chain(&[crate::counter::ANY]) {
            let here = self.bindings.iter().filter(|binding| binding.arch.eq_ignore_ascii_case(arch));
            for binding in here {
                // A binding of a more specific name stands there already, and takes precedence.
                if found.iter().all(|other| other.number != binding.number) {
                    found.push(binding);
                }
            }
        }
        found
    }

    /// A number that changes with everything that a decoder must know: names, types and places of all fields.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        // The version stands for the rule by which fields are placed, so that the places need not be hashed.
        hash.add(&[crate::layout::VERSION]);
        for event in &self.events {
            hash.add(&event.fingerprint().to_le_bytes());
        }
        hash.0
    }
}

impl Field {
    /// Its type as it was written, a text with its length.
    pub fn shown(&self) -> String {
        match self.kind {
            FieldType::Text(_) => self.kind.to_string(),
            _ => self.word.to_owned(),
        }
    }
}

impl Event {
    /// A number that changes with the event's name and with the names and types of its fields, but not with
    /// the event's number. A program and a recorder that have the same fingerprint mean the same event.
    pub fn fingerprint(&self) -> u64 {
        let mut hash = Fnv::new();
        hash.add(self.name.as_bytes());
        for field in &self.fields {
            // Without a zero between the texts, a letter could move from one to the next unnoticed.
            hash.add(&[0]);
            hash.add(field.kind.to_string().as_bytes());
            hash.add(&[0]);
            hash.add(field.name.as_bytes());
        }
        hash.0
    }
}

/// The hash FNV-1a with 64 bits. It protects against mistakes, not against forgers.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        // The offset basis of FNV-1a; `add` has its prime.
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}
