//! A figure of a paper beside ours.

use serde::Serialize;

/// Whether ours says what the paper's says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It does.
    Agrees,
    /// It does not.
    Differs,
    /// It could not be measured here; `ours` says why.
    NotMeasured,
}

impl Verdict {
    /// By whether what the paper says holds.
    #[must_use]
    pub fn of(holds: bool) -> Verdict {
        if holds { Verdict::Agrees } else { Verdict::Differs }
    }

    /// In words.
    #[must_use]
    pub fn text(self) -> &'static str {
        match self {
            Verdict::Agrees => "agrees",
            Verdict::Differs => "DIFFERS",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// One statement of a paper, and what came out here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// Which paper and figure, table or section.
    pub figure: String,
    /// What the paper says.
    pub paper: String,
    /// What was found here.
    pub ours: String,
    /// Whether both say the same.
    pub verdict: Verdict,
}

impl Figure {
    /// A figure whose verdict is that the paper's statement holds here, or does not.
    pub fn new(
        figure: impl Into<String>,
        paper: impl Into<String>,
        ours: impl Into<String>,
        holds: bool,
    ) -> Figure {
        let (figure, paper, ours) = (figure.into(), paper.into(), ours.into());
        Figure { figure, paper, ours, verdict: Verdict::of(holds) }
    }

    /// A figure that could not be measured here.
    pub fn missing(figure: impl Into<String>, paper: impl Into<String>, why: impl Into<String>) -> Figure {
        let (figure, paper, ours) = (figure.into(), paper.into(), why.into());
        Figure { figure, paper, ours, verdict: Verdict::NotMeasured }
    }

    /// As a row of a table in a page.
    pub(crate) fn markdown(&self) -> String {
        format!("| {} | {} | {} | {} |\n", self.figure, self.paper, self.ours, self.verdict.text())
    }
}

/// All figures of a study as a table in a page.
pub(crate) fn markdown(figures: &[Figure]) -> String {
    let head = "| figure | paper's | ours | verdict |\n|---|---|---|---|\n";
    figures.iter().fold(head.to_owned(), |text, figure| text + &figure.markdown()) + "\n"
}
