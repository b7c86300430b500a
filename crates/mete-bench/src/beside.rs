//! A policy that a user of this library has written, beside those of the catalog: a table, and a picture of
//! which client runs when.

use comfy_table::{Table, presets};
use mete_plot::{Lane, Span, timeline};
use mete_policy::{Policy, Setup, Share, by_name};
use mete_sim::quanta::{Outcome, QuantaError, Shares, Turn, watch};

/// Why policies cannot be compared.
#[derive(Debug, thiserror::Error)]
pub enum BesideError {
    /// The share is not between 1 and 2²⁰.
    #[error("a share of {0} cannot be: shares are 1 to {most}", most = Share::MAX.get())]
    Share(u32),
    /// The catalog has no policy of this name.
    #[error("there is no policy {0:?} in the catalog; `mete sim --list` shows all policies")]
    Unknown(String),
    /// The schedule cannot be simulated.
    #[error(transparent)]
    Quanta(#[from] QuantaError),
}

struct WatchedPolicy {
    name: String,
    outcome: Outcome,
    turns: Vec<Turn>,
}

/// Policies that schedule the same clients, all of them always ready, quantum by quantum on one processor
/// (VTRR paper, §5.1).
///
/// ```
/// use mete_policy::RoundRobin;
/// use mete_bench::Beside;
///
/// let mut beside = Beside::new(&[3, 2, 1], 2)?;
/// beside.with(RoundRobin::new)?;
/// beside.with_named("vtrr")?;
/// assert!(beside.table().contains("vtrr") && beside.picture().starts_with("<svg"));
/// # Ok::<(), mete_bench::BesideError>(())
/// ```
pub struct Beside {
    shares: Shares,
    cycles: u32,
    seen: Vec<WatchedPolicy>,
}

impl Beside {
    /// Clients with these shares, watched for `cycles` scheduling cycles. A scheduling cycle has as many
    /// quanta as the sum of the shares.
    ///
    /// # Errors
    ///
    /// [`BesideError::Share`]; [`BesideError::Quanta`] without clients.
    pub fn new(shares: &[u32], cycles: u32) -> Result<Beside, BesideError> {
        let shares = Shares::new(
            shares
                .iter()
                .map(|&share| Share::new(share).ok_or(BesideError::Share(share)))
                .collect::<Result<_, _>>()?,
        )?;
        Ok(Beside { shares, cycles, seen: Vec::new() })
    }

    /// Watches a policy.
    ///
    /// # Errors
    ///
    /// [`BesideError::Quanta`], above all if the policy picks no client although all of them are ready.
    pub fn with<P: Policy>(&mut self, make: impl FnOnce(&Setup) -> P) -> Result<(), BesideError> {
        let mut policy = make(&self.shares.setup(1));
        let mut turns = Vec::new();
        let outcome = watch(&mut policy, &self.shares, self.cycles, |turn| turns.push(turn))?;
        self.seen.push(WatchedPolicy { name: policy.name().to_owned(), outcome, turns });
        Ok(())
    }

    /// Watches a policy of the catalog.
    ///
    /// # Errors
    ///
    /// [`BesideError::Unknown`], or [`BesideError`] as for any policy that cannot be watched.
    pub fn with_named(&mut self, name: &str) -> Result<(), BesideError> {
        let entry = by_name(name).ok_or_else(|| BesideError::Unknown(name.to_owned()))?;
        self.with(entry.make)
    }

    /// A line for each policy: decisions, the lowest and the highest service-time error in quanta, and
    /// whether each client has exactly its share at the end.
    #[must_use]
    pub fn table(&self) -> String {
        let mut table = Table::new();
        table.load_preset(presets::NOTHING);
        table.set_header(["policy", "decisions", "lowest error", "highest error", "exact at the end"]);
        for seen in &self.seen {
            let errors = &seen.outcome.errors;
            table.add_row([
                seen.name.clone(),
                seen.outcome.decisions.to_string(),
                format!("{:.3}", errors.lowest_tu()),
                format!("{:.3}", errors.highest_tu()),
                if seen.outcome.repeats { "yes" } else { "no" }.to_owned(),
            ]);
        }
        table.to_string()
    }

    /// Which client ran when under each policy, as SVG.
    #[must_use]
    pub fn picture(&self) -> String {
        let shares = self.shares.as_slice();
        let rows: Vec<_> = shares.iter().map(|share| format!("share {}", share.get())).collect();
        let lanes: Vec<_> = self
            .seen
            .iter()
            .map(|seen| Lane {
                name: seen.name.clone(),
                rows: rows.clone(),
                spans: seen.turns.iter().map(span).collect(),
            })
            .collect();
        timeline("Who runs when", "time, ms", &lanes)
    }
}

fn span(turn: &Turn) -> Span {
    Span {
        row: turn.client.index(),
        from: turn.from_ns.as_millis_f64(),
        to: (turn.from_ns + turn.ran_ns).as_millis_f64(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_1_a_policy_of_the_user_is_compared_with_those_of_the_catalog() {
        let mut beside = Beside::new(&[3, 2, 1], 1).unwrap();
        beside.with(mete_policy::RoundRobin::new).unwrap();
        beside.with_named("wrr").unwrap();
        let table = beside.table();
        let wrr = table.lines().find(|line| line.trim_start().starts_with("wrr")).unwrap();
        assert!(wrr.contains("-1.000") && wrr.contains("1.500"), "the VTRR paper's example, §2.1: {table}");
        assert!(beside.picture().contains(">rr<") && beside.picture().contains(">share 3<"));
    }

    #[test]
    fn new_1_policies_that_cannot_be_compared_are_refused_with_a_reason() {
        assert!(matches!(Beside::new(&[0], 1), Err(BesideError::Share(0))));
        let error = Beside::new(&[1], 1).unwrap().with_named("fastest").unwrap_err();
        assert!(error.to_string().contains("fastest"), "{error}");
    }
}
