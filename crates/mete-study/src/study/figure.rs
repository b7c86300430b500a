//! A figure of a paper beside our result.

use serde::{Deserialize, Serialize};

use mete_measure::report::Met;
use mete_measure::statistics::Summary;

/// Whether our result says the same as the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// It says the same.
    Agrees,
    /// It says something else.
    Differs,
    /// The measurements differ too much between repetitions for a verdict: see [`is_noisy`] and [`Met::TooNoisy`].
    TooNoisy,
    /// It was not measured, or could not be measured here; `ours` says why.
    NotMeasured,
}

impl Verdict {
    /// The verdict if the paper's statement holds here, or does not.
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
            Verdict::TooNoisy => "too noisy",
            Verdict::NotMeasured => "not measured",
        }
    }
}

/// The verdict on a statement that is the bar of a measured row.
impl From<Met> for Verdict {
    fn from(met: Met) -> Verdict {
        match met {
            Met::Yes => Verdict::Agrees,
            Met::No => Verdict::Differs,
            Met::TooNoisy => Verdict::TooNoisy,
        }
    }
}

/// The greatest quotient of the median of a time's repetitions and the least of them.
const NOISE: f64 = 1.1;

/// Whether a measured time allows no verdict, because the median of its repetitions is more than a tenth above the
/// least of them. Other load only makes repetitions longer. So on a quiet machine, median and least lie close
/// together. Repetitions of the time that it is compared with are taken in between, and are as noisy. The studies
/// apply this rule to all measured times. Where the result is what one time adds to another one, they apply it to
/// both.
#[must_use]
pub fn is_noisy(repetitions: &[f64]) -> bool {
    Summary::of(repetitions).is_some_and(|Summary { min, median, .. }| median > NOISE * min)
}

/// The text of a page with a verdict that noise did not allow.
const TOO_NOISY: &str = "Too noisy: of a time that the statement rests on, the median of the repetitions is more \
                         than a tenth above the least, because the machine did other work meanwhile; or the interval \
                         in which a median lies with a confidence of 95 % is on both sides of what the statement says; \
                         or other processes are known to have used more than a tenth of all processors. There is no \
                         verdict then.\n\n";

/// One statement of a paper, and what came out here.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Figure {
    /// The paper, and its figure, table or section.
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

    /// The same figure, without a verdict if the times behind it are noisy.
    #[must_use]
    pub fn unless_noisy(self, is_noisy: bool) -> Figure {
        if is_noisy { Figure { verdict: Verdict::TooNoisy, ..self } } else { self }
    }

    /// A figure that could not be measured here.
    pub fn missing(figure: impl Into<String>, paper: impl Into<String>, why: impl Into<String>) -> Figure {
        let (figure, paper, ours) = (figure.into(), paper.into(), why.into());
        Figure { figure, paper, ours, verdict: Verdict::NotMeasured }
    }

    /// The figure as a row of a page's table.
    pub(crate) fn markdown(&self) -> String {
        format!("| {} | {} | {} | {} |\n", self.figure, self.paper, self.ours, self.verdict.text())
    }
}

/// All figures of a study as a page's table.
pub(crate) fn markdown(figures: &[Figure]) -> String {
    let head = "| figure | paper's | ours | verdict |\n|---|---|---|---|\n";
    let table = figures.iter().fold(head.to_owned(), |text, figure| text + &figure.markdown());
    let is_noisy = figures.iter().any(|figure| figure.verdict == Verdict::TooNoisy);
    table + "\n" + if is_noisy { TOO_NOISY } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_too_noisy_if_its_median_is_more_than_a_tenth_above_its_least() {
        assert!(!is_noisy(&[10.0, 11.0, 90.0]), "what is rare is left out by the median");
        assert!(is_noisy(&[10.0, 11.1, 11.2]));
        assert!(!is_noisy(&[]), "what was not measured is said to be that");
    }

    #[test]
    fn of_noisy_times_there_is_no_verdict_whatever_they_say_and_the_page_says_why() {
        for holds in [true, false] {
            let figure = Figure::new("figure", "paper", "ours", holds);
            assert_eq!(figure.clone().unless_noisy(false).verdict, Verdict::of(holds));
            let noisy = figure.unless_noisy(true);
            assert_eq!(noisy.verdict, Verdict::TooNoisy);
            assert!(markdown(&[noisy]).contains("more than a tenth above the least"));
        }
    }
}
