//! Compiles the eBPF programs of `bpf/` into objects that the library embeds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

const OBJECTS: [&str; 3] = ["mete", "bench", "capability"];
/// Made from the shipped schemata; a test keeps them so.
const GENERATED: [&str; 3] = ["scheduler", "locking", "interrupt"];

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let include = [here.join("bpf"), here.join("../mete-log/include"), here.join("../mete-trace/include")];
    println!("cargo:rerun-if-env-changed=CLANG");
    for directory in &include {
        println!("cargo:rerun-if-changed={}", directory.display());
    }
    for name in OBJECTS {
        compile(&here.join("bpf"), &include, name);
    }
    for name in GENERATED {
        compile(&here.join("bpf/schemas"), &include, name);
    }
}

fn compile(directory: &Path, include: &[PathBuf], name: &str) {
    let object = PathBuf::from(variable("OUT_DIR")).join(format!("{name}.bpf.o"));
    let include = include.iter().flat_map(|directory| ["-I".into(), directory.into()]);
    let built = SkeletonBuilder::new()
        .source(directory.join(format!("{name}.bpf.c")))
        .obj(&object)
        .clang(clang())
        .clang_args(include.chain(["-mcpu=v3".into(), "-Wall".into()]).collect::<Vec<OsString>>())
        .build();
    if let Err(error) = built {
        eprintln!(
            "{error:?}\neBPF needs clang 16 or newer (Debian: apt install clang-19); CLANG names another one."
        );
        process::exit(1);
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"))
}

/// `CLANG`, or the version that this is tested with where it is installed, or whatever `clang` is.
fn clang() -> OsString {
    let is_installed = |name: &str| process::Command::new(name).arg("--version").output().is_ok();
    let default = if is_installed("clang-19") { "clang-19" } else { "clang" };
    env::var_os("CLANG").unwrap_or_else(|| default.into())
}
