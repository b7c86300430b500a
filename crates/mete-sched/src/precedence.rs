//! The scheduler's own precedence on the processor, over the processes that it schedules. On a full machine,
//! a poll that waits for its turn comes late, and rows that were overwritten meanwhile are lost.
//!
//! The means is a nice value and not a real-time priority, so that no fault in this program can starve a
//! processor.

use rustix::process::{getpriority_process, setpriority_process};
use rustix::thread::gettid;

/// How many nice steps the thread is raised above its former value. Ten steps make nine times the weight.
/// More would do harm: the threads of a session share one weight (autogroup, or a control group), and the
/// kernel deals this weight out to processors in proportion to the weights that run there. At -20, this
/// thread would draw nearly all of it to its own processor, and programs of the same session would starve on
/// the other processors.
const STEPS: i32 = 10;

/// As long as this value lives, the calling thread takes precedence.
#[derive(Debug)]
pub struct Precedence {
    before: Option<i32>,
}

impl Precedence {
    /// Takes precedence if this user may. If not, polls come late under load, and the completeness statement
    /// reports what was lost by that.
    pub fn take() -> Precedence {
        let thread = Some(gettid());
        let before = getpriority_process(thread).ok();
        // Children first, so that no child can be started with the raised value.
        let is_raised = before.is_some_and(|before| {
            keep_from_children(true) && setpriority_process(thread, raised(before)).is_ok()
        });
        Precedence { before: before.filter(|_| is_raised) }
    }
}

fn raised(before: i32) -> i32 {
    (before - STEPS).max(-20)
}

/// Gives processes that this thread starts the usual weight, or the thread's own again.
fn keep_from_children(keep: bool) -> bool {
    let policy = if keep { libc::SCHED_OTHER | libc::SCHED_RESET_ON_FORK } else { libc::SCHED_OTHER };
    let parameter = libc::sched_param { sched_priority: 0 };
    // SAFETY: thread 0 is the calling thread, and the parameter outlives the call.
    unsafe { libc::sched_setscheduler(0, policy, &raw const parameter) == 0 }
}

impl Drop for Precedence {
    fn drop(&mut self) {
        if let Some(before) = self.before {
            // This cannot fail: every thread may lower its own priority.
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
        // A child whose priority is reset on fork keeps a nice value above the usual one.
        let usual = if precedence.before.is_some() { raised(before).max(0) } else { before };
        assert_eq!(String::from_utf8_lossy(&child.stdout).trim(), usual.to_string());
        drop(precedence);
        assert_eq!(nice(), before);
    }
}
