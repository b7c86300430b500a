//! What a decision costs, whatever the number of tasks.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::time::Duration;

use common::cost::{Accounts, cost, is_counted};
use common::{go_ahead, ruling};

#[test]
fn vtrr_6_a_decision_among_10_000_tasks_costs_hardly_more_than_one_among_10() {
    let test = "vtrr_6_a_decision_among_10_000_tasks_costs_hardly_more_than_one_among_10";
    if !is_counted(test) {
        return;
    }
    let Some(scheduler) = ruling(test) else { return };
    go_ahead();
    let _accounts = Accounts::on();
    let costs = [10, 1000, 10_000].map(|threads| cost(&scheduler, threads, Duration::from_secs(1)));
    println!("a decision among 10, 1,000 and 10,000 tasks: {costs:.0?} ns");
    // Less is none of the promise: where thousands wait for seconds, some go ahead without a choice among queues.
    assert!(costs.iter().all(|cost| *cost < 1.3 * costs[0]), "{costs:?}");
}
