//! An earlier run may have been killed together with the processes that would have undone its changes. The
//! next run of the same user undoes them.

use crate::actuator::{self, Recovered, Restored};

/// Removes the sockets that killed runs have left, and puts back what they changed. Returns what the user
/// should know, in sentences.
pub fn recover() -> Option<String> {
    mete_probe::stale::remove();
    let Recovered { masks, classes, weights } = actuator::recover();
    let masks = said(
        masks,
        "the processor mask of one thread",
        "the processor masks of",
        "threads",
        "see taskset -p PID",
    );
    let classes = said(
        classes,
        "the scheduling class of one thread",
        "the scheduling classes of",
        "threads",
        "see chrt -p PID",
    );
    let weights = said(
        weights,
        "the weight of one control group",
        "the weights of",
        "control groups",
        "see cpu.weight",
    );
    let parts: Vec<_> = masks.into_iter().chain(classes).chain(weights).collect();
    let begin = "an earlier run was killed together with the processes that put back what it changed";
    (!parts.is_empty()).then(|| format!("{begin}: {}", parts.join("; ")))
}

fn said(restored: Restored, one: &str, several: &str, of: &str, see: &str) -> Option<String> {
    let Restored { restored, failed, .. } = restored;
    let what = match restored {
        _ if restored + failed == 0 => return None,
        1 => format!("{one} is put back now"),
        more => format!("{several} {more} {of} are put back now"),
    };
    let refused = if failed > 0 { format!(", {failed} could not be: {see}") } else { String::new() };
    Some(what + &refused)
}
