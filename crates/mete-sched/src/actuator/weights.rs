//! Shares by the kernel's own scheduler: control groups get weights and limits, of either version.

mod file;
mod ledger;

use std::io;
use std::path::Path;
use std::process::Command;

use mete_kernel::{Limit, Weight};

use self::file::GroupFile;
pub(super) use self::ledger::WeightLedger;
use self::ledger::WeightRecord;
pub use self::ledger::in_any_order;
use super::ledger::Restored;
use super::undoing::Undoing;
use super::{ActuatorError, launch};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
weights: control groups that compete have processor time in the proportion of their weights, as the kernel's own \
scheduler deals it out: within some tenths of a point over seconds on one processor, some points on several, because \
the kernel divides a group's weight among the processors that it runs on. It makes no task run sooner. A limit is kept in \
each period of the kernel's (a tenth of a second, as a rule). Each group's former weight and limit is put back at the end, also after a crash or kill -9, unless another program has changed it meanwhile; \
if the two processes that do this are killed at the same moment, the next start of this program by the same user does.";

/// The actuator of weights. When it is dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Weights {
    undoing: Undoing<WeightLedger>,
}

impl Weights {
    /// Starts the processes that put weights back. They run [this program](super::watcher::this_program)
    /// again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start() -> Result<Weights, ActuatorError> {
        Weights::start_with(launch::this_program)
    }

    /// Starts them with another program, whose `main` must call
    /// [`take_over_if_asked`](super::watcher::take_over_if_asked).
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start_with(watcher: impl Fn() -> Command + Send + 'static) -> Result<Weights, ActuatorError> {
        Ok(Weights { undoing: Undoing::start(watcher)? })
    }

    /// Gives a control group a weight.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::Group`] if it can have none, and why. Nothing has changed then.
    pub fn set(&mut self, group: &Path, weight: Weight) -> Result<(), ActuatorError> {
        let failed = |why| ActuatorError::Group { path: group.into(), why };
        let file = GroupFile::of_weight(group).map_err(failed)?;
        let told = file.weight(weight);
        self.change(group, &file, told)
    }

    /// Gives a control group a limit: it has no more than that, also while processors are idle.
    ///
    /// # Errors
    ///
    /// As [`Weights::set`].
    pub fn set_limit(&mut self, group: &Path, limit: Limit) -> Result<(), ActuatorError> {
        let failed = |why| ActuatorError::Group { path: group.into(), why };
        let file = GroupFile::of_limit(group).map_err(failed)?;
        let told = file.limit(limit).map_err(|error| failed(file.refused("read", &error)))?;
        self.change(group, &file, told)
    }

    fn change(&mut self, group: &Path, file: &GroupFile, told: u64) -> Result<(), ActuatorError> {
        let failed = |why| ActuatorError::Group { path: group.into(), why };
        let is_new = !self.undoing.ledger().knows(file);
        if is_new {
            self.refuse_taken(file).map_err(failed)?;
        }
        let present = file.read().map_err(|error| failed(file.refused("read", &error)))?;
        let original = self.undoing.ledger().original(file, present);
        self.undoing.be_watched()?;
        let record = WeightRecord::new(file, original, told).map_err(failed)?;
        self.undoing.note(record)?;
        // Again, behind the note: of two that begin at the same moment, one sees the other's.
        if is_new {
            self.refuse_taken(file).map_err(failed)?;
        }
        file.write(told).map_err(|error| failed(file.refused("written", &error)))
    }

    /// An error if another scheduler of this user gives this group a weight or a limit: that would be taken for
    /// the owner's, and would stay.
    fn refuse_taken(&self, file: &GroupFile) -> Result<(), String> {
        match self.undoing.other(|ledger| ledger.knows(file)) {
            Some(pid) => Err(format!("process {pid} has given it one already; end that one first")),
            None => Ok(()),
        }
    }

    /// The reason why weights stay as they are if this process and both of its watchers are killed at the
    /// same moment; see [`Affinity::unnamed`](super::Affinity::unnamed).
    #[must_use]
    pub fn unnamed(&self) -> Option<&io::Error> {
        self.undoing.unnamed()
    }

    /// Puts everything back, and reports how that went.
    pub fn finish(self) -> Restored {
        self.undoing.finish()
    }
}
