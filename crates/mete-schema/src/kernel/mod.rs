//! What a kernel knows of its types: arguments of tracepoints and functions, members of structures.

mod btf;
mod fake;
mod modules;
mod record_format;
mod running;
mod tracefs;

pub use btf::{Btf, BtfError};
pub use fake::Fake;
pub use modules::Modules;
pub use record_format::record_fields;
pub use running::Running;
pub use tracefs::read_tracing_file;

use std::sync::Arc;

use crate::program::{Program, ProgramError};
use crate::types::Int;

/// The number of a type, as its kernel gives it.
pub type TypeId = u32;

/// What can be said of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Type {
    /// Nobody can say: there was no kernel to ask, or it is a program's.
    Unknown,
    /// True or false.
    Truth,
    /// A number; of a bit field, with as many bits as that has.
    Int(Int),
    /// Letters in place, so many.
    Text(u32),
    /// The address of something of this type, if that is known.
    Pointer(Option<TypeId>),
    /// A structure or a union.
    Record(TypeId),
    /// So many of these.
    Array(TypeId, u32),
    /// What has no value that can be logged: a function, a floating-point number, nothing at all.
    Other(&'static str),
}

/// An argument of a point, or a member of a structure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Typed {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Type,
    /// The byte that it begins at, of a field in a tracepoint's record.
    pub place: Option<u32>,
}

impl Typed {
    /// One that lies nowhere in particular.
    pub fn new(name: impl Into<String>, kind: Type) -> Typed {
        Typed { name: name.into(), kind, place: None }
    }
}

/// A function's arguments, and what it returns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Function {
    /// Its arguments.
    pub arguments: Vec<Typed>,
    /// What it returns.
    pub result: Type,
}

/// A kernel's types. Names that it does not have are `None`.
pub trait KernelTypes {
    /// What messages call it.
    fn name(&self) -> &str;
    /// The arguments of a tracepoint, as its programs get them.
    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>>;
    /// Whether a tracepoint is a module's.
    fn is_of_module(&self, tracepoint: &str) -> bool {
        let _ = tracepoint;
        false
    }
    /// The fields of a tracepoint's record.
    ///
    /// # Errors
    ///
    /// Why nobody can say whether it has such a tracepoint.
    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String>;
    /// A function that is compiled into it.
    fn function(&self, name: &str) -> Option<Function>;
    /// A structure or union by its name.
    fn structure(&self, name: &str) -> Option<TypeId>;
    /// The name of a structure or union.
    fn structure_name(&self, id: TypeId) -> String;
    /// Whether it is a union.
    fn is_union(&self, id: TypeId) -> bool;
    /// Whether this member of it is a bit field.
    fn is_bit_field(&self, id: TypeId, member: &str) -> bool;
    /// Whether this member of it is an enumeration, which programs must not take for another kind of number.
    fn is_enumeration(&self, id: TypeId, member: &str) -> bool {
        let _ = (id, member);
        false
    }
    /// The members of a structure or union, those of nameless ones in it among them.
    fn members(&self, id: TypeId) -> Vec<Typed>;
    /// What a type is, without the other names that it goes by.
    fn kind(&self, id: TypeId) -> Type;
    /// A program or library on its machine; `None` where nobody can say.
    fn program(&self, path: &str) -> Option<Result<Arc<Program>, ProgramError>> {
        let _ = path;
        None
    }
    /// All tracepoints.
    fn tracepoints(&self) -> Vec<String>;
    /// All functions.
    fn functions(&self) -> Vec<String>;
}
