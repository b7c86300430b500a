//! From the text of a schema's programs to an object: the shipped schemata's are embedded, others are compiled here.

use std::borrow::Cow;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use libbpf_rs::libbpf_sys::API_HEADERS;

use super::{Cache, shipped};
use crate::KernelError;

/// What programs include, beside the loader library's own headers.
const HEADERS: [(&str, &str); 6] = [
    ("types.h", include_str!("../../bpf/types.h")),
    ("domain_table.h", include_str!("../../bpf/domain_table.h")),
    ("record.h", include_str!("../../bpf/record.h")),
    ("usdt.h", include_str!("../../bpf/usdt.h")),
    ("linux/errno.h", ""),
    ("mete_trace.h", include_str!("../../../mete-trace/include/mete_trace.h")),
];
/// Tried in this order where `CLANG` does not say which.
const COMPILERS: [&str; 7] =
    ["clang-19", "clang", "clang-21", "clang-20", "clang-18", "clang-17", "clang-16"];
const ARGUMENTS: [&str; 9] =
    ["-target", "bpf", "-mcpu=v3", "-O2", "-g", "-I.", TARGET, "-c", "programs.bpf.c"];
/// As the loader library's headers name the machine.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "-D__TARGET_ARCH_x86";
#[cfg(not(target_arch = "x86_64"))]
const TARGET: &str = "-D__TARGET_ARCH_other";

/// The programs as a file that can be compiled.
pub fn source(text: &str) -> String {
    format!("#include \"record.h\"\n\n{text}")
}

/// The object of these programs.
pub(super) fn object(text: &str, cache: &Cache) -> Result<Cow<'static, [u8]>, KernelError> {
    let source = source(text);
    if let Some(object) = shipped::object(&source) {
        return Ok(Cow::Borrowed(object));
    }
    let compiler = Compiler::find()?;
    let object = cache.get(compiler.key(&source), |place| compiler.compile(&source, place))?;
    Ok(Cow::Owned(object))
}

/// A compiler that can be run.
struct Compiler {
    name: OsString,
    version: Vec<u8>,
}

impl Compiler {
    fn find() -> Result<Compiler, KernelError> {
        let named = env::var_os("CLANG").map(|name| vec![name]);
        let names = named.unwrap_or_else(|| COMPILERS.map(OsString::from).to_vec());
        let mut refused = None;
        for name in names {
            match Command::new(&name).arg("--version").stdin(Stdio::null()).output() {
                Ok(said) => return Ok(Compiler { name, version: said.stdout }),
                Err(source) => refused = refused.or(Some((name, source))),
            }
        }
        let (name, source) = refused.unwrap_or_else(|| ("clang".into(), io::ErrorKind::NotFound.into()));
        Err(KernelError::NoCompiler { compiler: name.display().to_string(), source })
    }

    /// Changes with whatever changes the object. Against mistakes only: the cache belongs to its user alone.
    fn key(&self, source: &str) -> u64 {
        let mut hash = DefaultHasher::new();
        (source, &self.version, ARGUMENTS, HEADERS, API_HEADERS).hash(&mut hash);
        hash.finish()
    }

    /// Compiles in a directory that is empty.
    fn compile(&self, source: &str, place: &Path) -> Result<Vec<u8>, KernelError> {
        let failed = |source| KernelError::Cache { path: place.to_owned(), source };
        write_all(place, source).map_err(failed)?;
        let output = Command::new(&self.name)
            .args(ARGUMENTS)
            .current_dir(place)
            .stdin(Stdio::null())
            .output()
            .map_err(|source| KernelError::NoCompiler {
                compiler: self.name.display().to_string(),
                source,
            })?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr).trim_end().to_owned();
            return Err(KernelError::Compiler { compiler: self.name.display().to_string(), said });
        }
        fs::read(place.join("programs.bpf.o")).map_err(failed)
    }
}

fn write_all(place: &Path, source: &str) -> io::Result<()> {
    for directory in ["bpf", "linux"] {
        fs::create_dir(place.join(directory))?;
    }
    for (name, text) in API_HEADERS {
        fs::write(place.join("bpf").join(name), text)?;
    }
    for (name, text) in HEADERS {
        fs::write(place.join(name), text)?;
    }
    fs::write(place.join("programs.bpf.c"), source)
}
