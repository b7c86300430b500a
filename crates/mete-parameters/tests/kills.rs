//! Trees are taken away, whichever of the program and its keepers are killed, and at whatever moment
//! (KLOG-4).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

#[path = "../../mete-keeper/tests/common/kills.rs"]
mod kills;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use kills::Victim;
use rustix::mount::{MountPropagationFlags, mount_change};

const SUBJECT: &str = env!("CARGO_BIN_EXE_mete-parameters-subject");

/// Where trees are mounted, and where the directories that were made for them are noted.
struct Place {
    trees: tempfile::TempDir,
    notes: tempfile::TempDir,
}

struct Program {
    child: Child,
    tree: PathBuf,
}

impl Victim for Program {
    type Place = Place;

    fn place() -> Place {
        have_own_mounts();
        Place { trees: tempfile::tempdir().unwrap(), notes: tempfile::tempdir().unwrap() }
    }

    fn start(place: &mut Place) -> Program {
        let tree = place.trees.path().join("above/tree");
        let mut command = Command::new(SUBJECT);
        command.arg("mount").arg(&tree).arg(place.notes.path());
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut said = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut said).unwrap();
        assert_eq!(said, "mounted\n");
        assert_eq!(fs::read_to_string(tree.join("one")).unwrap(), "1\n");
        Program { child, tree }
    }

    fn main(&self) -> u32 {
        self.child.id()
    }

    fn mark(&self) -> String {
        format!("mete:{}:", self.child.id())
    }

    fn is_undone(&self, place: &Place) -> bool {
        let table = fs::read_to_string("/proc/thread-self/mountinfo").unwrap();
        let is_empty = |directory: &tempfile::TempDir| directory.path().read_dir().unwrap().next().is_none();
        !table.contains(&self.tree.display().to_string()) && is_empty(&place.trees) && is_empty(&place.notes)
    }

    fn recover(&self, place: &Place) {
        let mut command = Command::new(SUBJECT);
        command.arg("recover").arg(place.notes.path()).stdout(Stdio::null());
        assert!(command.status().unwrap().success());
    }

    fn remove_traces(&self, _: &Place) -> bool {
        false
    }

    fn bury(mut self) {
        self.child.wait().unwrap();
    }
}

/// Gives this thread, and what it starts, a mount table of its own, in which no other program looks for trees
/// that were left.
fn have_own_mounts() {
    // SAFETY: no memory is passed. Files stay open, and threads that were there before keep what they have.
    assert_eq!(unsafe { libc::unshare(libc::CLONE_NEWNS) }, 0, "{}", std::io::Error::last_os_error());
    mount_change("/", MountPropagationFlags::REC | MountPropagationFlags::PRIVATE).unwrap();
}

#[test]
fn klog_4_kills_of_a_program_and_its_keepers_in_any_order_leave_no_tree() {
    if !mete_parameters::is_possible() || !rustix::process::geteuid().is_root() {
        return println!(
            "SKIPPED: klog_4_kills_of_a_program_and_its_keepers_in_any_order_leave_no_tree: this needs root and /dev/fuse"
        );
    }
    kills::kill_in_any_order::<Program>("mounts");
}
