//! Programs and libraries that have points: whether a place that a point names exists, and where it lies.

mod elf;
mod probe;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use elf::{Elf, ElfRefusal, SymbolKind};
use mete_base::{nearest, regular};
use probe::Probe;

/// The most names that a mistyped one is compared with. A browser has a million.
const MOST_COMPARED: usize = 100_000;

/// A program or a library.
pub struct Program {
    path: PathBuf,
    elf: Elf,
    /// What each name of a function stands for.
    functions: HashMap<String, NamedFunction>,
    probes: Vec<Probe>,
}

/// What the symbols of one name stand for.
#[derive(Default)]
struct NamedFunction {
    address: Option<u64>,
    is_chooser: bool,
    is_imported: bool,
}

impl NamedFunction {
    fn all_of(elf: &Elf) -> HashMap<String, NamedFunction> {
        let mut all: HashMap<String, NamedFunction> = HashMap::new();
        for symbol in elf.symbols() {
            // `entry` alone would copy the name of each symbol, even of one that is there already.
            let named = match all.get_mut(symbol.name) {
                Some(named) => named,
                None => all.entry(symbol.name.to_owned()).or_default(),
            };
            match symbol.kind {
                SymbolKind::Function => _ = named.address.get_or_insert(symbol.address),
                SymbolKind::Chooser => named.is_chooser = true,
                SymbolKind::Imported => named.is_imported = true,
            }
        }
        all
    }
}

/// Why nothing can be recorded at a place of a program.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// The file cannot be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
        /// The path that may have been meant.
        near: Option<String>,
    },
    /// The file is something else.
    #[error("{} cannot have points: {what}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// It has no such place.
    #[error("{title}")]
    Absent {
        /// What is missing.
        title: String,
        /// What to do about it.
        help: Option<String>,
    },
}

impl ProgramError {
    /// What to do about it, if that is known.
    pub fn help(&self) -> Option<String> {
        match self {
            ProgramError::Read { near, .. } => near.as_ref().map(|near| format!("did you mean {near}?")),
            ProgramError::Format { .. } => None,
            ProgramError::Absent { help, .. } => help.clone(),
        }
    }
}

/// A place in a program: `SYMBOL`, `SYMBOL+0x10` or `0x4010`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CodePlace<'a> {
    /// A function, and the number of bytes behind its beginning.
    Symbol(&'a str, u64),
    /// An address as `nm` and `objdump` print it.
    Address(u64),
}

impl<'a> CodePlace<'a> {
    fn of(text: &'a str) -> CodePlace<'a> {
        if let Some(address) = hexadecimal(text) {
            return CodePlace::Address(address);
        }
        // Names of C++ may have a `+`, too: `operator+` is a whole symbol.
        let within = text.rsplit_once('+').and_then(|(symbol, by)| Some((symbol, hexadecimal(by)?)));
        let (symbol, by) = within.unwrap_or((text, 0));
        CodePlace::Symbol(symbol, by)
    }
}

fn hexadecimal(text: &str) -> Option<u64> {
    u64::from_str_radix(text.strip_prefix("0x")?, 16).ok()
}

/// Programs that have been read. Each is read once, because a schema may have a thousand points in one.
#[derive(Default)]
pub struct Programs(Mutex<HashMap<PathBuf, Arc<Program>>>);

impl Programs {
    /// The program at this path.
    ///
    /// # Errors
    ///
    /// As [`Program::read`].
    pub fn get(&self, path: &Path) -> Result<Arc<Program>, ProgramError> {
        // A program that was inserted is whole, even if another thread has panicked since.
        let mut programs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = programs.get(path) {
            return Ok(Arc::clone(program));
        }
        let program = Arc::new(Program::read(path)?);
        programs.insert(path.to_owned(), Arc::clone(&program));
        Ok(program)
    }
}

impl Program {
    /// Reads a program or a library.
    ///
    /// # Errors
    ///
    /// If the file does not exist, may not be read, is not a regular file, or is no program for this machine.
    pub fn read(path: &Path) -> Result<Program, ProgramError> {
        match regular::open(path) {
            Ok(file) => Program::of_file(path, &file),
            Err(source) => Err(ProgramError::Read { path: path.to_owned(), source, near: near_file(path) }),
        }
    }

    /// Reads a program or a library from an open file. Messages call it `path`.
    ///
    /// # Errors
    ///
    /// As [`Program::read`].
    pub fn of_file(path: &Path, file: &File) -> Result<Program, ProgramError> {
        let path = path.to_owned();
        match Elf::read(file) {
            Ok(elf) => {
                let probes = elf.notes.iter().flat_map(|notes| probe::probes(notes)).collect();
                Ok(Program { path, functions: NamedFunction::all_of(&elf), elf, probes })
            }
            Err(ElfRefusal::Read(source)) => Err(ProgramError::Read { path, source, near: None }),
            Err(ElfRefusal::Format(what)) => Err(ProgramError::Format { path, what }),
        }
    }

