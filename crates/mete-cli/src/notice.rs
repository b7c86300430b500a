//! What a scheduler wants people to know while it works.

use mete_sched::{Notice, Scheduler};

use crate::failure;

/// Whether there is anything that logs.
pub fn logs_anything(scheduler: &Scheduler) -> bool {
    scheduler.analysis().sources().any(|source| !source.events().is_empty())
}

/// Says what is missing. Anything else shows in the results.
pub fn tell_all(scheduler: &mut Scheduler) {
    scheduler.notices().for_each(|notice| tell(&notice));
}

/// The same for one notice.
pub fn tell(notice: &Notice) {
    match notice {
        Notice::NoKernel(why) => failure::say(&format!("the kernel is not logged: {why}")),
        Notice::NoDiscovery(why) => failure::say(&format!("programs with probes are not looked for: {why}")),
        Notice::Unavailable(what) => failure::say(&what.to_string()),
        Notice::Refused(why) => failure::say(&why.to_string()),
        Notice::NotFollowed(pid, why) => failure::say(&format!("process {pid} was not placed: {why}")),
        Notice::Component(_) | Notice::Ended(_) | Notice::Moved(..) | Notice::NotMoved(..) => {}
    }
}
