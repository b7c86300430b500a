//! `libmete_probe.a` and `libmete_probe.so`, which C and C++ programs link. The functions that `mete.h` calls
//! are those of [`mete_probe::abi`]. The header and its layout are in that crate, too, and the tests that
//! compile C programs, for which this one has to be built before.
//!
//! It is a crate of its own because libraries for C have one file name whatever they are built with. As long
//! as they were built along with `mete-probe`, two builds with different sets of packages replaced each
//! other's.

#![cfg(target_os = "linux")]

// What is not named is not linked.
pub use mete_probe::abi::{
    mete_domain_of_process, mete_enter_event, mete_exit_event, mete_note_event, mete_now, mete_register,
    mete_set_domain, mete_set_process_domain, mete_unregister,
};
