//! Scheduling classes are put back, whichever of the dispatcher and the processes that put them back are
//! killed, and at whatever moment (LOG-16, design decision D9).

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;
#[path = "../../mete-keeper/tests/common/kills.rs"]
mod kills;

use std::process::{Command, Stdio};

use common::{Dispatching, Part, SUBJECT, alone, can_dispatch, eventually};
use kills::Victim;
use mete_sched::actuator::Class;
use mete_sched::domains::process::Process;

/// What is dispatched, a process for which it steps back again and again, and a directory for journals where no other program
/// looks.
struct Place {
    parts: [Part; 2],
    _other: Part,
    directory: tempfile::TempDir,
}

impl Place {
    fn all_are_ordinary(&self) -> bool {
        self.parts.iter().flat_map(Part::classes_with_children).all(|class| class == Class::default())
    }
}

struct Dispatcher {
    dispatching: Dispatching,
    journal: String,
}

impl Victim for Dispatcher {
    type Place = Place;

    // Two dispatchers refuse each other. With journals apart they do not, and each has clients in front all
    // the time: the rest of the machine, and so those that put classes back, would have nothing.
    const AT_ONCE: u64 = 1;

    fn place() -> Place {
        let parts = [&["hogs", "1"][..], &["forks"]].map(Part::on_one_processor);
        let other = Part::on_one_processor(&["sleeper"]);
        Place { parts, _other: other, directory: tempfile::tempdir().unwrap() }
    }

    fn start(place: &mut Place) -> Dispatcher {
        let names = ["a", "b"].iter().zip(&place.parts);
        let domains: Vec<_> =
            names.map(|(name, part)| format!("{name}=pid:{},share=1", part.pid())).collect();
        let dispatching = Dispatching::start_in(place.directory.path(), "distributed-vtrr", 100, &domains);
        eventually("a class is changed", || !place.all_are_ordinary());
        let start = Process::read(dispatching.pid()).unwrap().start;
        let journal = format!("/{}-{start}.classes", dispatching.pid());
        Dispatcher { dispatching, journal }
    }

    fn main(&self) -> u32 {
        self.dispatching.pid()
    }

    fn mark(&self) -> String {
        self.journal.clone()
    }

    fn is_undone(&self, place: &Place) -> bool {
        let journal = place.directory.path().join(self.journal.trim_start_matches('/'));
        place.all_are_ordinary() && !journal.exists()
    }

    fn recover(&self, place: &Place) {
        let mut command = Command::new(SUBJECT);
        command.env("METE_RUNTIME_DIR", place.directory.path());
        assert!(command.arg("recover").stdout(Stdio::null()).status().unwrap().success());
    }

    fn remove_traces(&self, _: &Place) -> bool {
        false
    }

    fn bury(self) {
        self.dispatching.kill();
    }
}

#[test]
fn log_16_kills_of_dispatcher_and_watchers_in_any_order_leave_no_class_changed() {
    if !can_dispatch() {
        return;
    }
    let _alone = alone();
    kills::kill_in_any_order::<Dispatcher>("classes");
}
