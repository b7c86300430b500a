//! Compiles the schedulers of `bpf/` into objects that the library embeds, and generates their skeletons.

use std::ffi::OsString;
use std::path::PathBuf;
use std::{env, process};

use libbpf_cargo::SkeletonBuilder;

/// Where headers lie: this crate's, the types of numbers, and the policy, which is also compiled natively.
const FOLDERS: [&str; 3] = ["bpf", "../mete-kernel/bpf", "../mete-policy/kernel"];

fn main() {
    println!("cargo:rerun-if-env-changed=CLANG");
    let here = PathBuf::from(variable("CARGO_MANIFEST_DIR"));
    let out = PathBuf::from(variable("OUT_DIR"));
    let folders = FOLDERS.map(|folder| here.join(folder));
    for folder in &folders {
        println!("cargo:rerun-if-changed={}", folder.display());
    }
    let include = folders.iter().flat_map(|folder| ["-I".into(), folder.into()]);
    let include: Vec<OsString> = include.collect();
    for name in ["ext", "outside", "empty"] {
        let built = SkeletonBuilder::new()
            .source(here.join(format!("bpf/{name}.bpf.c")))
            .obj(out.join(format!("{name}.bpf.o")))
            .reference_obj(true)
            .rustfmt("")
            .clang(env::var_os("CLANG").unwrap_or_else(|| "clang-19".into()))
            .clang_args(
                include.iter().cloned().chain(["-mcpu=v3".into(), "-Wall".into()]).collect::<Vec<OsString>>(),
            )
            .build_and_generate(out.join(format!("{name}.skel.rs")));
        if let Err(error) = built {
            eprintln!(
                "{error:?}\nThe schedulers need clang 19 or newer (Debian: apt install clang-19); CLANG names another one."
            );
            process::exit(1);
        }
    }
}

fn variable(name: &str) -> OsString {
    env::var_os(name).unwrap_or_else(|| panic!("cargo sets {name} for build scripts"))
}
