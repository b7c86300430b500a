//! The kernel that runs here: its type information and its modules', and its tracing file system where that is mounted.

use std::fs;
use std::path::Path;

use crate::program::{Program, ProgramError};

use super::{BtfError, Function, KernelTypes, Modules, Type, TypeId, Typed, record_fields};

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The running kernel.
pub struct Running {
    types: Modules,
}

impl Running {
    /// Reads its types.
    ///
    /// # Errors
    ///
    /// If it has none, or they may not be read.
    pub fn new() -> Result<Running, BtfError> {
        Ok(Running { types: Modules::read(Path::new("/sys/kernel/btf"), "the running kernel")? })
    }
}

impl KernelTypes for Running {
    fn name(&self) -> &str {
        self.types.name()
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        self.types.tracepoint(name)
    }

    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        let Some(events) = MOUNTED.iter().map(|at| Path::new(at).join("events")).find(|at| at.is_dir())
        else {
            return self.types.record(group, name);
        };
        let file = events.join(group).join(name).join("format");
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(record_fields(&text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        }
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.types.function(name)
    }

    fn structure(&self, name: &str) -> Option<TypeId> {
        self.types.structure(name)
    }

    fn structure_name(&self, id: TypeId) -> String {
        self.types.structure_name(id)
    }

    fn is_union(&self, id: TypeId) -> bool {
        self.types.is_union(id)
    }

    fn is_bit_field(&self, id: TypeId, member: &str) -> bool {
        self.types.is_bit_field(id, member)
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        self.types.members(id)
    }

    fn kind(&self, id: TypeId) -> Type {
        self.types.kind(id)
    }

    fn program(&self, path: &str) -> Option<Result<Program, ProgramError>> {
        Some(Program::read(Path::new(path)))
    }

    fn tracepoints(&self) -> Vec<String> {
        self.types.tracepoints()
    }

    fn functions(&self) -> Vec<String> {
        self.types.functions()
    }
}
