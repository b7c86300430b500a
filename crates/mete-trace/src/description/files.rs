//! The files in a trace's directory: their names and their access rights.

use std::ffi::OsStr;

use rustix::fs::Mode;

/// The name of the description.
pub const FILE_NAME: &str = "description.json";
/// The name of the description that was replaced by the current one. It is read if the current one cannot be
/// read.
pub const FORMER_FILE_NAME: &str = "description.before.json";
/// The name of a description that is still being written.
pub const NEW_FILE_NAME: &str = "description.json.new";
/// The access rights of a trace's files: they are their owner's alone.
pub const OF_FILE: Mode = Mode::RUSR.union(Mode::WUSR);

/// The name of a processor's file.
pub fn file_name(processor: u32) -> String {
    format!("processor-{processor}.trace")
}

/// Whether this is [the name](file_name) of some processor's file.
pub fn is_block_file(name: &OsStr) -> bool {
    let number = name.to_str().and_then(|name| name.strip_prefix("processor-")?.strip_suffix(".trace"));
    // Written again and compared: `+1` and `01` are numbers, too, but no recorder writes them.
    number.is_some_and(|number| number.parse::<u32>().is_ok_and(|number| name == &*file_name(number)))
}
