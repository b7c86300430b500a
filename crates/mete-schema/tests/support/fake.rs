//! Types given by hand, instead of those of a kernel. Other crates include this file in their tests.

#![allow(dead_code, reason = "each test uses a part")]

use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use mete_schema::kernel::{Function, KernelTypes, Type, TypeId, Typed};
use mete_schema::program::{Program, ProgramError};

/// A kernel that has what was added to it, and nothing else.
#[derive(Clone, Debug, Default)]
pub struct Fake {
    kinds: Vec<Type>,
    structures: Vec<(String, TypeId, Vec<Typed>)>,
    tracepoints: Vec<(String, Vec<Typed>)>,
    records: Vec<(String, Vec<Typed>)>,
    functions: Vec<(String, Function)>,
    programs: Vec<(String, PathBuf)>,
}

fn typed(members: &[(&str, Type)]) -> Vec<Typed> {
    members.iter().map(|(name, kind)| Typed::new(*name, kind.clone())).collect()
}

impl Fake {
    /// Adds a type.
    pub fn add(&mut self, kind: Type) -> TypeId {
        self.kinds.push(kind);
        (self.kinds.len() - 1) as TypeId
    }

    /// Adds a structure.
    pub fn add_structure(&mut self, name: &str, members: &[(&str, Type)]) -> TypeId {
        let id = self.kinds.len() as TypeId;
        self.kinds.push(Type::Record(id));
        self.structures.push((name.to_owned(), id, typed(members)));
        id
    }

    /// Adds a tracepoint by the arguments of its programs.
    pub fn add_tracepoint(&mut self, name: &str, arguments: &[(&str, Type)]) {
        self.tracepoints.push((name.to_owned(), typed(arguments)));
    }

    /// Adds a tracepoint `group:name` by the fields of its record.
    pub fn add_record(&mut self, name: &str, fields: &[(&str, Type)]) {
        self.records.push((name.to_owned(), typed(fields)));
    }

    /// Adds a function.
    pub fn add_function(&mut self, name: &str, arguments: &[(&str, Type)], result: Type) {
        self.functions.push((name.to_owned(), Function { arguments: typed(arguments), result }));
    }

    /// Adds a program that is at this path on its machine, and in a file here.
    pub fn add_program(&mut self, path: &str, file: impl Into<PathBuf>) {
        self.programs.push((path.to_owned(), file.into()));
    }
}

fn find<T: Clone>(list: &[(String, T)], name: &str) -> Option<T> {
    list.iter().find(|(known, _)| known == name).map(|(_, found)| found.clone())
}

impl KernelTypes for Fake {
    fn name(&self) -> &str {
        "this kernel"
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        find(&self.tracepoints, name)
    }

    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        Ok(find(&self.records, &format!("{group}:{name}")))
    }

    fn function(&self, name: &str) -> Option<Function> {
        find(&self.functions, name)
    }

    fn structure(&self, name: &str) -> Option<TypeId> {
        self.structures.iter().find(|(known, ..)| known == name).map(|(_, id, _)| *id)
    }

    fn structure_name(&self, id: TypeId) -> String {
        let name = self.structures.iter().find(|(_, known, _)| *known == id).map(|(name, ..)| name.clone());
        name.unwrap_or_default()
    }

    fn is_union(&self, _: TypeId) -> bool {
        false
    }

    fn is_bit_field(&self, id: TypeId, member: &str) -> bool {
        // Only bit fields have such widths.
        self.members(id).iter().any(|it| {
            it.name == member
                && matches!(it.kind, Type::Int(int) if !int.bits.is_power_of_two() || int.bits < 8)
        })
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        let members =
            self.structures.iter().find(|(_, known, _)| *known == id).map(|(.., members)| members.clone());
        members.unwrap_or_default()
    }

    fn kind(&self, id: TypeId) -> Type {
        self.kinds.get(id as usize).cloned().unwrap_or(Type::Unknown)
    }

    fn program(&self, path: &str) -> Option<Result<Arc<Program>, ProgramError>> {
        // A kernel without any programs does not know what its machine has.
        let (near, _) = self.programs.first()?;
        let file = find(&self.programs, path).map_or_else(|| Err(ErrorKind::NotFound.into()), File::open);
        Some(match file {
            Ok(file) => Program::of_file(Path::new(path), &file).map(Arc::new),
            Err(source) => Err(ProgramError::Read { path: path.into(), source, near: Some(near.clone()) }),
        })
    }

    fn tracepoints(&self) -> Vec<String> {
        self.tracepoints.iter().map(|(name, _)| name.clone()).collect()
    }

    fn functions(&self) -> Vec<String> {
        self.functions.iter().map(|(name, _)| name.clone()).collect()
    }
}
