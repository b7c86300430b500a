//! What a paper claims, and what came out here.
//!
//! A claim stands in the study's `claims.toml`:
//!
//! ```toml
//! [[claim]]
//! id = "bound"                                   # by which the code calls it
//! figure = "VTRR §2.3, WFQ's bound"              # the paper, and its figure, table or section
//! paper = "WFQ never lets a client fall behind by more than one quantum"
//! ours = "{{ lowest|short }} TU at worst"        # with the values of the finding
//! missing = "needs hardware counters"            # if it cannot be measured anywhere; may be left out
//! ```
//!
//! The code says what came out, as a [`Finding`](super::Finding): values for the sentence, and a verdict.

use mete_measure::{Reason, Verdict};
use serde::Deserialize;

use super::finding::ClaimResult;
use super::kept::Kept;
use super::page;

/// The file `claims.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimsFile {
    #[serde(default, rename = "claim")]
    claims: Vec<Claim>,
}

/// One claim as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Claim {
    id: String,
    figure: String,
    /// What the paper says; or what this project asks of itself. One of the two.
    paper: Option<String>,
    bar: Option<String>,
    #[serde(default)]
    ours: String,
    missing: Option<String>,
}

/// Each claim of the file beside its finding, in the order of the file.
pub(super) fn results(claims_toml: &str, kept: &Kept) -> Result<Vec<ClaimResult>, Reason> {
    let file: ClaimsFile = toml::from_str(claims_toml).map_err(Reason::from_error)?;
    if let Some(stray) = kept.findings.iter().find(|found| file.claims.iter().all(|of| of.id != found.id)) {
        return Err(Reason::new(format!("claims.toml has no claim {:?}", stray.id)));
    }
    file.claims.into_iter().map(|claim| claim.beside(kept)).collect()
}

impl Claim {
    fn beside(self, kept: &Kept) -> Result<ClaimResult, Reason> {
        let Claim { id, figure, paper, bar, ours, missing } = self;
        let is_own_bar = bar.is_some();
        let paper =
            bar.xor(paper).ok_or_else(|| Reason::new(format!("claim {id:?} has to have paper or bar")))?;
        let Some(found) = kept.findings.iter().find(|found| found.id == id) else {
            let ours = missing.unwrap_or_else(|| kept.why_missing().to_owned());
            return Ok(ClaimResult { figure, paper, is_own_bar, ours, verdict: Verdict::NotMeasured });
        };
        let mut ours = page::sentence(&ours, &found.values)?;
        // Without a verdict, readers must see that other programs are the reason.
        if let Some(percent) = found.others_percent {
            ours += &format!("; others used up to {} % of the processors", mete_plot::short(percent));
        }
        Ok(ClaimResult { figure, paper, is_own_bar, ours, verdict: found.verdict })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::super::kept::KeptFinding;
    use super::*;
    use crate::study::Finding;

    #[test]
    fn klog_9_on_a_machine_that_others_use_there_is_no_verdict_and_the_page_says_how_much_they_do() {
        let finding = || Finding::new(Value::Null, true);
        assert_eq!(finding().unless_busy(10.0), finding());
        let busy = finding().unless_busy(45.0);
        assert_eq!((busy.verdict, busy.others_percent), (Verdict::TooNoisy, Some(45.0)));
        let kept = Kept { findings: vec![KeptFinding::of("a", busy)], ..Kept::default() };
        let text = "[[claim]]\nid = \"a\"\nfigure = \"f\"\npaper = \"p\"\nours = \"o\"";
        let results = results(text, &kept).expect("it is a claim");
        assert!(results[0].ours.contains("45.0 % of the processors"), "{results:?}");
    }

    #[test]
    fn of_noisy_times_there_is_no_verdict_whatever_they_say() {
        for holds in [true, false] {
            let finding = Finding::new(Value::Null, holds);
            assert_eq!(finding.clone().unless_noisy(false).verdict, Verdict::of(holds));
            assert_eq!(finding.unless_noisy(true).verdict, Verdict::TooNoisy);
        }
    }

    #[test]
    fn a_finding_without_a_claim_is_refused_and_a_claim_without_a_finding_is_not_measured() {
        let kept =
            Kept { findings: vec![KeptFinding::of("b", Finding::new(Value::Null, true))], ..Kept::default() };
        let text = "[[claim]]\nid = \"a\"\nfigure = \"f\"\npaper = \"p\"";
        assert!(results(text, &kept).is_err_and(|reason| reason.to_string().contains("\"b\"")));
        let results = results(text, &Kept::default()).expect("it is a claim");
        assert_eq!(results[0].verdict, Verdict::NotMeasured);
        assert!(!results[0].ours.is_empty());
    }
}
