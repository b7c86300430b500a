//! The kernel that runs here: its type information, and its tracing file system where that is mounted.

use std::fs;
use std::path::Path;

use crate::program::{Program, ProgramError};

use super::{Btf, BtfError, Function, KernelTypes, Type, TypeId, Typed, record_fields};

const MOUNTED: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// The running kernel.
pub struct Running {
    btf: Btf,
}

impl Running {
    /// Reads its types.
    ///
    /// # Errors
    ///
    /// If it has none, or they may not be read.
    pub fn new() -> Result<Running, BtfError> {
        Ok(Running { btf: Btf::of_running_kernel()? })
    }
}

impl KernelTypes for Running {
    fn name(&self) -> &str {
        self.btf.name()
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        self.btf.tracepoint(name)
    }

    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        let Some(events) = MOUNTED.iter().map(|at| Path::new(at).join("events")).find(|at| at.is_dir())
        else {
            return self.btf.record(group, name);
        };
        let file = events.join(group).join(name).join("format");
        match fs::read_to_string(&file) {
            Ok(text) => Ok(Some(record_fields(&text))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(format!("cannot read {}: {error}", file.display())),
        }
    }

    fn function(&self, name: &str) -> Option<Function> {
        self.btf.function(name)
    }

    fn structure(&self, name: &str) -> Option<TypeId> {
        self.btf.structure(name)
    }

    fn structure_name(&self, id: TypeId) -> String {
        self.btf.structure_name(id)
    }

    fn is_union(&self, id: TypeId) -> bool {
        self.btf.is_union(id)
    }

    fn is_bit_field(&self, id: TypeId, member: &str) -> bool {
        self.btf.is_bit_field(id, member)
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        self.btf.members(id)
    }

    fn kind(&self, id: TypeId) -> Type {
        self.btf.kind(id)
    }

    fn program(&self, path: &str) -> Option<Result<Program, ProgramError>> {
        Some(Program::read(Path::new(path)))
    }

    fn tracepoints(&self) -> Vec<String> {
        self.btf.tracepoints()
    }

    fn functions(&self) -> Vec<String> {
        self.btf.functions()
    }
}
