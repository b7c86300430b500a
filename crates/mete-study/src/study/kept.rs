//! What a study keeps of a run in `results.json`: everything that its page is made of.

use mete_measure::{Reason, Report, Verdict};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::finding::Finding;
use super::{Study, StudyFile};

/// The file `results.json`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Kept {
    /// The command that makes the same results.
    pub command: String,
    /// The machine in one line, and when it was measured; `None` for simulated results.
    pub machine: Option<String>,
    /// Day and time, UTC.
    pub date: String,
    /// False if the run was stopped before its end.
    pub is_complete: bool,
    /// What came out of the claims.
    pub findings: Vec<KeptFinding>,
    /// What the page says besides, by name.
    pub facts: Value,
    /// What could not be measured, with each reason once.
    pub absent: Vec<Absent>,
    /// The names of the pictures' files.
    pub pictures: Vec<String>,
}

/// What came out of one claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeptFinding {
    /// The claim's id.
    pub id: String,
    pub verdict: Verdict,
    /// The values of the claim's sentence.
    pub values: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub others_percent: Option<f64>,
}

/// Something that could not be measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Absent {
    pub what: String,
    pub why: String,
}

impl KeptFinding {
    pub(super) fn of(id: &str, finding: Finding) -> KeptFinding {
        let Finding { values, verdict, others_percent } = finding;
        KeptFinding { id: id.to_owned(), verdict, values, others_percent }
    }
}

impl Kept {
    /// What a run of this study found.
    pub(super) fn of<S: Study>(report: &Report, found: &S::Found, pictures: &[StudyFile]) -> Kept {
        let findings = S::findings(found).into_iter();
        Kept {
            command: report.title.clone(),
            machine: (!S::IS_SIMULATED).then(|| report.machine.line()),
            date: report.machine.date.clone(),
            is_complete: report.is_complete,
            findings: findings.filter_map(|(id, finding)| Some(KeptFinding::of(id, finding?))).collect(),
            facts: S::facts(found),
            absent: absent(report),
            pictures: pictures.iter().map(|(name, _)| name.clone()).collect(),
        }
    }

    /// Reads the file's text.
    pub(super) fn read(text: &str) -> Result<Kept, Reason> {
        serde_json::from_str(text).map_err(Reason::from_error)
    }

    /// The file's text.
    pub(super) fn text(&self) -> String {
        // Structures of numbers and texts can always be serialised.
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Why a claim has no finding.
    pub(super) fn why_missing(&self) -> &'static str {
        match (self.is_complete, &self.machine) {
            (true, _) => "not measured on this machine: see the rows' notes",
            (false, Some(_)) => "not measured: the run was stopped before",
            (false, None) => "stopped before it was simulated",
        }
    }
}

/// What could not be measured. A row's name is `group: what`, and a group that cannot be measured has one
/// reason.
fn absent(report: &Report) -> Vec<Absent> {
    let mut all: Vec<Absent> = Vec::new();
    for row in report.rows.iter().filter(|row| row.median.is_none() && !row.note.is_empty()) {
        let what = row.name.split(": ").next().unwrap_or(&row.name);
        if !all.iter().any(|known| known.what == what && known.why == row.note) {
            all.push(Absent { what: what.to_owned(), why: row.note.clone() });
        }
    }
    all
}
