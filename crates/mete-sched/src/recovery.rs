//! An earlier run may have been killed together with the processes that would have undone its changes. The next run of
//! the same user undoes them.

use crate::actuator::{self, Restored};

/// Removes the sockets and puts back the processor masks that killed runs have left. Returns what the user should know,
/// in sentences.
pub fn recover() -> Option<String> {
    mete_probe::stale::remove();
    let restored = actuator::recover().unwrap_or_default();
    (restored.restored + restored.failed > 0).then(|| masks(restored))
}

fn masks(restored: Restored) -> String {
    let Restored { restored, failed, .. } = restored;
    let refused =
        if failed > 0 { format!("; {failed} could not be: see taskset -p PID") } else { String::new() };
    let threads = match restored {
        1 => "that of one thread is".to_owned(),
        more => format!("those of {more} threads are"),
    };
    format!(
        "an earlier run was killed together with the processes that put processor masks back: {threads} put back \
         now{refused}"
    )
}
