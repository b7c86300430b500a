//! Shares by the kernel's own scheduler: control groups get weights, of either version.

mod file;
mod ledger;

use std::path::Path;
use std::process::Command;

use self::file::WeightFile;
pub(super) use self::ledger::WeightLedger;
use self::ledger::WeightRecord;
use super::ledger::Restored;
use super::undoing::Undoing;
use super::{ActuatorError, watcher};

/// What this actuator enforces, and how closely.
pub const ENFORCES: &str = "\
weights: control groups that compete have processor time in the proportion of their weights, as the kernel's own \
scheduler deals it out: within some tenths of a point over seconds on one processor, some points on several, because \
the kernel divides a group's weight among the processors that it runs on. It makes no task run sooner. Each group's \
former weight is put back at the end, also after a crash or kill -9, unless another program has changed it meanwhile; \
if the two processes that do this are killed at the same moment, the next start of this program by the same user does.";

/// The actuator of weights. When it is dropped, it puts back what it changed.
#[derive(Debug)]
pub struct Weights {
    undoing: Undoing<WeightLedger>,
}

impl Weights {
    /// Starts the processes that put weights back. They run [this program](watcher::this_program) again.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start() -> Result<Weights, ActuatorError> {
        Weights::start_with(watcher::this_program)
    }

    /// Starts them with another program, whose `main` must call [`watcher::take_over_if_asked`].
    ///
    /// # Errors
    ///
    /// [`ActuatorError::NoWatcher`], [`ActuatorError::NotNoted`]
    pub fn start_with(watcher: impl Fn() -> Command + Send + 'static) -> Result<Weights, ActuatorError> {
        Ok(Weights { undoing: Undoing::start(watcher)? })
    }

    /// Gives a control group a weight, in the unit of `cpu.weight`, of which 100 are ordinary; 1 to 10,000.
    ///
    /// # Errors
    ///
    /// [`ActuatorError::Group`] if it can have none, and why. Nothing has changed then.
    pub fn set(&mut self, group: &Path, weight: u32) -> Result<(), ActuatorError> {
        let failed = |why| ActuatorError::Group { path: group.into(), why };
        let file = WeightFile::of(group).map_err(failed)?;
        let told = file.value_of(weight);
        let present = file.read().map_err(|error| failed(file.refused("read", &error)))?;
        let original = self.undoing.ledger().original(&file, present);
        self.undoing.be_watched()?;
        let record = WeightRecord::new(&file, original, told).map_err(failed)?;
        self.undoing.note(record)?;
        file.write(told).map_err(|error| failed(file.refused("written", &error)))
    }

    /// Puts everything back, and reports how that went.
    pub fn finish(self) -> Restored {
        self.undoing.finish()
    }
}
