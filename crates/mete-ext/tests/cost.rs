//! What a decision costs, whatever the number of tasks. `make test` runs this with one processor: what another emulated one
//! did meanwhile would be in the costs.

#![allow(clippy::unwrap_used, reason = "a test ends where something fails")]

mod common;

use std::time::Duration;

use common::cost::{accounted, cost};

#[test]
fn vtrr_6_a_decision_among_thousands_of_tasks_costs_hardly_more_than_one_among_ten() {
    let test = "vtrr_6_a_decision_among_thousands_of_tasks_costs_hardly_more_than_one_among_ten";
    let Some((scheduler, accounts)) = accounted(test) else { return };
    let stretches = (3, Duration::from_secs(1));
    let costs = [10, 1000, 10_000].map(|threads| cost((&scheduler, &accounts), threads, stretches));
    println!("a decision among 10, 1,000 and 10,000 tasks: {costs:.0?} ns");
    assert!(costs.iter().all(|cost| *cost < 1.3 * costs[0]), "{costs:?}");
}
