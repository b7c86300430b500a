//! The types of a kernel: arguments of tracepoints and functions, members of structures.

mod btf;
mod record_format;
mod running;
mod tracefs;

pub use btf::{Btf, BtfError};
pub use record_format::record_fields;
pub use running::Running;
pub use tracefs::read_tracing_file;

use std::sync::Arc;

use crate::program::{Program, ProgramError};
use crate::types::Int;

/// The number of a type in its kernel.
pub type TypeId = u32;

/// The type of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Not known: there was no kernel to ask, or the value is a program's.
    Unknown,
    /// True or false.
    Truth,
    /// A number. The number of a bit field has the width of the field.
    Int(Int),
    /// An array of letters, of this length.
    Text(u32),
    /// An address, and the type of the value there, if it is known.
    Pointer(Option<TypeId>),
    /// A structure or a union.
    Record(TypeId),
    /// An array: the type of its elements, and their number.
    Array(TypeId, u32),
    /// A type without a value that can be logged: a function, a floating-point number, `void`.
    Other(&'static str),
}

/// The structure of a type that is one or points to one.
pub(crate) fn record_of(kernel: &dyn KernelTypes, kind: &Type) -> Option<TypeId> {
    match kind {
        Type::Record(id) => Some(*id),
        Type::Pointer(Some(to)) => match kernel.kind(*to) {
            Type::Record(id) => Some(id),
            _ => None,
        },
        _ => None,
    }
}

/// An argument of a point, or a member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// Its offset in bytes, if it is a field of a tracepoint's record.
    pub place: Option<u32>,
}

impl Typed {
    /// An argument or member without an offset.
    pub fn new(name: impl Into<String>, kind: Type) -> Typed {
        Typed { name: name.into(), kind, place: None }
    }
}

/// A function's arguments, and the type that it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// The arguments.
    pub arguments: Vec<Typed>,
    /// The type that it returns.
    pub result: Type,
}

/// The types of a kernel. A name that the kernel does not have gives `None`.
pub trait KernelTypes {
    /// The kernel's name in messages.
    fn name(&self) -> &str;
    /// The arguments of a tracepoint, as its programs get them.
    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>>;
    /// Whether a tracepoint belongs to a module.
    fn is_of_module(&self, tracepoint: &str) -> bool {
        let _ = tracepoint;
        false
    }
    /// The fields of a tracepoint's record.
    ///
    /// # Errors
    ///
    /// Why it is not known whether the kernel has such a tracepoint.
    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String>;
    /// A function that is compiled into the kernel.
    fn function(&self, name: &str) -> Option<Function>;
    /// A structure or union by its name.
    fn structure(&self, name: &str) -> Option<TypeId>;
    /// The name of a structure or union.
    fn structure_name(&self, id: TypeId) -> String;
    /// Whether a type is a union.
    fn is_union(&self, id: TypeId) -> bool;
    /// Whether this member of a structure is a bit field.
    fn is_bit_field(&self, id: TypeId, member: &str) -> bool;
    /// Whether this member of a structure is an enumeration, which programs must not declare as a plain
    /// number.
    fn is_enumeration(&self, id: TypeId, member: &str) -> bool {
        let _ = (id, member);
        false
    }
    /// The members of a structure or union, including those of nameless ones in it.
    fn members(&self, id: TypeId) -> Vec<Typed>;
    /// A type, behind typedefs and qualifiers.
    fn kind(&self, id: TypeId) -> Type;
    /// A program or library on the kernel's machine; `None` if that machine's programs are not known.
    fn program(&self, path: &str) -> Option<Result<Arc<Program>, ProgramError>> {
        let _ = path;
        None
    }
    /// All tracepoints.
    fn tracepoints(&self) -> Vec<String>;
    /// All functions.
    fn functions(&self) -> Vec<String>;
}
