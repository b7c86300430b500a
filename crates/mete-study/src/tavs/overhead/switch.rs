//! How much longer the policy takes for a switch of tasks with tracking, by this machine's clock.

use mete_measure::reason::Reason;
use mete_measure::report::{Report, Row};
use mete_sim::cost::measure_in_turns;

use crate::simulated::Case;

/// How often the calls of a run are timed with tracking and without. That is often enough that the interval of the
/// median does not end with the least and the greatest sample.
const ROUNDS: usize = 21;

/// How much longer the policy takes for a call of hackbench with tracking than without, round by round. Nearly all
/// calls are switches of tasks.
///
/// # Errors
///
/// The reason why it could not be measured.
pub(super) fn measured_ns(hackbench: &Case) -> Result<Vec<f64>, Reason> {
    let scenario = hackbench.scenario()?;
    let rounds = measure_in_turns(&scenario, ["credit", "credit-tavs"], 1, ROUNDS);
    let rounds = rounds.map_err(Reason::while_trying("simulate hackbench"))?;
    Ok(rounds.iter().map(|[without, with]| (with.ns - without.ns) / with.calls).collect())
}

/// What was measured. If it could not be measured, a row says why.
pub(super) fn told(measured: Result<Vec<f64>, Reason>, report: &mut Report) -> Vec<f64> {
    measured.unwrap_or_else(|why| {
        report.rows.push(Row::new("cost of a tracked switch", "ns", Err(why)));
        Vec::new()
    })
}
