//! A mounted tree, from the side of the programs that read and write its files (KLOG-4).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mete_parameters::{Access, File as Parameter, MountError, Mounted, Refusal, Store, found, is_possible};

/// Held by the test that has the tree: a process has one tree at a time.
static ALONE: Mutex<()> = Mutex::new(());

/// Counts how often it is read, and remembers what is written.
#[derive(Clone, Default)]
struct Counting {
    reads: Arc<AtomicU64>,
    written: Arc<Mutex<Vec<String>>>,
}

impl Store for Counting {
    fn read(&self, path: &str) -> Result<String, Refusal> {
        let reads = self.reads.fetch_add(1, Ordering::Relaxed);
        Ok(format!("{path} {reads:08}\n"))
    }

    fn write(&self, path: &str, value: &str) -> Result<(), Refusal> {
        if value == "wrong" {
            return Err(Refusal::value("it is wrong"));
        }
        self.written.lock().unwrap().push(format!("{path}={value}"));
        Ok(())
    }
}

struct Tree {
    mounted: Option<Mounted>,
    store: Counting,
    place: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

impl Tree {
    /// Mounts a tree, if that is possible here. Its keeper only waits: a program that drops its tree unmounts
    /// it by itself.
    fn mount() -> Option<Tree> {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let (place, store) = (tempfile::tempdir().unwrap(), Counting::default());
        let files = [
            ("both", Access::Both),
            ("below/both", Access::Both),
            ("in", Access::Write),
            ("out", Access::Read),
        ];
        let files = files.map(|(path, access)| Parameter::new(path, access)).into();
        let keeper = || {
            let mut keeper = Command::new("sh");
            keeper.args(["-c", "echo keeping; cat"]);
            keeper
        };
        match Mounted::new(None, &place.path().join("above/tree"), files, store.clone(), keeper) {
            Ok(mounted) => Some(Tree { mounted: Some(mounted), store, place, _alone: alone }),
            Err(error @ (MountError::NoFuse | MountError::Mount { .. })) => {
                eprintln!("SKIPPED: {error}");
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join("above/tree").join(name)
    }
}

#[test]
fn klog_4_a_program_that_reads_in_small_steps_sees_one_text() {
    let Some(tree) = Tree::mount() else { return };
    let mut open = File::open(tree.path("below/both")).unwrap();
    let mut text = String::new();
    let mut letter = [0];
    while open.read(&mut letter).unwrap() == 1 {
        text.push(letter[0].into());
    }
    assert_eq!(text, "below/both 00000000\n");
    assert_eq!(
        fs::read_to_string(tree.path("out")).unwrap(),
        "out 00000001\n",
        "a new text for the next reader"
    );
}

#[test]
fn klog_4_a_write_is_a_value_and_a_refusal_an_error() {
    let Some(tree) = Tree::mount() else { return };
    let mut open = OpenOptions::new().append(true).open(tree.path("in")).unwrap();
    for value in ["1", " 2\n", ""] {
        open.write_all(value.as_bytes()).unwrap();
    }
    fs::write(tree.path("both"), "3\n").unwrap();
    assert_eq!(*tree.store.written.lock().unwrap(), ["in=1", "in=2", "both=3"]);
    let error = |value: &[u8]| fs::write(tree.path("both"), value).unwrap_err().raw_os_error();
    assert_eq!([error(b"wrong"), error(&[0xff]), error(&[b'1'; 5000])], [Some(libc::EINVAL); 3]);
    for refused in [File::open(tree.path("in")), OpenOptions::new().write(true).open(tree.path("out"))] {
        assert_eq!(refused.unwrap_err().raw_os_error(), Some(libc::EACCES), "even for root");
    }
    assert!(fs::write(tree.path("new"), "1").is_err() && fs::remove_file(tree.path("both")).is_err());
    assert_eq!(tree.store.written.lock().unwrap().len(), 3);
}

#[test]
fn klog_4_a_dropped_tree_is_gone_even_if_a_file_of_it_is_open() {
    let Some(mut tree) = Tree::mount() else { return };
    let mut names: Vec<_> =
        fs::read_dir(tree.path("")).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["below", "both", "in", "out"]);
    let is_found = || found().unwrap().iter().any(|tree| tree.pid == std::process::id());
    let _open = File::open(tree.path("both")).unwrap();
    assert!(is_found());
    drop(tree.mounted.take());
    assert!(!is_found() && tree.place.path().read_dir().unwrap().next().is_none(), "no directory is left");
}

#[test]
fn klog_4_nothing_is_mounted_without_a_keeper_that_would_take_it_away() {
    if !is_possible() {
        return eprintln!("SKIPPED: there is no /dev/fuse");
    }
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let place = tempfile::tempdir().unwrap();
    for keeper in ["/nowhere/program", "true"] {
        let at = place.path().join("above/tree");
        let mounted = Mounted::new(None, &at, Vec::new(), Counting::default(), move || Command::new(keeper));
        assert!(matches!(mounted, Err(MountError::NoKeeper { .. })), "{keeper}");
        assert!(place.path().read_dir().unwrap().next().is_none(), "no directory is left");
    }
}

#[test]
fn klog_4_users_cannot_change_which_files_a_tree_has() {
    let Some(tree) = Tree::mount() else { return };
    let refused = [
        fs::create_dir(tree.path("new")),
        fs::remove_dir(tree.path("below")),
        fs::remove_file(tree.path("both")),
        fs::rename(tree.path("in"), tree.path("out")),
        fs::rename(tree.path("in"), tree.path("new")),
    ];
    let numbers = refused.map(|answer| answer.unwrap_err().raw_os_error());
    assert_eq!(numbers, [Some(libc::EPERM); 5]);
}
