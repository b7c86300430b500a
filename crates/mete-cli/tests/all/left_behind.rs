//! The next command removes what killed programs have left behind (LOG-11).

use std::fs;
use std::os::fd::OwnedFd;
use std::path::Path;

use crate::common::mete;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};

/// A number that no process has: it is too large.
const NO_PROCESS: u32 = i32::MAX as u32;

/// Listens at a socket of this name.
fn listening(directory: &Path, name: &str) -> OwnedFd {
    let endpoint = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&endpoint, &SocketAddrUnix::new(directory.join(name)).unwrap()).unwrap();
    listen(&endpoint, 1).unwrap();
    endpoint
}

#[test]
fn log_11_sockets_of_killed_programs_are_removed_by_the_next_command_and_those_in_use_stay() {
    let place = tempfile::tempdir().unwrap();
    let dead = [format!("{NO_PROCESS}.sock"), format!("{NO_PROCESS}-1.sock")];
    dead.iter().for_each(|name| drop(listening(place.path(), name)));
    // The program may be in another container, or stopped.
    let unseen = format!("{}.sock", NO_PROCESS - 1);
    let living = format!("{}.sock", std::process::id());
    let _listening = [listening(place.path(), &unseen), listening(place.path(), &living)];
    mete(&["doctor"]).env("METE_RUNTIME_DIR", place.path()).assert().success();
    let names =
        fs::read_dir(place.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<_> = names.collect();
    names.sort();
    let mut expected = [unseen, living];
    expected.sort();
    assert_eq!(names, expected);
}
