//! Points in programs: what is found in their files, and the messages where it is not found.

#![allow(clippy::unwrap_used, reason = "a test may end so")]

#[path = "support/elf.rs"]
mod subject;
mod support;

use std::fs::{self, File};
use std::io::{Seek, Write};
use std::path::Path;
use std::sync::Arc;

use mete_schema::program::{Program, Programs};
use mete_schema::{Checked, Problems, Schema, Source, check};
use proptest::prelude::*;
use tempfile::NamedTempFile;

/// A file that is removed at the end of the test.
struct ScratchFile(NamedTempFile);

impl ScratchFile {
    fn new(bytes: &[u8]) -> ScratchFile {
        let mut file = NamedTempFile::new().unwrap();
        file.write_all(bytes).unwrap();
        ScratchFile(file)
    }

    fn check(&self, text: &str) -> Result<(Schema, Checked), (Vec<Source>, Problems)> {
        let mut kernel = support::kernel();
        kernel.add_program("/usr/bin/store", self.0.path());
        let sources = vec![Source::new("test.mete", text)];
        let schema = Schema::read(&sources);
        schema
            .and_then(|schema| check(&schema, Some(&kernel)).map(|checked| (schema, checked)))
            .map_err(|problems| (sources, problems))
    }
}

macro_rules! refused {
    ($($name:ident: $target:literal $value:literal;)+) => {$(
        #[test]
        fn $name() {
            let place = ScratchFile::new(&subject::program());
            let text = format!("event A {{ u64 x }}\nat {} log A({})", $target, $value);
            let (sources, problems) = place.check(&text).unwrap_err();
            insta::assert_snapshot!(stringify!($name), problems.render(&sources, false), &text);
        }
    )+};
}

refused! {
    klog_8_program_that_is_none: r#"uprobe:"/usr/bin/sotre":serve"# "arg0";
    klog_8_function_of_a_program_that_is_mistyped: r#"uprobe:"/usr/bin/store":srve"# "arg0";
    klog_8_function_of_a_program_far_from_all: r#"uprobe:"/usr/bin/store":zebra"# "arg0";
    klog_8_function_that_a_program_has_from_a_library: r#"uprobe:"/usr/bin/store":malloc"# "arg0";
    klog_8_function_that_is_chosen_for_each_machine: r#"uprobe:"/usr/bin/store":copy"# "arg0";
    klog_8_address_without_code: r#"uprobe:"/usr/bin/store":"0x10""# "arg0";
    klog_8_return_from_within_a_function: r#"uretprobe:"/usr/bin/store":"serve+0x4""# "retval";
    klog_8_argument_that_no_register_carries: r#"uprobe:"/usr/bin/store":serve"# "arg6";
    klog_8_static_probe_that_is_mistyped: r#"usdt:"/usr/bin/store":store:requst"# "arg0";
    klog_8_value_that_a_static_probe_has_not: r#"usdt:"/usr/bin/store":store:request"# "arg2";
}

#[test]
fn klog_8_places_in_programs_are_found_by_symbol_distance_and_address() {
    let place = ScratchFile::new(&subject::program());
    let program = Program::read(place.0.path()).unwrap();
    let offset = |name: &str| program.offset(name).unwrap() - subject::CODE_OFFSET;
    let places = ["serve", "serve+0x4", "_ZN4core4mainE", "0x401007"].map(offset);
    assert_eq!(places, [0x20, 0x24, 0, 7]);
    assert_eq!(program.arguments_of("store", "request").unwrap(), 2);
    let text = "event A { u64 x }
        at uprobe:\"/usr/bin/store\":\"serve+0x4\" log A(arg5)
        at uretprobe:\"/usr/bin/store\":serve log A(retval)
        at usdt:\"/usr/bin/store\":store:request log A(arg1)";
    assert!(place.check(text).is_ok());
}

#[test]
fn klog_8_files_that_are_no_programs_say_what_they_are() {
    let said = |bytes: &[u8]| {
        let place = ScratchFile::new(bytes);
        let file = File::open(place.0.path()).unwrap();
        Program::of_file(Path::new("/x"), &file).err().unwrap().to_string()
    };
    let mut other = subject::program();
    other[18] = 8;
    let mut cut = subject::program();
    cut.truncate(100);
    let found = [&b"#!/bin/sh\n"[..], b"text", &other, &cut].map(said);
    let expected = [
        "it is a script: put the point on the program that runs it",
        "it is no program and no library (ELF)",
        "it is for another kind of machine",
        "its tables lie outside of it",
    ];
    assert_eq!(found, expected.map(|what| format!("/x cannot have points: {what}")));
}

/// A schema may have a thousand points in a program whose names take a thousand megabytes.
#[test]
fn klog_8_a_program_with_many_points_is_read_once() {
    let place = ScratchFile::new(&subject::program());
    let programs = Programs::default();
    let first = programs.get(place.0.path()).unwrap();
    fs::write(place.0.path(), b"changed").unwrap();
    assert!(Arc::ptr_eq(&first, &programs.get(place.0.path()).unwrap()));
    assert!(programs.get(Path::new("/nowhere/program")).is_err());
}

/// This test's own program is a real one: a linker has made it.
#[test]
fn klog_8_functions_of_a_real_program_are_found() {
    let program = Program::read(&std::env::current_exe().unwrap()).unwrap();
    assert!(program.offset("main").unwrap() > 0);
}

proptest! {
    /// No file causes a panic.
    #[test]
    fn klog_8_garbled_programs_are_read_without_harm(
        changes in prop::collection::vec((0..1000_usize, any::<u8>()), 1..20), length in 0..1000_usize,
    ) {
        let mut bytes = subject::program();
        for (at, byte) in changes {
            let at = at % bytes.len();
            bytes[at] = byte;
        }
        bytes.truncate(bytes.len() - length % 8 * (length % 100).min(40));
        let mut file = nameless_file();
        file.write_all(&bytes).unwrap();
        file.rewind().unwrap();
        if let Ok(program) = Program::of_file(Path::new("/x"), &file) {
            for place in ["serve", "copy", "zebra", "0x401000"] {
                let _ = program.offset(place);
            }
            let _ = program.arguments_of("store", "requst");
        }
    }
}

/// A file without a name.
fn nameless_file() -> File {
    let place = ScratchFile::new(b"");
    File::options().read(true).write(true).open(place.0.path()).unwrap()
}
