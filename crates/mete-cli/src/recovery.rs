//! An earlier run may have been killed together with the processes that would have undone its changes. The
//! next run of the same user undoes them, in every subcommand.

use mete_command::failure;
use mete_probe::directory;
use mete_sched::recovery;

/// Undoes what killed runs have left, and says so.
pub fn run() {
    let masks = recovery::recover();
    for path in mete_parameters::recover(&directory::all_own()) {
        failure::say(&format!(
            "an earlier recorder was killed together with the processes that unmount its parameters: {} is unmounted \
             now",
            path.display()
        ));
    }
    masks.iter().for_each(|done| failure::say(done));
}
