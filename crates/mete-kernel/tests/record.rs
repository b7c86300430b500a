//! Recording by schema: what happens in the kernel is in the buffers, and nothing is left behind.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod support;

use std::path::Path;
use std::{env, fs};

use mete_kernel::record::source;
use mete_schema::generate::bpf;
use mete_schema::kernel::Running;
use mete_schema::shipped::by_name;
use mete_schema::{Schema, check};
use support::with_tracing_file_system;

/// Whoever changes a schema, or what is generated, runs this test with METE_BLESS set.
#[test]
fn klog_8_shipped_schemata_are_embedded_as_they_are_generated() {
    let test = "klog_8_shipped_schemata_are_embedded_as_they_are_generated";
    let Some(_kernel) = support::kernel(test) else { return };
    let kernel = Running::new().unwrap();
    with_tracing_file_system(test, || {
        for name in ["scheduler", "locking", "interrupt"] {
            let schema = Schema::read(&[by_name(name).unwrap().source()]).unwrap();
            let checked = check(&schema, Some(&kernel)).unwrap();
            let text = source(&bpf(&schema, &checked, &kernel).unwrap());
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("bpf/schemas/{name}.bpf.c"));
            if env::var_os("METE_BLESS").is_some() {
                fs::write(&path, &text).unwrap();
            }
            let is_same = fs::read_to_string(&path).unwrap() == text;
            assert!(is_same, "{name} is not what is generated for this kernel: METE_BLESS=1 makes it so");
        }
    });
}
