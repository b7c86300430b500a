//! The running kernel: its own types with those of its modules, from `/sys/kernel/btf/vmlinux` and the files
//! beside it; the records in its tracing file system; and the programs of the machine.
//!
//! The numbers of a module's types continue the kernel's, so that two modules give the same number to
//! different types. Here the highest eight bits of a number say which module the type belongs to.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use super::{Btf, BtfError, Function, KernelTypes, Type, TypeId, Typed, read_tracing_file, record_fields};
use crate::program::{Program, ProgramError, Programs};

/// The bits below are the number of a type in its kernel or module. A kernel has some two hundred thousand
/// types.
const OWNER_SHIFT: u32 = 24;
const MOST_MODULES: usize = 255;
const KERNEL: &str = "vmlinux";

/// The running kernel and its modules.
pub struct Running {
    kernel: Arc<Btf>,
    directory: PathBuf,
    /// The modules' types. They are read when a schema names something that the kernel itself does not have.
    modules: OnceLock<Vec<Btf>>,
    programs: Programs,
}

impl Running {
    /// Reads the types of the running kernel.
    ///
    /// # Errors
    ///
    /// If the kernel has no type information, or this process may not read it.
    pub fn new() -> Result<Running, BtfError> {
        Running::with_types(Path::new("/sys/kernel/btf"), "the running kernel")
    }

    /// Reads the types in a directory such as `/sys/kernel/btf`. Messages call the kernel `name`.
    ///
    /// # Errors
    ///
    /// If the kernel itself has no type information there, or this process may not read it. A module without
    /// type information is left out.
    pub fn with_types(directory: &Path, name: &str) -> Result<Running, BtfError> {
        let kernel = Arc::new(Btf::read(&directory.join(KERNEL))?.called(name));
        let (modules, programs) = (OnceLock::new(), Programs::default());
        Ok(Running { kernel, directory: directory.to_owned(), modules, programs })
    }

    fn modules(&self) -> &[Btf] {
        self.modules.get_or_init(|| {
            let entries = fs::read_dir(&self.directory).into_iter().flatten().flatten();
            let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
            paths.retain(|path| path.file_name().is_some_and(|name| name != KERNEL));
            // A module gets the same number every time.
            paths.sort();
            let modules = paths.iter().filter_map(|path| Btf::read_module(path, &self.kernel).ok());
            modules.take(MOST_MODULES).collect()
        })
    }

    /// What the kernel has, or else the first module that has it; with the number of the owner, 0 for the
    /// kernel.
    fn first<T>(&self, find: impl Fn(&Btf) -> Option<T>) -> Option<(T, u32)> {
        // Most schemata need only the kernel, so that its modules need not be read.
        let own = find(&self.kernel).map(|found| (found, 0));
        own.or_else(|| {
            let modules = (1..).zip(self.modules());
            modules.into_iter().find_map(|(owner, module)| Some((find(module)?, owner)))
        })
    }

    /// The owner of a type: its types, the type's number there, and the owner's number.
    fn owner(&self, id: TypeId) -> (&Btf, TypeId, u32) {
        let owner = id >> OWNER_SHIFT;
        let module = (owner as usize).checked_sub(1).and_then(|nth| self.modules().get(nth));
        (module.unwrap_or(&self.kernel), id & ((1 << OWNER_SHIFT) - 1), owner)
    }

    /// The number, here, of a type that its owner calls `id`.
    fn id(&self, id: TypeId, owner: u32) -> TypeId {
        // A module's types lead to types of the kernel, too, which are the same from everywhere.
        if self.kernel.has(id) { id } else { id | owner << OWNER_SHIFT }
    }

    fn kind_of(&self, kind: Type, owner: u32) -> Type {
        match kind {
            Type::Pointer(Some(id)) => Type::Pointer(Some(self.id(id, owner))),
            Type::Record(id) => Type::Record(self.id(id, owner)),
            Type::Array(id, count) => Type::Array(self.id(id, owner), count),
            kind => kind,
        }
    }

    fn typed_of(&self, typed: Vec<Typed>, owner: u32) -> Vec<Typed> {
        typed.into_iter().map(|it| Typed { kind: self.kind_of(it.kind, owner), ..it }).collect()
    }

    fn all(&self, of: impl Fn(&Btf) -> Vec<String>) -> Vec<String> {
        std::iter::once(&*self.kernel).chain(self.modules()).flat_map(of).collect()
    }
}

impl KernelTypes for Running {
    fn name(&self) -> &str {
        self.kernel.name()
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        self.first(|types| types.tracepoint(name)).map(|(typed, owner)| self.typed_of(typed, owner))
    }

    fn is_of_module(&self, tracepoint: &str) -> bool {
        self.first(|types| types.tracepoint(tracepoint)).is_some_and(|(_, owner)| owner > 0)
    }

    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        match read_tracing_file(&format!("events/{group}/{name}/format")) {
            Ok(text) => Ok(Some(record_fields(&text))),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            // A process that may not read there may still learn the record from the kernel's types. An error
            // means that this owner does not describe the record; another one may.
            Err(_) => match self.first(|types| types.record(group, name).ok()) {
                Some((fields, owner)) => Ok(fields.map(|fields| self.typed_of(fields, owner))),
                None => self.kernel.record(group, name),
            },
        }
    }

    fn function(&self, name: &str) -> Option<Function> {
        let (Function { arguments, result }, owner) = self.first(|types| types.function(name))?;
        let arguments = self.typed_of(arguments, owner);
        Some(Function { arguments, result: self.kind_of(result, owner) })
    }

    fn structure(&self, name: &str) -> Option<TypeId> {
        self.first(|types| types.structure(name)).map(|(id, owner)| self.id(id, owner))
    }

    fn structure_name(&self, id: TypeId) -> String {
        let (types, id, _) = self.owner(id);
        types.structure_name(id)
    }

    fn is_union(&self, id: TypeId) -> bool {
        let (types, id, _) = self.owner(id);
        types.is_union(id)
    }

    fn is_bit_field(&self, id: TypeId, member: &str) -> bool {
        let (types, id, _) = self.owner(id);
        types.is_bit_field(id, member)
    }

    fn is_enumeration(&self, id: TypeId, member: &str) -> bool {
        let (types, id, _) = self.owner(id);
        types.is_enumeration(id, member)
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        let (types, id, owner) = self.owner(id);
        self.typed_of(types.members(id), owner)
    }

    fn kind(&self, id: TypeId) -> Type {
        let (types, id, owner) = self.owner(id);
        self.kind_of(types.kind(id), owner)
    }

    fn program(&self, path: &str) -> Option<Result<Arc<Program>, ProgramError>> {
        Some(self.programs.get(Path::new(path)))
    }

    fn tracepoints(&self) -> Vec<String> {
        self.all(Btf::tracepoints)
    }

    fn functions(&self) -> Vec<String> {
        self.all(Btf::functions)
    }
}
