//! One scenario under several policies, with several values of its keys, from several seeds.
//!
//! ```text
//!   keys' values ─┐
//!   policies ─────┼──▶ every combination, on all processors ──▶ a cell: its reports by seed
//!   seeds ────────┘
//! ```
//!
//! The results come in the order of the combinations, with any number of threads.

use std::collections::BTreeSet;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::str::FromStr;

use mete_policy::Entry;

use crate::host::Stalled;
use crate::parallel::in_parallel;
use crate::report::{Report, run_while};
use crate::scenario::{Scenario, ScenarioError, Setting};

/// A key of the scenario, by its dotted path, and the values that it takes one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Varied {
    values: Vec<Setting>,
}

impl FromStr for Varied {
    type Err = SweepError;

    /// `key=value,value,…`
    fn from_str(text: &str) -> Result<Varied, SweepError> {
        let parts = text.split_once('=').map(|(key, values)| (key.trim(), values.split(',').map(str::trim)));
        match parts {
            Some((key, values)) if !key.is_empty() && values.clone().all(|value| !value.is_empty()) => {
                Ok(Varied { values: values.map(|value| Setting::new(key, value)).collect() })
            }
            _ => Err(SweepError::Varied(text.to_owned())),
        }
    }
}

/// Why a sweep cannot be run.
#[derive(Clone, Debug, thiserror::Error)]
pub enum SweepError {
    /// What should vary was not written as a key and values.
    #[error("{0:?} names nothing to vary; write a key of the scenario and its values: host.switch_us=0,5,50")]
    Varied(String),
    /// A value does not fit.
    #[error("--vary {setting}: {what}")]
    Value {
        /// The key and the value.
        setting: String,
        /// What is wrong with it.
        what: String,
    },
    /// Something is to vary that varies already: only one of the two would count.
    #[error("--vary {what} is given twice; write all values behind the key once")]
    Twice {
        /// The key, or the key and the value.
        what: String,
    },
    /// A combination of values makes no scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// More than [`MOST_RUNS`].
    #[error(
        "{seeds} seeds, {values} combinations of values and {policies} policies are too many runs: at most \
         {MOST_RUNS} can be kept; take fewer of them"
    )]
    TooMany {
        /// How many seeds.
        seeds: u64,
        /// How many combinations of values.
        values: u64,
        /// How many policies.
        policies: u64,
    },
    /// A program does not let time go on.
    #[error(transparent)]
    Stalled(#[from] Stalled),
}

/// The most runs that a sweep may have: all their reports are kept until the last one ends.
pub const MOST_RUNS: u64 = 100_000;

/// A sweep that is ready to run.
pub struct Sweep {
    variants: Vec<(Vec<Setting>, Scenario)>,
    policies: Vec<&'static Entry>,
    seeds: Range<u64>,
}

/// One combination of values and a policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The varied keys with their values here. Every cell of a sweep has the same keys, in the same order.
    pub values: Vec<Setting>,
    /// The policy's name.
    pub policy: String,
    /// The reports, by seed.
    pub reports: Vec<Report>,
}

