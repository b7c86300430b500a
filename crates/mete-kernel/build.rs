//! Compiles the eBPF programs of `bpf/` into objects that the library embeds. For the objects of this crate
//! itself, it also generates a skeleton: Rust with a field for each map and program, and a type for each
//! global.

use std::ffi::OsString;
use std::fmt::Debug;
use std::path::{Path, PathBuf};
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

/// The objects with a skeleton: see `src/skeleton.rs`.
const OBJECTS: [&str; 4] = ["mete", "bench", "capability", "shared"];
/// The programs of the shipped schemata. They are loaded like those that are compiled at run time, so they
/// have no skeleton. A test keeps them as mete-schema generates them.
const GENERATED: [&str; 3] = ["scheduler", "locking", "interrupt"];

fn main() {
    println!("cargo:rerun-if-env-changed=CLANG");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let include = [here.join("bpf"), here.join("../mete-log/include"), here.join("../mete-trace/include")];
    for directory in &include {
        println!("cargo:rerun-if-changed={}", directory.display());
    }
    for name in OBJECTS {
        let skeleton = out.join(format!("{name}.skel.rs"));
        check(builder(&here.join("bpf"), &include, &out, name).build_and_generate(skeleton));
    }
    for name in GENERATED {
        check(builder(&here.join("bpf/schemas"), &include, &out, name).build());
    }
}

fn builder(directory: &Path, include: &[PathBuf], out: &Path, name: &str) -> SkeletonBuilder {
    let include = include.iter().flat_map(|directory| ["-I".into(), directory.into()]);
    let mut builder = SkeletonBuilder::new();
    builder
        .source(directory.join(format!("{name}.bpf.c")))
        .obj(out.join(format!("{name}.bpf.o")))
        // The skeleton names the object, and does not contain it as numbers.
        .reference_obj(true)
        // Not formatted: it is not for people, and rustup's rustfmt fails where that component is not
        // installed.
        .rustfmt("")
        .clang(clang())
        .clang_args(include.chain(["-mcpu=v3".into(), "-Wall".into()]).collect::<Vec<OsString>>());
    builder
}

fn check<E: Debug>(built: Result<(), E>) {
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

/// `CLANG`, or the version that this is tested with where it is installed, or else the default version.
fn clang() -> OsString {
    let default = if is_installed("clang-19") { "clang-19" } else { "clang" };
    env::var_os("CLANG").unwrap_or_else(|| default.into())
}

fn is_installed(compiler: &str) -> bool {
    process::Command::new(compiler).arg("--version").output().is_ok()
}
