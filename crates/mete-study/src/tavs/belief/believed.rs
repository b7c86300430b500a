//! What is believed of the tasks of each pair, with the scenario's IOthreshold (figure 17(b)) and with one that is
//! raised after 20 s (figure 18). Beliefs are those of seed 1.

use mete_measure::reason::Reason;

use super::curve::{Curve, beliefs};
use super::pair::{PAIRS, Pair, pair};
use crate::simulated::scenario;

/// The degree of belief above which a task counts as I/O-bound (§5).
pub(super) const THRESHOLD: f64 = 20.0;
/// The time after which beliefs have settled.
pub(super) const SETTLED_S: f64 = 20.0;

/// The degrees of belief, by the name of a pair's I/O-bound program or by the id of a [`Change`].
#[derive(Default)]
pub(crate) struct Believed(Vec<(&'static str, Vec<Curve>)>);

/// A case in which IOthreshold is raised after 20 s.
pub(super) struct Change {
    /// The id of the claim.
    pub id: &'static str,
    pub pair: Pair,
    pub from_ms: &'static str,
    pub to_ms: f64,
    /// Another program of the I/O-bound task, if there is one.
    pub program: Option<&'static str>,
}

/// After the paper's two changes, wget with other times that a packet takes it. The paper does not give that time;
/// these range from only copying a packet to writing it to a file.
pub(super) const CHANGES: [Change; 6] = [
    wget("told-wget", None),
    Change { id: "told-svn", pair: pair!("svn", "mencoder"), from_ms: "0.5", to_ms: 2.0, program: None },
    wget("told-wget-20", Some("program=[{ receive = { port = 7 } }, { compute_us = 20 }, \"done\"]")),
    wget("told-wget-30", Some("program=[{ receive = { port = 7 } }, { compute_us = 30 }, \"done\"]")),
    wget("told-wget-40", Some("program=[{ receive = { port = 7 } }, { compute_us = 40 }, \"done\"]")),
    wget("told-wget-80", Some("program=[{ receive = { port = 7 } }, { compute_us = 80 }, \"done\"]")),
];

const fn wget(id: &'static str, program: Option<&'static str>) -> Change {
    Change { id, pair: pair!("wget", "bzip2"), from_ms: "0.1", to_ms: 0.5, program }
}

impl Believed {
    pub(super) fn simulated() -> Believed {
        let pairs = PAIRS.iter().map(|pair| (pair.io, beliefs(&pair.tavs_case(), &[])));
        let all = pairs.chain(CHANGES.iter().map(|change| (change.id, change.beliefs())));
        Believed(all.filter_map(|(id, curves)| Some((id, curves.ok()?))).collect())
    }

    pub(super) fn find(&self, id: &str) -> Option<&[Curve]> {
        self.0.iter().find(|(of, _)| *of == id).map(|(_, curves)| &curves[..])
    }
}

impl Change {
    fn beliefs(&self) -> Result<Vec<Curve>, Reason> {
        let program = self.program.map(|program| format!("guest.mixed.task.{}.{program}", self.pair.io));
        let threshold = format!("guest.mixed.io_threshold_ms={}", self.from_ms);
        let case = self.pair.tavs_case().with([threshold]).with(program);
        beliefs(&case, &[(SETTLED_S, self.to_ms)])
    }
}
