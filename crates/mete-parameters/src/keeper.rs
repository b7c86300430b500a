//! The keepers: two processes that outlive the program only as long as it takes to unmount its tree.
//!
//! A keeper is the program again, started with [`ARGUMENT`]: the program's `main` calls
//! [`take_over_if_asked`] first. [`mete_keeper`] documents how keepers are started, replaced, and informed of
//! the program's end. They inherit a descriptor of the mount, which they have before the mount has a place,
//! and a descriptor of the directory on which the mount is put. There is one way to defeat the keepers: to
//! kill the program and both keepers within the moment that unmounting takes. What is left then is taken away
//! by [`recover`](crate::recover).

use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

pub use mete_keeper::this_program;
use mete_keeper::{Duty, Keepers, Role};

use crate::directory::Directory;
use crate::error::MountError;
use crate::made;
use crate::mounts::{self, Root};
use crate::notes::Note;
use crate::source::MountSource;

/// The first argument that makes the program a keeper.
pub const ARGUMENT: &str = "--take-parameters-away";

static ROLE: Role = Role { argument: ARGUMENT, names: [c"mete-keeper", c"mete-keeper-2"] };

/// Becomes a keeper, and does not return, if this program was started as one. `prepare` is called first then.
pub fn take_over_if_asked(prepare: impl FnOnce()) {
    if let Some(duty) = mete_keeper::asked(&ROLE) {
        prepare();
        keep(duty);
        std::process::exit(0);
    }
}

/// What a keeper does from its start to its end.
fn keep(duty: Duty) {
    duty.wait();
    let source = duty.words.first().and_then(|word| MountSource::parse(word.to_str()?));
    let mut files = duty.files.into_iter();
    let (Some(source), Some(place)) = (source, files.next()) else { return };
    let is_unmounted = AtomicBool::new(false);
    thread::scope(|scope| {
        // In a thread beside the unmounting: the directory is free long before unmounting returns, which
        // waits for all processors. A kill in between would leave the directory behind. If the thread cannot
        // be started, the directory is removed afterwards.
        let _ = thread::Builder::new()
            .spawn_scoped(scope, || made::remove_when_free(&place, source.made, &is_unmounted));
        match files.next() {
            Some(root) => Root::new(root).take_away(source),
            None => mounts::take_away(source),
        }
        is_unmounted.store(true, Ordering::Release);
    });
    // What the thread has removed already is removed no second time.
    made::remove(place, source.made);
    if let Some(word) = duty.words.get(1) {
        Note::given(word).remove();
    }
}

/// Starts both keepers. They are there when this returns. Without `root`, they look for the mount with the
/// name of `source`.
pub(crate) fn start(
    program: impl Fn() -> Command + Send + 'static,
    directory: &Directory,
    source: MountSource,
    root: Option<&Root>,
) -> Result<Keepers, MountError> {
    let files = || -> std::io::Result<_> {
        let mut files = vec![directory.place.try_clone()?];
        files.extend(root.map(Root::try_clone).transpose()?);
        Ok(files)
    };
    let words = vec![source.text().into(), directory.note.word()];
    let started = files().and_then(|files| Keepers::start(&ROLE, program, files, words));
    started.map_err(MountError::NoKeeper)
}
