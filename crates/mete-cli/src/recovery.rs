//! An earlier run may have been killed together with the processes that would have undone its changes. The next run of
//! the same user undoes them, whatever its subcommand is.

use mete_command::failure;
use mete_probe::directory;
use mete_sched::actuator::{self, Restored};

/// Undoes what killed runs have left, and says so.
pub fn run() {
    mete_probe::stale::remove();
    for path in mete_parameters::recover(&directory::all_own()) {
        failure::say(&format!(
            "an earlier recorder was killed together with the processes that unmount its parameters: {} is unmounted \
             now",
            path.display()
        ));
    }
    let restored = actuator::recover().unwrap_or_default();
    if restored.restored + restored.failed > 0 {
        failure::say(&masks(restored));
    }
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