    /// The offset in the file of the code at a place: `SYMBOL`, `SYMBOL+0x10`, or an address such as
    /// `0x4010`.
    ///
    /// # Errors
    ///
    /// If there is no such function, or no code.
    pub fn offset(&self, place: &str) -> Result<u64, ProgramError> {
        let address = match CodePlace::of(place) {
            CodePlace::Address(address) => address,
            // No code lies at the largest address, so that a sum that is too large finds none.
            CodePlace::Symbol(name, by) => self.function(name)?.saturating_add(by),
        };
        self.elf.offset_of(address).ok_or_else(|| {
            let title = format!("{} has no code at {address:#x}", self.path.display());
            ProgramError::Absent { title, help: None }
        })
    }

    /// Whether a place is a whole function. Only a whole function returns.
    pub(crate) fn is_whole(place: &str) -> bool {
        !matches!(CodePlace::of(place), CodePlace::Symbol(_, 1..))
    }

    fn function(&self, name: &str) -> Result<u64, ProgramError> {
        let path = self.path.display();
        let named = self.functions.get(name);
        // The chooser takes precedence: a library may also have an older function of the same name, which
        // programs that are built today do not call.
        if named.is_some_and(|named| named.is_chooser) {
            let title = format!(
                "`{name}` of {path} stands for several functions; each machine uses the one that suits it"
            );
            let help =
                "name the one that is used, or its address as `perf top` shows it where symbols are missing";
            return Err(ProgramError::Absent { title, help: Some(help.to_owned()) });
        }
        named.and_then(|named| named.address).ok_or_else(|| {
            let title = format!("{path} has no function `{name}`");
            let is_imported = named.is_some_and(|named| named.is_imported);
            ProgramError::Absent { title, help: self.help(name, is_imported) }
        })
    }

    fn help(&self, name: &str, is_imported: bool) -> Option<String> {
        const STRIPPED: &str = "it has only the names that it exports (`strip` removed the others); \
            `objdump -d` shows addresses, which can be used instead: `\"0x…\"`";
        if is_imported {
            return Some(format!(
                "it takes `{name}` from a library: put the point on the library, which `ldd` names"
            ));
        }
        let near = nearest::nearest(name, self.functions()).map(|near| format!("did you mean `{near}`?"));
        near.or_else(|| (!self.elf.has_all_symbols).then(|| STRIPPED.to_owned()))
    }

    fn functions(&self) -> impl Iterator<Item = &str> {
        let own = self.elf.symbols().filter(|symbol| symbol.kind == SymbolKind::Function);
        own.map(|symbol| symbol.name).take(MOST_COMPARED)
    }

    /// The number of values that a static probe passes.
    ///
    /// # Errors
    ///
    /// If there is no such probe.
    pub fn arguments_of(&self, provider: &str, name: &str) -> Result<usize, ProgramError> {
        // A probe has a note for each place where the compiler has put it.
        let of_name = self.probes.iter().filter(|probe| probe.provider == provider && probe.name == name);
        of_name.map(|probe| probe.arguments).max().ok_or_else(|| {
            let title = format!("{} has no static probe `{provider}:{name}`", self.path.display());
            ProgramError::Absent { title, help: Some(self.probe_help(provider, name)) }
        })
    }

    fn probe_help(&self, provider: &str, name: &str) -> String {
        let names: Vec<_> =
            self.probes.iter().map(|probe| format!("{}:{}", probe.provider, probe.name)).collect();
        if names.is_empty() {
            return "it has none at all; `uprobe:` takes a function".to_owned();
        }
        let known = names.iter().map(String::as_str);
        nearest::help(&format!("{provider}:{name}"), known, "it has")
            .unwrap_or_else(|| "`readelf -n` lists those that it has".to_owned())
    }
}

/// The file in the same directory whose name is nearest.
fn near_file(path: &Path) -> Option<String> {
    let (directory, name) = (path.parent()?, path.file_name()?.to_str()?);
    let entries =
        fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<_> = entries.take(MOST_COMPARED).collect();
    // The file itself may be there, and only unreadable.
    let near = nearest::nearest(name, names.iter().map(String::as_str)).filter(|near| *near != name)?;
    Some(directory.join(near).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_8_places_are_symbols_bytes_behind_them_or_addresses() {
        assert_eq!(CodePlace::of("main"), CodePlace::Symbol("main", 0));
        assert_eq!(CodePlace::of("main+0x1f"), CodePlace::Symbol("main", 31));
        assert_eq!(CodePlace::of("operator+"), CodePlace::Symbol("operator+", 0));
        assert_eq!(CodePlace::of("0x401136"), CodePlace::Address(0x40_1136));
        assert_eq!(CodePlace::of("0xmain"), CodePlace::Symbol("0xmain", 0));
    }
}
