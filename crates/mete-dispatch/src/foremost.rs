//! The thread that starts a dispatcher, before all other ordinary ones: beside many that compute, it would take seconds to begin.

use mete_sched::actuator::Class;
use mete_sched::domains::process::own_thread;

/// A thread that comes first until this is dropped, if it is an ordinary one.
#[derive(Debug)]
pub(crate) struct Foremost {
    thread: u32,
    before: Option<Class>,
}

impl Foremost {
    /// This thread.
    pub fn begin() -> Foremost {
        let thread = own_thread();
        let before = Class::of_thread(thread).ok().filter(|class| class.is_ordinary());
        // Without the precedence it only takes longer.
        let before = before.filter(|_| Class::foremost().give_to(thread).is_ok());
        Foremost { thread, before }
    }
}

impl Drop for Foremost {
    fn drop(&mut self) {
        // An error means that the thread has ended.
        let _ = self.before.map(|before| before.give_to(self.thread));
    }
}
