//! A seed gives the same bytes on every machine: digests of runs, taken once and kept.
//!
//! `METE_BLESS=1` takes them anew, for changes that are meant to change what a run gives.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};

use crate::common::mete;

const KEPT: &str = "tests/all/same-everywhere.txt";
/// A policy without randomness, one with, and the one with most state.
const POLICIES: [&str; 3] = ["eevdf", "lottery", "credit-tavs"];

/// The 64-bit FNV-1a digest.
fn digest(bytes: &[u8]) -> u64 {
    let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

fn output(arguments: &[&str]) -> Vec<u8> {
    mete(arguments).assert().success().get_output().stdout.clone()
}

/// All scenarios that come with the program.
fn scenarios() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<String> =
        files.map(|file| file.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn new_1_a_seed_gives_the_same_bytes_on_every_machine() {
    let mut found = String::new();
    for scenario in scenarios() {
        for policy in POLICIES {
            let run = ["sim", &scenario, "--policy", policy, "--seed", "7", "--for", "2s"];
            let run = output(&[&run[..], &["--set", "warm_up_ms=0", "--json"]].concat());
            writeln!(found, "{scenario} {policy} {:016x}", digest(&run)).unwrap();
        }
    }
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join(KEPT);
    if env::var_os("METE_BLESS").is_some() {
        fs::write(&kept, &found).unwrap();
    }
    assert_eq!(found, fs::read_to_string(&kept).unwrap());
}
