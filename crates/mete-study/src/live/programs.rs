//! What a decision inside the kernel takes, by the kernel's account of the scheduler's programs. Where time goes by
//! instructions, that is their number.

use std::time::Duration;

use mete_base::progress::Progress;
use mete_kernel::accounts::{Account, Accounts};
use mete_measure::Reason;

use super::stage::{Means, Run, Setting, Witness};

/// The operations of a decision among processes that compute all the time.
pub(super) const OPERATIONS: [&str; 4] = ["dispatch", "running", "stopping", "enqueue"];

/// What each of them took in the mean, in nanoseconds.
pub(super) type PerOperation = [f64; OPERATIONS.len()];

/// What a decision takes in a run.
pub(super) fn decision(
    means: Means,
    setting: &Setting<'_>,
    time: Duration,
    progress: &dyn Progress,
) -> Result<PerOperation, Reason> {
    let mut accounts = OfPrograms::new()?;
    Run::seen_by(&mut accounts, means, setting, time, progress)?;
    accounts.means_ns().ok_or_else(|| Reason::new("an operation of the scheduler was never called"))
}

/// What a decision took in each run: all operations together.
pub(super) fn sums(costs: &[PerOperation]) -> Vec<f64> {
    costs.iter().map(|each| each.iter().sum()).collect()
}

/// Reads the kernel's accounts of the scheduler's programs.
struct OfPrograms {
    accounts: Accounts,
    begun: [Account; OPERATIONS.len()],
    all: [Account; OPERATIONS.len()],
}

impl OfPrograms {
    fn new() -> Result<OfPrograms, Reason> {
        let none = [Account::default(); OPERATIONS.len()];
        let accounts =
            Accounts::begin().map_err(Reason::while_trying("have the kernel take account of programs"))?;
        Ok(OfPrograms { accounts, begun: none, all: none })
    }

    fn read(&self) -> Result<[Account; OPERATIONS.len()], Reason> {
        let read = self.accounts.of(OPERATIONS);
        read.ok_or_else(|| Reason::new("the kernel does not have each of the scheduler's operations once"))
    }

    fn means_ns(&self) -> Option<PerOperation> {
        let means: Option<Vec<_>> = self.all.iter().map(|account| account.mean_ns()).collect();
        means?.try_into().ok()
    }
}

impl Witness for OfPrograms {
    fn begin(&mut self, _place: usize, _pids: &[i32]) -> Result<(), Reason> {
        self.begun = self.read()?;
        Ok(())
    }

    fn end(&mut self) -> Result<(), Reason> {
        let ended = self.read()?;
        self.all = std::array::from_fn(|nth| ended[nth].since(self.begun[nth]));
        Ok(())
    }
}
