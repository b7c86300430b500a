//! The running kernel: its type information, that of its modules, and its tracing file system.

use std::io::ErrorKind;
use std::path::Path;
use std::sync::Arc;

use crate::program::{Program, ProgramError, Programs};

use super::{
    BtfError, Function, KernelTypes, Modules, Type, TypeId, Typed, read_tracing_file, record_fields,
};

/// The running kernel.
pub struct Running {
    types: Modules,
    programs: Programs,
}

impl Running {
    /// Reads the types of the running kernel.
    ///
    /// # Errors
    ///
    /// If the kernel has no type information, or this process may not read it.
    pub fn new() -> Result<Running, BtfError> {
        let types = Modules::read(Path::new("/sys/kernel/btf"), "the running kernel")?;
        Ok(Running { types, programs: Programs::default() })
    }
}

impl KernelTypes for Running {
    fn name(&self) -> &str {
        self.types.name()
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        self.types.tracepoint(name)
    }

    fn is_of_module(&self, tracepoint: &str) -> bool {
        self.types.is_of_module(tracepoint)
    }

    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        match read_tracing_file(&format!("events/{group}/{name}/format")) {
            Ok(text) => Ok(Some(record_fields(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // A process that may not read there may still learn the record from the kernel's types.
            Err(_) => self.types.record(group, name),
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

    fn is_enumeration(&self, id: TypeId, member: &str) -> bool {
        self.types.is_enumeration(id, member)
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        self.types.members(id)
    }

    fn kind(&self, id: TypeId) -> Type {
        self.types.kind(id)
    }

    fn program(&self, path: &str) -> Option<Result<Arc<Program>, ProgramError>> {
        Some(self.programs.get(Path::new(path)))
    }

    fn tracepoints(&self) -> Vec<String> {
        self.types.tracepoints()
    }

    fn functions(&self) -> Vec<String> {
        self.types.functions()
    }
}
