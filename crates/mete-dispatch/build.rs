//! Compiles the programs of `bpf/` into an object that the library embeds, and generates its skeleton.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

/// Where headers lie: this crate's, and the types of numbers.
const FOLDERS: [&str; 2] = ["bpf", "../mete-kernel/bpf"];

fn main() {
    println!("cargo:rerun-if-env-changed=CLANG");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let folders = FOLDERS.map(|folder| here.join(folder));
    for folder in &folders {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let include = folders.iter().flat_map(|folder| ["-I".into(), folder.into()]);
    let flags = ["-mcpu=v3", "-Wall", "-D__TARGET_ARCH_x86"].map(OsString::from);
    let built = SkeletonBuilder::new()
        .source(here.join("bpf/dispatch.bpf.c"))
        .obj(out.join("dispatch.bpf.o"))
        .reference_obj(true)
        .rustfmt("")
        .clang(env::var_os("CLANG").unwrap_or_else(|| "clang-19".into()))
        .clang_args(include.chain(flags).collect::<Vec<OsString>>())
        .build_and_generate(out.join("dispatch.skel.rs"));
    if let Err(error) = built {
        eprintln!(
            "{error:?}\nThe dispatcher needs clang 19 or newer (Debian: apt install clang-19); CLANG names another one."
        );
        process::exit(1);
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"))
}