impl Sweep {
    /// A scenario (a file, or a shipped one) with these settings and every combination of the varied values,
    /// under every policy. With no policies, it runs under the scenario's own.
    ///
    /// # Errors
    ///
    /// [`SweepError::Value`] or [`SweepError::Scenario`] for the first combination that makes no scenario,
    /// and [`SweepError::TooMany`].
    pub fn new(
        scenario: &str,
        settings: &[Setting],
        varied: &[Varied],
        policies: &[&'static Entry],
        seeds: Range<u64>,
    ) -> Result<Sweep, SweepError> {
        check_number(&seeds, varied, policies)?;
        check_once(varied)?;
        let variants = combinations(varied).into_iter().map(|values| variant(scenario, settings, values));
        let variants = variants.collect::<Result<Vec<_>, _>>()?;
        let policies = match (policies, variants.first()) {
            ([], Some((_, scenario))) => vec![scenario.policy],
            _ => policies.to_vec(),
        };
        Ok(Sweep { variants, policies, seeds })
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.variants.len() * self.policies.len() * self.seeds_len()
    }

    fn seeds_len(&self) -> usize {
        usize::try_from(self.seeds.end.saturating_sub(self.seeds.start)).unwrap_or(usize::MAX)
    }

    /// Runs all of it on this number of threads, and calls `done` after each run. `None` if `go_on`, which is
    /// asked after each run and continually during it, says [`ControlFlow::Break`].
    pub fn run(
        &self,
        threads: NonZeroUsize,
        go_on: impl Fn() -> ControlFlow<()> + Sync,
        mut done: impl FnMut(),
    ) -> Option<Result<Vec<Cell>, SweepError>> {
        let reports = in_parallel(
            self.runs(),
            threads,
            |nth| self.one(nth, &go_on),
            || {
                done();
                go_on()
            },
        )?;
        // A run that was stopped has no report.
        let reports: Option<Vec<_>> = reports.into_iter().map(Result::transpose).collect();
        Some(self.cells(reports?.into_iter()))
    }

    /// The n-th run. Seeds change fastest, then policies, then values.
    fn one(&self, nth: usize, go_on: impl Fn() -> ControlFlow<()>) -> Result<Option<Report>, SweepError> {
        let (cell, seed) = (nth / self.seeds_len(), nth % self.seeds_len());
        let (_, scenario) = &self.variants[cell / self.policies.len()];
        let policy = self.policies[cell % self.policies.len()];
        let ran = run_while(scenario, policy, self.seeds.start + seed as u64, (), go_on);
        Ok(match ran? {
            ControlFlow::Continue((report, ())) => Some(report),
            ControlFlow::Break(()) => None,
        })
    }

    fn cells(
        &self,
        mut reports: impl Iterator<Item = Result<Report, SweepError>>,
    ) -> Result<Vec<Cell>, SweepError> {
        let mut cells = Vec::new();
        for (values, _) in &self.variants {
            for policy in &self.policies {
                // In the order of `one`: by seed within a policy, by policy within values.
                let reports = reports.by_ref().take(self.seeds_len()).collect::<Result<_, _>>()?;
                cells.push(Cell { values: values.clone(), policy: policy.name.to_owned(), reports });
            }
        }
        Ok(cells)
    }
}

/// A scenario with the settings and one combination of values.
fn variant(
    scenario: &str,
    settings: &[Setting],
    values: Vec<Setting>,
) -> Result<(Vec<Setting>, Scenario), SweepError> {
    let settings: Vec<Setting> = settings.iter().chain(&values).cloned().collect();
    match Scenario::load(scenario, &settings) {
        Ok(scenario) => Ok((values, scenario)),
        Err(ScenarioError::Setting { setting, what, .. })
            if values.iter().any(|value| value.to_string() == setting) =>
        {
            Err(SweepError::Value { setting, what })
        }
        Err(error) => Err(SweepError::Scenario(error)),
    }
}

/// Checks the number of runs before a list of them exists.
fn check_number(seeds: &Range<u64>, varied: &[Varied], policies: &[&Entry]) -> Result<(), SweepError> {
    let seeds = seeds.end.saturating_sub(seeds.start);
    let values =
        varied.iter().fold(1u64, |product, varied| product.saturating_mul(varied.values.len() as u64));
    let policies = policies.len().max(1) as u64;
    if seeds.saturating_mul(values).saturating_mul(policies) > MOST_RUNS {
        return Err(SweepError::TooMany { seeds, values, policies });
    }
    Ok(())
}

/// Whether each key, and each value of it, is there once.
fn check_once(varied: &[Varied]) -> Result<(), SweepError> {
    let keys = varied.iter().filter_map(|varied| varied.values.first()).map(|first| first.key().to_owned());
    let values = varied.iter().flat_map(|varied| &varied.values).map(Setting::to_string);
    let mut known = BTreeSet::new();
    match keys.chain(values).find(|what| !known.insert(what.clone())) {
        Some(what) => Err(SweepError::Twice { what }),
        None => Ok(()),
    }
}

/// Every combination of the values; the last key's values change fastest. One combination without values if
/// nothing varies.
fn combinations(varied: &[Varied]) -> Vec<Vec<Setting>> {
    varied.iter().fold(vec![Vec::new()], |before, Varied { values: settings }| {
        let longer = before.iter().flat_map(|rest| {
            settings.iter().map(move |setting| [rest.as_slice(), std::slice::from_ref(setting)].concat())
        });
        longer.collect()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn varied(text: &str) -> Varied {
        text.parse().expect("a key and values")
    }

    #[test]
    fn every_combination_of_values_comes_once_and_in_order() {
        let found = combinations(&[varied("a.b=1,2"), varied("c = x, y")]);
        assert_eq!(
            found,
            [["a.b=1", "c=x"], ["a.b=1", "c=y"], ["a.b=2", "c=x"], ["a.b=2", "c=y"]]
                .map(|it| it.map(|text| text.parse().expect("key=value")))
        );
        assert_eq!(combinations(&[]), [Vec::<Setting>::new()]);
    }

    #[test]
    fn what_varies_varies_once() {
        assert!(check_once(&[varied("a.b=1,2"), varied("a.c=1,2")]).is_ok());
        for twice in [vec![varied("a.b=1,2"), varied("a.b=3")], vec![varied("a.b=1,1")]] {
            assert!(check_once(&twice).unwrap_err().to_string().contains("--vary a.b"), "{twice:?}");
        }
    }

    #[test]
    fn a_text_without_a_key_and_values_is_refused_and_quoted() {
        for text in ["", "a", "=1", "a=", "a=1,,2"] {
            let error = text.parse::<Varied>().expect_err("nothing to vary");
            assert!(error.to_string().contains(&format!("{text:?}")), "{error}");
        }
    }
}
