//! What several crates need and none of them owns.
//!
//! | item | for |
//! |---|---|
//! | [`csv`] | fields of comma-separated values |
//! | [`draft`], [`folder_draft`] | files and folders that appear whole or not at all |
//! | [`folder`] | folders that are held by descriptor, so that other users cannot exchange them |
//! | [`regular`] | opening files that should be regular ones and may be of any kind |
//! | [`letters`] | letters that do not look like what they are, in names that other people choose |
//! | [`locked`] | memory that is there, for threads that others wait for |
//! | [`nearest`] | the name that may have been meant |
//! | [`processors`] | the machine's processors, and how long a thread has used them |
//! | [`progress`] | how long work reports what it does, and how it is stopped |
//! | [`size`] | numbers of bytes, as people write and read them |
//! | [`unknown_key`] | a key that a table of TOML does not have |
//! | [`sentence`] | an error and its causes as one sentence |
//!
//! Nothing in here knows anything about logs, traces or schedulers.

#![cfg(target_os = "linux")]

mod causes;
pub mod csv;
pub mod draft;
pub mod folder;
pub mod folder_draft;
pub mod letters;
pub mod locked;
pub mod nearest;
pub mod processors;
pub mod progress;
pub mod regular;
pub mod size;
pub mod unknown_key;

pub use causes::sentence;
pub use progress::Progress;
