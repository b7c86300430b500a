//! What a scheduler reports to the user while it works.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::bail;
use mete_command::{failure, interrupt};
use mete_sched::sources::SourceError;
use mete_sched::{Notice, Scheduler};

/// How long the programs with probes that were found may take to answer.
const PATIENCE: Duration = Duration::from_secs(3);

/// Waits until a source logs.
///
/// # Errors
///
/// If no source logs: one sentence with all reasons. Details of a loader follow on the lines below.
pub fn check(scheduler: &mut Scheduler) -> anyhow::Result<()> {
    // Programs with probes that were found are given some time to answer.
    scheduler.wait_until_anything_logs(PATIENCE, interrupt::asked);
    if scheduler.logs_anything() {
        return Ok(());
    }
    let notices: Vec<_> = scheduler.notices().collect();
    let texts: Vec<_> = notices.iter().filter_map(Notice::missing).collect();
    let (mut reasons, mut details) = (Vec::new(), String::new());
    for text in &texts {
        let end = text.find('\n').unwrap_or(text.len());
        reasons.push(&text[..end]);
        details.push_str(&text[end..]);
    }
    let reasons = if reasons.is_empty() { "the kernel was not asked for".into() } else { reasons.join("; ") };
    // A program whose log cannot be read runs all the same.
    let has_program =
        notices.iter().any(|notice| matches!(notice, Notice::Refused(SourceError::Component(_))));
    let programs = if has_program { "" } else { "; no program with probes runs for this user" };
    bail!("there is nothing to log: {reasons}{programs}; see mete doctor{details}")
}

/// Says what is missing, each thing once. Everything else shows in the results.
#[derive(Default)]
pub struct ToldNotices {
    said: BTreeSet<String>,
    no_kernel: Option<String>,
    unavailable: Vec<String>,
}

impl ToldNotices {
    /// Says everything that the scheduler reports.
    pub fn tell_all(&mut self, scheduler: &mut Scheduler) {
        scheduler.notices().for_each(|notice| self.tell(&notice));
    }

    /// Says what one notice reports.
    pub fn tell(&mut self, notice: &Notice) {
        match notice {
            Notice::NoKernel(why) => self.no_kernel = Some(why.to_string()),
            Notice::Unavailable(what) => self.unavailable.push(what.to_string()),
            _ => {}
        }
        if let Some(text) = notice.missing().filter(|text| self.said.insert(text.clone())) {
            failure::say(&text);
        }
    }

    /// What was asked for and is not logged of the kernel. Without a choice (`is_choice`), characteristics
    /// that this kernel does not have count as not asked for.
    pub fn not_logged(&self, is_choice: bool) -> Vec<String> {
        let kernel = self.no_kernel.as_ref().map(|why| {
            let why = why.lines().next().unwrap_or_default();
            format!("the kernel is not logged: {why} (--components asks for programs alone)")
        });
        let unavailable = self.unavailable.iter().filter(|_| is_choice);
        kernel.iter().chain(unavailable).cloned().collect()
    }
}
