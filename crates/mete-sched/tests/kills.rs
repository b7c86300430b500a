//! Processor masks are put back, whichever of the scheduler and its watchers are killed, and at whatever
//! moment (LOG-16).

#![allow(clippy::unwrap_used, reason = "a test may end so")]

mod common;
#[path = "../../mete-keeper/tests/common/kills.rs"]
mod kills;

use std::process::{Command, Stdio};

use common::{Running, SUBJECT, children, skip};
use kills::Victim;
use mete_sched::actuator::Mask;
use mete_sched::domains::process::{self, Process};

struct Scheduler {
    running: Running,
    journal: String,
}

/// The processes that a scheduler places, and a directory for its journals where no other program looks.
struct Client {
    running: Running,
    directory: tempfile::TempDir,
    mask: Mask,
    processor: usize,
}

impl Client {
    fn subject(&self) -> Command {
        let mut command = Command::new(SUBJECT);
        command.env("METE_RUNTIME_DIR", self.directory.path());
        command
    }

    fn all_have_their_mask(&self) -> bool {
        let own = self.running.pid();
        let pids = children(own).into_iter().map(|child| child.pid).chain([own]);
        let masks = pids.flat_map(process::threads).filter_map(|thread| Mask::of_thread(thread).ok());
        masks.into_iter().all(|mask| mask == self.mask)
    }
}

impl Victim for Scheduler {
    type Place = Client;

    fn place() -> Client {
        let mut running = Running::waiting();
        running.tell("more");
        running.hear();
        let mask = Mask::of_thread(running.pid()).unwrap();
        let processor = mask.processors().next().unwrap();
        Client { running, directory: tempfile::tempdir().unwrap(), mask, processor }
    }

    fn start(client: &mut Client) -> Scheduler {
        let (processor, pid) = (client.processor.to_string(), client.running.pid().to_string());
        let mut command = client.subject();
        let mut running = Running::start(command.args(["pin", &processor, &pid]));
        assert_eq!(running.hear(), "placed 2");
        assert!(!client.all_have_their_mask());
        let start = Process::read(running.pid()).unwrap().start;
        let journal = format!("/{}-{start}.masks", running.pid());
        Scheduler { running, journal }
    }

    fn main(&self) -> u32 {
        self.running.pid()
    }

    fn mark(&self) -> String {
        self.journal.clone()
    }

    fn is_undone(&self, client: &Client) -> bool {
        let journal = client.directory.path().join(self.journal.trim_start_matches('/'));
        client.all_have_their_mask() && !journal.exists()
    }

    fn recover(&self, client: &Client) {
        let mut command = client.subject();
        assert!(command.arg("recover").stdout(Stdio::null()).status().unwrap().success());
    }

    fn remove_traces(&self, _: &Client) -> bool {
        false
    }

    fn bury(self) {
        self.running.kill();
    }
}

#[test]
fn log_16_kills_of_scheduler_and_watchers_in_any_order_leave_no_mask_changed() {
    if Mask::of_thread(std::process::id()).unwrap().processors().count() < 2 {
        return skip("placement needs two processors");
    }
    kills::kill_in_any_order::<Scheduler>("masks");
}
