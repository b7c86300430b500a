//! What a scheduler wants people to know while it works.

use std::collections::BTreeSet;

use anyhow::bail;
use mete_probe::attach::AttachError;
use mete_sched::sources::SourceError;
use mete_sched::{Notice, Scheduler};

use crate::failure;

/// Whether there is anything that logs.
pub fn logs_anything(scheduler: &Scheduler) -> bool {
    scheduler.analysis().sources().any(|source| !source.events().is_empty())
}

/// An error if nothing logs at all.
///
/// # Errors
///
/// One sentence that holds all reasons; what a loader had to say beyond it, on lines below.
pub fn check(scheduler: &mut Scheduler) -> anyhow::Result<()> {
    if logs_anything(scheduler) {
        return Ok(());
    }
    let texts: Vec<_> = scheduler.notices().filter_map(|notice| text(&notice)).collect();
    let (mut reasons, mut details) = (Vec::new(), String::new());
    for text in &texts {
        let end = text.find('\n').unwrap_or(text.len());
        reasons.push(&text[..end]);
        details.push_str(&text[end..]);
    }
    let reasons = if reasons.is_empty() { "the kernel was not asked for".into() } else { reasons.join("; ") };
    bail!(
        "there is nothing to log: {reasons}; and no program with probes runs for this user; see mete doctor{details}"
    )
}

/// Says what is missing, each once. Anything else shows in the results.
#[derive(Default)]
pub struct Told(BTreeSet<String>);

impl Told {
    /// All that a scheduler has to tell.
    pub fn tell_all(&mut self, scheduler: &mut Scheduler) {
        scheduler.notices().for_each(|notice| self.tell(&notice));
    }

    /// One of it.
    pub fn tell(&mut self, notice: &Notice) {
        if let Some(text) = text(notice).filter(|text| self.0.insert(text.clone())) {
            failure::say(&text);
        }
    }
}

/// What is missing, if this notice is about that.
fn text(notice: &Notice) -> Option<String> {
    match notice {
        Notice::NoKernel(why) => Some(format!("the kernel is not logged: {why}")),
        Notice::NoDiscovery(why) => Some(format!("programs with probes are not looked for: {why}")),
        Notice::Unavailable(what) => Some(what.to_string()),
        // It was found and has ended before it could be taken.
        Notice::Refused(SourceError::Component(AttachError::Gone { .. })) => None,
        Notice::Refused(why) => Some(why.to_string()),
        Notice::Empty(empty) => Some(empty.to_string()),
        Notice::NotFollowed(pid, why) => Some(format!("process {pid} was not placed: {why}")),
        Notice::Component(_) | Notice::Ended(_) | Notice::Moved(..) | Notice::NotMoved(..) => None,
    }
}
