//! Programs and libraries that points are put on: whether they have what a point names, and where it lies.

mod elf;
mod probe;

use std::collections::HashMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::{nearest, regular};
use elf::{Elf, Kind, Refused};
use probe::Probe;

/// Names are compared with at most so many others: a browser has a million.
const MOST_COMPARED: usize = 100_000;

/// A program or a library.
pub struct Program {
    path: PathBuf,
    elf: Elf,
    /// Where the functions of each name are.
    places: HashMap<String, Places>,
    probes: Vec<Probe>,
}

/// What a name stands for.
#[derive(Default)]
struct Places {
    function: Option<u64>,
    is_chooser: bool,
    is_imported: bool,
}

impl Places {
    fn of(elf: &Elf) -> HashMap<String, Places> {
        let mut all: HashMap<String, Places> = HashMap::new();
        for symbol in elf.symbols() {
            let places = match all.get_mut(symbol.name) {
                Some(places) => places,
                None => all.entry(symbol.name.to_owned()).or_default(),
            };
            match symbol.kind {
                Kind::Function => _ = places.function.get_or_insert(symbol.address),
                Kind::Chooser => places.is_chooser = true,
                Kind::Imported => places.is_imported = true,
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
        /// What may have been meant.
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
    /// What to do about it, if anybody knows.
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
enum Place<'a> {
    /// So many bytes behind the beginning of a function.
    Symbol(&'a str, u64),
    /// An address as `nm` and `objdump` print it.
    Address(u64),
}

impl<'a> Place<'a> {
    fn of(text: &'a str) -> Place<'a> {
        let hexadecimal = |text: &str| u64::from_str_radix(text.strip_prefix("0x")?, 16).ok();
        if let Some(address) = hexadecimal(text) {
            return Place::Address(address);
        }
        let within = text.rsplit_once('+').and_then(|(symbol, by)| Some((symbol, hexadecimal(by)?)));
        let (symbol, by) = within.unwrap_or((text, 0));
        Place::Symbol(symbol, by)
    }
}

/// Programs that were read, each once: a schema may have a thousand points in one.
#[derive(Default)]
pub struct Programs(Mutex<HashMap<PathBuf, Arc<Program>>>);

impl Programs {
    /// The program at this path.
    ///
    /// # Errors
    ///
    /// As [`Program::read`].
    pub fn get(&self, path: &Path) -> Result<Arc<Program>, ProgramError> {
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
    /// Reads what points can be put on.
    ///
    /// # Errors
    ///
    /// If the file is not there, may not be read, or is no program for this machine, and no regular file at all.
    pub fn read(path: &Path) -> Result<Program, ProgramError> {
        let near = || near_file(path);
        let unread = |source| ProgramError::Read { path: path.to_owned(), source, near: near() };
        Program::of_file(path, &regular::open(path).map_err(unread)?)
    }

    /// The same of a file that is open. Messages call it `path`.
    ///
    /// # Errors
    ///
    /// As [`Program::read`].
    pub fn of_file(path: &Path, file: &File) -> Result<Program, ProgramError> {
        let path = path.to_owned();
        match Elf::read(file) {
            Ok(elf) => {
                let probes = elf.notes.iter().flat_map(|notes| probe::probes(notes)).collect();
                Ok(Program { path, places: Places::of(&elf), elf, probes })
            }
            Err(Refused::Read(source)) => Err(ProgramError::Read { path, source, near: None }),
            Err(Refused::Format(what)) => Err(ProgramError::Format { path, what }),
        }
    }

    /// Where in the file the code of a place lies: `SYMBOL`, `SYMBOL+0x10`, or an address such as `0x4010`.
    ///
    /// # Errors
    ///
    /// If there is no such function, or no code.
    pub fn offset(&self, place: &str) -> Result<u64, ProgramError> {
        let address = match Place::of(place) {
            Place::Address(address) => address,
            Place::Symbol(name, by) => self.function(name)?.saturating_add(by),
        };
        let title = || format!("{} has no code at {address:#x}", self.path.display());
        self.elf.offset_of(address).ok_or_else(|| ProgramError::Absent { title: title(), help: None })
    }

    /// Whether a function returns at this place: one does as a whole.
    pub(crate) fn is_whole(place: &str) -> bool {
        !matches!(Place::of(place), Place::Symbol(_, 1..))
    }

    fn function(&self, name: &str) -> Result<u64, ProgramError> {
        let path = self.path.display();
        let places = self.places.get(name);
        // A library may have an older function of the same name, which programs built today do not call.
        if places.is_some_and(|places| places.is_chooser) {
            let title =
                format!("`{name}` of {path} is several functions; each machine uses the one that suits it");
            let help = "name that one; where symbols are missing, its address as `perf top` shows it";
            return Err(ProgramError::Absent { title, help: Some(help.to_owned()) });
        }
        let absent = || {
            let title = format!("{path} has no function `{name}`");
            let is_imported = places.is_some_and(|places| places.is_imported);
            ProgramError::Absent { title, help: self.help(name, is_imported) }
        };
        places.and_then(|places| places.function).ok_or_else(absent)
    }

    fn help(&self, name: &str, is_imported: bool) -> Option<String> {
        const STRIPPED: &str = "it has only the names that it exports (`strip` took the others); \
            `objdump -d` shows addresses, which do as well: `\"0x…\"`";
        if is_imported {
            return Some(format!("it takes `{name}` from a library: put the point on that, `ldd` names it"));
        }
        let near = nearest::nearest(name, self.functions()).map(|near| format!("did you mean `{near}`?"));
        near.or_else(|| (!self.elf.has_all_symbols).then(|| STRIPPED.to_owned()))
    }

    fn functions(&self) -> impl Iterator<Item = &str> {
        let own = self.elf.symbols().filter(|symbol| symbol.kind == Kind::Function);
        own.map(|symbol| symbol.name).take(MOST_COMPARED)
    }

    /// How many values a static probe hands over.
    ///
    /// # Errors
    ///
    /// If there is no such probe.
    pub fn arguments_of(&self, provider: &str, name: &str) -> Result<usize, ProgramError> {
        let of_name = self.probes.iter().filter(|probe| probe.provider == provider && probe.name == name);
        let absent = || {
            let title = format!("{} has no static probe `{provider}:{name}`", self.path.display());
            ProgramError::Absent { title, help: Some(self.probe_help(provider, name)) }
        };
        of_name.map(|probe| probe.arguments).max().ok_or_else(absent)
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

/// The file beside it whose name is nearest.
fn near_file(path: &Path) -> Option<String> {
    let (directory, name) = (path.parent()?, path.file_name()?.to_str()?);
    let entries =
        fs::read_dir(directory).ok()?.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let names: Vec<_> = entries.take(MOST_COMPARED).collect();
    let near = nearest::nearest(name, names.iter().map(String::as_str)).filter(|near| *near != name)?;
    Some(directory.join(near).display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_8_places_are_symbols_bytes_behind_them_or_addresses() {
        assert_eq!(Place::of("main"), Place::Symbol("main", 0));
        assert_eq!(Place::of("main+0x1f"), Place::Symbol("main", 31));
        assert_eq!(Place::of("operator+"), Place::Symbol("operator+", 0));
        assert_eq!(Place::of("0x401136"), Place::Address(0x40_1136));
        assert_eq!(Place::of("0xmain"), Place::Symbol("0xmain", 0));
    }
}
