//! From the text of a schema's programs to an object. Those of the shipped schemata are embedded, others are
//! compiled here.

use std::borrow::Cow;
use std::ffi::OsString;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::process::{Command, Stdio};
use std::{env, fs, io};

use libbpf_rs::libbpf_sys::API_HEADERS;

use super::{Cache, shipped};
use crate::KernelError;

/// The headers that programs include, apart from those of the loader library.
const HEADERS: [(&str, &str); 6] = [
    ("types.h", include_str!("../../bpf/types.h")),
    ("domain_table.bpf.h", include_str!("../../bpf/domain_table.bpf.h")),
    ("record.bpf.h", include_str!("../../bpf/record.bpf.h")),
    ("usdt.h", include_str!("../../bpf/usdt.h")),
    ("linux/errno.h", ""),
    ("mete_trace.h", include_str!("../../../mete-trace/include/mete_trace.h")),
];
/// The compilers that are tried, in this order, unless `CLANG` names one.
const COMPILERS: [&str; 7] =
    ["clang-19", "clang", "clang-21", "clang-20", "clang-18", "clang-17", "clang-16"];
/// `-fno-crash-diagnostics`, because clang would otherwise leave files behind when it crashes.
const ARGUMENTS: [&str; 10] = [
    "-target",
    "bpf",
    "-mcpu=v3",
    "-O2",
    "-g",
    "-I.",
    "-fno-crash-diagnostics",
    TARGET,
    "-c",
    "programs.bpf.c",
];
/// The oldest clang that compiles these programs.
const OLDEST: u32 = 16;
/// What the headers of the loader library call this machine.
#[cfg(target_arch = "x86_64")]
const TARGET: &str = "-D__TARGET_ARCH_x86";
#[cfg(not(target_arch = "x86_64"))]
const TARGET: &str = "-D__TARGET_ARCH_other";

/// The first line of the programs: they are under the licences of all eBPF programs here.
const LICENCE: &str = "// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0-only";

/// The programs as a file that can be compiled.
pub fn source(text: &str) -> String {
    format!("{LICENCE}\n#include \"record.bpf.h\"\n\n{text}")
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

/// A compiler that this machine has.
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

    /// A number that changes with everything that changes the object. It protects against mistakes, not
    /// against attacks: the cache belongs to its user alone.
    fn key(&self, source: &str) -> u64 {
        let mut hash = DefaultHasher::new();
        (source, &self.version, ARGUMENTS, HEADERS, API_HEADERS).hash(&mut hash);
        hash.finish()
    }

    /// Compiles in an empty directory.
    fn compile(&self, source: &str, place: &Path) -> Result<Vec<u8>, KernelError> {
        let failed = |source| KernelError::Cache { path: place.to_owned(), source };
        write_all(place, source).map_err(failed)?;
        let mut command = Command::new(&self.name);
        let output = command.args(ARGUMENTS).current_dir(place).stdin(Stdio::null()).output();
        let output = output.map_err(|source| KernelError::NoCompiler {
            compiler: self.name.display().to_string(),
            source,
        })?;
        if !output.status.success() {
            return Err(self.refusal(&String::from_utf8_lossy(&output.stderr)));
        }
        fs::read(place.join("programs.bpf.o")).map_err(failed)
    }

    /// Why it does not compile the programs of a schema.
    fn refusal(&self, said: &str) -> KernelError {
        if TOO_LARGE.iter().any(|words| said.contains(words)) {
            return KernelError::TooLarge;
        }
        let is_old = self.major().is_some_and(|major| major < OLDEST);
        let why =
            if is_old { "clang 16 or newer is needed" } else { "this is a fault of mete, please report it" };
        let said = said.trim_end().to_owned();
        KernelError::Compiler { compiler: self.name.display().to_string(), why, said }
    }

    /// The main version: 19 for `Debian clang version 19.1.7 (3+b1)`.
    fn major(&self) -> Option<u32> {
        let text = String::from_utf8_lossy(&self.version);
        text.split_once("version ")?.1.split('.').next()?.parse().ok()
    }
}

