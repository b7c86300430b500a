//! Any bytes are a program that points can be put on, or are refused; whatever is asked of them is answered.
#![no_main]

use std::fs::File;
use std::io::Write;
use std::os::fd::FromRawFd;
use std::path::Path;

use libfuzzer_sys::fuzz_target;
use mete_schema::program::Program;

/// A file without a name.
fn file(bytes: &[u8]) -> File {
    // SAFETY: the name is a text that ends with a zero.
    let fd = unsafe { libc::memfd_create(c"fuzz".as_ptr(), 0) };
    assert!(fd >= 0, "no memory file");
    // SAFETY: it was just made, and is nobody else's.
    let mut file = unsafe { File::from_raw_fd(fd) };
    file.write_all(bytes).expect("it takes some bytes");
    file
}

fuzz_target!(|bytes: &[u8]| {
    let Ok(program) = Program::of_file(Path::new("/fuzz"), &file(bytes)) else { return };
    for place in ["main", "main+0x10", "0x401000", "0xffffffffffffffff"] {
        let _ = program.offset(place);
    }
    let _ = program.arguments_of("provider", "name");
});
