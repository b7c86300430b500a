//! The manager's thread: it looks, sleeps, and hears what the owner tells it.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use mete_policy::{ClientId, Nanoseconds};
use mete_sched::actuator::class::Class;
use mete_sched::actuator::pauses::Pausable;
use mete_sched::actuator::{ActuatorError, Pauses};
use mete_sched::domains::process::own_thread;

use crate::clock::{now, used_by_thread};
use crate::manager::{Counts, Manager, Message};

/// What the manager tells its owner.
#[derive(Debug, Default)]
pub(crate) struct Shared {
    pub counts: Counts,
    /// What each domain's clients have used.
    pub used: Vec<Nanoseconds>,
    /// Those that turned out not to be pausable, since the owner looked last.
    pub refused: Vec<ClientId>,
}

/// The shortest slice that the kernel gives. With it, a thread is before others when it wakes, as a rule.
const SHORTEST_SLICE_NS: u64 = 100_000;

/// Runs until the owner has nothing more to tell, and gives back by what processes are paused, so that all go on.
pub(crate) fn run(
    mut manager: Manager<Pauses>,
    told: &Receiver<Message<Pausable>>,
    shared: &Arc<Mutex<Shared>>,
) -> (Pauses, Result<(), ActuatorError>) {
    // Before Linux 6.12 the kernel knows no such slices; then looks come a little later.
    if let Ok(own) = Class::of_thread(own_thread()) {
        let _ = own.give_with_slice(own_thread(), SHORTEST_SLICE_NS);
    }
    let ended = look_again_and_again(&mut manager, told, shared);
    (manager.end(), ended)
}

fn look_again_and_again(
    manager: &mut Manager<Pauses>,
    told: &Receiver<Message<Pausable>>,
    shared: &Arc<Mutex<Shared>>,
) -> Result<(), ActuatorError> {
    let mut next = now();
    loop {
        next = (next + manager.next()).max(now());
        loop {
            let left = Duration::from_nanos(next.saturating_sub(now()).get());
            match told.recv_timeout(left) {
                Ok(message) => manager.tell(message, now())?,
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => return Ok(()),
            }
        }
        manager.look(now())?;
        let mut shared = shared.lock().unwrap_or_else(PoisonError::into_inner);
        shared.used.clone_from(&manager.used);
        shared.refused.append(&mut manager.refused);
        shared.counts = Counts { own_ns: used_by_thread(), ..manager.counts };
    }
}
