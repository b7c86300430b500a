//! What a trace says about itself: `description.json` in its directory.
//!
//! The recorder writes this file when recording begins and again when it ends. A trace whose recorder was
//! killed keeps the first version, which is enough to read it.
//!
//! | module | what it describes |
//! |---|---|
//! | `layout` | the events and their fields |
//! | `marks` | the recorder's own events that have fields |
//! | `check` | what a layout must satisfy |
//! | `clock` | the trace's clock, and how its ticks become nanoseconds |
//! | `machine` | the machine, its threads and its kernel's symbols |
//! | `circumstances` | how the trace was recorded |
//! | `switches`, `missed` | events that were switched, and runs that the kernel left out |
//! | `trace` | all of this together: the content of the file |
//! | `files` | the names of the files in a trace's directory |
//! | `storage` | how the file is written and read |

mod check;
mod circumstances;
mod clock;
mod files;
mod layout;
pub(crate) mod machine;
pub(crate) mod marks;
pub(crate) mod missed;
mod storage;
pub(crate) mod switches;
mod trace;

pub use check::DescriptionError;
pub use circumstances::{Circumstances, FlushThread};
pub use clock::{Clock, ClockAnchor, ClockSource, Converter};
pub use files::{FILE_NAME, FORMER_FILE_NAME, file_name};
pub(crate) use files::{NEW_FILE_NAME, OF_FILE, is_block_file};
pub use layout::{Description, EventLayout, FieldKind, FieldLayout};
pub use machine::Machine;
pub use storage::DescriptionFileError;
pub use trace::{FORMAT, TraceDescription, TraceFile, VERSION, recording_text};
