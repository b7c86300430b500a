//! What came out of the thesis' claims on its two readers (figures 5.4 and 5.5), for a writer at its pace.

use serde_json::json;

use super::result::{self, ReaderResult};
use super::setting::{Load, Scheme, sizes};
use crate::study::{Finding, Findings};

pub(super) fn of(found: &[ReaderResult], largest_bytes: u64) -> Findings {
    vec![
        ("clearing", of_all_sizes(found, Scheme::RestartClearing).map(clearing)),
        ("restart", of_all_sizes(found, Scheme::Restart).map(|results| restart(results, largest_bytes))),
    ]
}

/// A reader's results. `None` without all sizes, because then they do not show where the limit is.
fn of_all_sizes(
    found: &[ReaderResult],
    scheme: Scheme,
) -> Option<impl Iterator<Item = &ReaderResult> + Clone> {
    let results = result::of(found, scheme, Load::ThesisPace);
    (results.clone().count() == sizes().len()).then_some(results)
}

/// The worst size decides: the statement is about all of them.
fn clearing<'a>(results: impl Iterator<Item = &'a ReaderResult>) -> Finding {
    let trials = results.map(ReaderResult::mean_trials).fold(0.0, f64::max);
    Finding::new(json!({ "trials": trials }), trials <= 2.0)
}

/// The reader starves, but not up to this size.
fn restart<'a>(results: impl Iterator<Item = &'a ReaderResult>, largest_bytes: u64) -> Finding {
    let starving = results.filter(|result| result.starved > 0).map(|result| result.bytes).min();
    Finding::new(json!({ "bytes": starving }), starving.is_some_and(|bytes| bytes > largest_bytes))
}
