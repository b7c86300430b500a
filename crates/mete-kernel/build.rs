//! Compiles the eBPF programs of `bpf/` into objects that the library embeds.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

const OBJECTS: [&str; 3] = ["mete", "bench", "capability"];

fn main() {
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let include = here.join("../mete-log/include");
    println!("cargo:rerun-if-env-changed=CLANG");
    println!("cargo:rerun-if-changed={}", here.join("bpf").display());
    println!("cargo:rerun-if-changed={}", include.display());
    for name in OBJECTS {
        compile(&here, &include, name);
    }
}

fn compile(here: &Path, include: &Path, name: &str) {
    let object = PathBuf::from(variable("OUT_DIR")).join(format!("{name}.bpf.o"));
    let built = SkeletonBuilder::new()
        .source(here.join("bpf").join(format!("{name}.bpf.c")))
        .obj(&object)
        .clang(clang())
        .clang_args([OsString::from("-I"), include.into(), "-mcpu=v3".into(), "-Wall".into()])
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
