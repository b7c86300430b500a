//! An earlier run may have been killed together with the processes that would have undone its changes. The
//! next run of the same user undoes them.

use crate::actuator::{self, Recovered, Restored};

/// Removes the sockets that killed runs have left, and puts back what they changed. Returns what the user
/// should know, in sentences.
pub fn recover() -> Option<String> {
    mete_probe::stale::remove();
    let Recovered { masks, classes, pauses, weights } = actuator::recover();
    let masks = said(
        masks,
        "the processor mask of one thread is put back now",
        ["the processor masks of", "threads are put back now"],
        "taskset -p PID",
    );
    let classes = said(
        classes,
        "the scheduling class of one thread is put back now",
        ["the scheduling classes of", "threads are put back now"],
        "chrt -p PID",
    );
    let pauses = said(
        pauses,
        "one process that was paused goes on now",
        ["", "processes that were paused go on now"],
        "ps -e -o pid,stat,comm",
    );
    let weights = said(
        weights,
        "the weight of one control group is put back now",
        ["the weights of", "control groups are put back now"],
        "cpu.weight",
    );
    let parts: Vec<_> = masks.into_iter().chain(classes).chain(pauses).chain(weights).collect();
    let begin = "an earlier run was killed together with the processes that put back what it changed";
    (!parts.is_empty()).then(|| format!("{begin}: {}", parts.join("; ")))
}

/// What was done, if anything was: in these words for one, and in these around the number for several.
fn said(restored: Restored, one: &str, several: [&str; 2], see: &str) -> Option<String> {
    let Restored { restored, failed, .. } = restored;
    let what = match restored {
        _ if restored + failed == 0 => return None,
        1 => one.to_owned(),
        more => format!("{} {more} {}", several[0], several[1]).trim_start().to_owned(),
    };
    let refused = if failed > 0 { format!(", {failed} could not be: see {see}") } else { String::new() };
    Some(what + &refused)
}