/// How clang says that a program is too large for a jump or for the stack.
const TOO_LARGE: [&str; 3] = ["Branch target out of insn range", "BPF stack limit", "stack size exceeds"];

/// Writes the source and all headers that it includes.
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

#[cfg(test)]
#[path = "../../../mete-schema/tests/support/fake.rs"]
mod fake;
#[cfg(test)]
#[path = "../../../mete-schema/tests/support/names.rs"]
mod names;

#[cfg(test)]
mod tests {
    use std::error::Error;

    use mete_schema::kernel::Type;
    use mete_schema::types::Int;
    use mete_schema::{Schema, Source, check, generate};

    use super::fake::Fake;
    use super::*;

    fn clang(version: &str) -> Compiler {
        Compiler { name: "clang".into(), version: version.as_bytes().to_vec() }
    }

    #[test]
    fn klog_8_a_compiler_that_is_new_enough_is_not_called_too_old() {
        let said = |version, said| clang(version).refusal(said).to_string();
        let new = "Debian clang version 19.1.7 (3+b1)\nTarget: x86_64-pc-linux-gnu";
        let old = "Ubuntu clang version 14.0.0-1ubuntu1.1";
        let fault = "clang does not compile the schema's programs; this is a fault of mete, please report it\nerror: x";
        assert_eq!(said(new, "error: x\n"), fault);
        assert_eq!(said("something else", "error: x\n"), fault);
        let too_old = "clang does not compile the schema's programs; clang 16 or newer is needed\nerror: x";
        assert_eq!(said(old, "error: x\n"), too_old);
        let too_large = "what the schema logs at one place is too much for one program; log fewer events or simpler values \
            there, or some of them at another point";
        for version in [new, old] {
            assert_eq!(
                said(version, "fatal error: error in backend: Branch target out of insn range\n"),
                too_large
            );
        }
    }

    /// Programs for a kernel that has one tracepoint. Only the first event is logged there.
    fn text(schema: &str) -> Result<String, Box<dyn Error>> {
        let mut kernel = Fake::default();
        kernel.add_tracepoint("sched_switch", &[("preempt", Type::Int(Int::signed(32)))]);
        let schema = Schema::read(&[Source::new("test", schema)])?;
        let checked = check(&schema, Some(&kernel))?;
        Ok(source(&generate::bpf(&schema, &checked, &kernel)?))
    }

    #[test]
    fn klog_8_an_event_may_be_called_as_anything_in_the_headers_of_its_programs() -> Result<(), Box<dyn Error>>
    {
        let Ok(compiler) = Compiler::find() else {
            println!("SKIPPED: there is no clang");
            return Ok(());
        };
        let names = names::nasty(env!("CARGO_MANIFEST_DIR"), &text("event A { int a }")?);
        assert!(names.len() > 1000, "{}", names.len());
        let compiles = |mut schema: String| {
            schema.push_str("event at_a_point { int pid }\nat tp_btf:sched_switch log at_a_point(preempt)\n");
            schema.push_str("at usdt:\"/program\":provider:probe log at_a_point(int(arg0))");
            let place = tempfile::tempdir().map_err(|error| error.to_string())?;
            let text = text(&schema).map_err(|error| error.to_string())?;
            let compiled = compiler.compile(&text, place.path()).map_err(|error| error.to_string())?;
            assert!(compiled.starts_with(b"\x7fELF"));
            Ok::<_, String>(())
        };
        // The compiler takes a quarter of a minute for each.
        std::thread::scope(|scope| {
            let schemata = names::schemata(&names, 500).into_iter();
            let all: Vec<_> = schemata.map(|schema| scope.spawn(|| compiles(schema))).collect();
            all.into_iter().try_for_each(|one| one.join().map_err(|_| "it panicked")?.map_err(Into::into))
        })
    }
}
