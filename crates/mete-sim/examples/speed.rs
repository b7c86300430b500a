//! How fast a scenario is simulated.
//!
//! ```sh
//! cargo run --release -p mete-sim --example speed -- tavs-host credit-tavs
//! ```

use std::time::Instant;

use mete_policy::by_name;
use mete_sim::Scenario;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "mix".into());
    let scenario = Scenario::load(&name, &[])?;
    let policy = arguments.next().map_or(Some(scenario.policy), |name| by_name(&name));
    let policy = policy.ok_or("there is no such policy")?;
    let mut host = scenario.host(scenario.make(policy, scenario.seed), (), scenario.seed);
    let begun = Instant::now();
    host.run_until(scenario.duration_ns)?;
    let (passed_s, simulated_s) = (begun.elapsed().as_secs_f64(), scenario.duration_ns.as_secs_f64());
    println!(
        "{name}: {:.0} simulated seconds a second, {:.2} million decisions a second",
        simulated_s / passed_s,
        host.decisions() as f64 / passed_s / 1e6
    );
    Ok(())
}
