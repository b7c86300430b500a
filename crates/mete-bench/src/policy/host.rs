//! The simulated machine: with only clients that compute, and as the host of the TAVS paper.

use mete_measure::reason::Reason;
use mete_policy::{ClientId, DomainIndex, Nanoseconds, Policy, Setup};
use mete_sim::{Context, Hardware, Host, Model, Reaction, Scenario, Stalled, Step};

use super::drive::shares;

/// Every client computes forever.
struct Hogs;

impl Model for Hogs {
    type Signal = ();
    type Event = ();

    fn next(&mut self, _client: ClientId, _context: &mut Context<Self>) -> Step {
        Step::Compute(Nanoseconds::MAX)
    }

    fn advance(&mut self, _client: ClientId, _ran_ns: Nanoseconds) {}

    fn deliver(&mut self, _client: ClientId, (): (), _context: &mut Context<Self>) -> Reaction {
        Reaction::Pending
    }

    fn event(&mut self, (): (), _context: &mut Context<Self>) {}
}

/// A machine of one processor. Each call runs it for another number of quanta, and returns how many decisions
/// it has made so far.
pub(super) fn hogs<P: Policy + 'static>(
    clients: u32,
    make: impl FnOnce(&Setup) -> P,
) -> impl FnMut(u64) -> Result<u64, Stalled> {
    let setup = Setup::for_clients(clients);
    let mut host = Host::new(Hardware::default(), make(&setup), Hogs, ());
    for (client, share) in shares(clients) {
        host.add(client, DomainIndex::ROOT, share, Nanoseconds::ZERO);
    }
    let mut quanta = 0;
    move |more| {
        // The host runs until an instant, not for a time, so the instants are added up.
        quanta += more;
        host.run_until(quanta * setup.quantum_ns)?;
        Ok(host.decisions())
    }
}

/// The shipped scenario of seven domains, a network and a driver, under TAVS. Each call runs it for another
/// span of simulated time.
pub(super) fn tavs() -> Result<impl FnMut(Nanoseconds) -> Result<(), Stalled>, Reason> {
    let scenario = Scenario::load("tavs-host", &[]).map_err(Reason::from_error)?;
    let policy = scenario.policy("credit-tavs", scenario.seed);
    let policy = policy.ok_or_else(|| Reason::new("there is no policy credit-tavs"))?;
    let mut host = scenario.host(policy, (), scenario.seed);
    let mut end_ns = Nanoseconds::ZERO;
    Ok(move |more_ns| {
        end_ns += more_ns;
        host.run_until(end_ns)
    })
}
