//! The scheduler's own place on the processor: before those whom it schedules. On a full machine a
//! poll that waits its turn comes late, and what was overwritten meanwhile is lost.
//!
//! A nice value and no real-time priority: whatever goes wrong here must not starve a processor.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// How many nice steps before where it was: ten make nine times the weight. More does harm. A session's
/// threads share one weight (autogroup, or a control group), which the kernel deals out to processors by
/// the weights that run there; at -20 this thread would draw nearly all of it to its own processor, and
/// programs of the same session would starve on the others.
const STEPS: i32 = 10;

/// The calling thread goes first as long as this lives.
#[derive(Debug)]
pub struct Precedence {
    before: Option<i32>,
}

impl Precedence {
    /// Takes precedence if this user may. If not, polls come late under load, and the completeness
    /// statement says what that cost.
    pub fn take() -> Precedence {
        let thread = Some(gettid());
        let before = getpriority_process(thread).ok();
        let raise =
            |before: i32| keep_from_children(true) && setpriority_process(thread, raised(before)).is_ok();
        Precedence { before: before.filter(|&before| raise(before)) }
    }
}

fn raised(before: i32) -> i32 {
    (before - STEPS).max(-20)
}

/// Whoever this thread starts meanwhile gets the usual weight.
fn keep_from_children(keep: bool) -> bool {
    let policy = if keep { libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: the calling thread, and a parameter that outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // Lowering oneself is always allowed.
            let _ = setpriority_process(Some(gettid()), before);
            keep_from_children(false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precedence_ends_with_its_value() {
        let nice = || getpriority_process(Some(gettid())).unwrap();
        let before = nice();
        let precedence = Precedence::take();
        assert_eq!(nice(), if precedence.before.is_some() { raised(before) } else { before });
        let child = std::process::Command::new("nice").output().unwrap();
        // Whoever is reset on fork keeps a nice value above the usual one.
        let usual = if precedence.before.is_some() { raised(before).max(0) } else { before };
        assert_eq!(String::from_utf8_lossy(&child.stdout).trim(), usual.to_string());
        drop(precedence);
        assert_eq!(nice(), before);
    }
}
