//! Whether a scheduler can rule here.

use std::fs;
use std::path::Path;

use mete_kernel::check_capabilities;

use crate::ExtError;

/// Where the kernel says what sched_ext does.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Whether a scheduler can be loaded that has room for `most` processors. How many this machine may have.
pub(crate) fn check(most: usize) -> Result<u32, ExtError> {
    check_sched_ext()?;
    check_capabilities()?;
    let found = mete_kernel::record::possible_processors()?;
    match u32::try_from(found) {
        Ok(processors) if found <= most => Ok(processors),
        _ => Err(ExtError::TooManyProcessors { found, most }),
    }
}

/// Whether the kernel's own scheduler rules: what it goes by, such as weights of control groups and classes, decides nothing where a scheduler
/// of sched_ext has all ordinary tasks.
///
/// # Errors
///
/// [`ExtError::Taken`]
pub fn check_kernel_rules() -> Result<(), ExtError> {
    let rules_all = fs::read_to_string(Path::new(SCHED_EXT).join("switch_all"));
    match check_sched_ext() {
        Err(ExtError::Taken { .. }) if rules_all.is_ok_and(|all| all.trim() == "0") => Ok(()),
        Err(ExtError::Absent) => Ok(()),
        free_or_taken => free_or_taken,
    }
}

fn check_sched_ext() -> Result<(), ExtError> {
    let state = Path::new(SCHED_EXT).join("state");
    let Ok(state) = fs::read_to_string(state) else { return Err(ExtError::Absent) };
    match state.trim() {
        "disabled" => Ok(()),
        _ => Err(ExtError::Taken { by: in_words(ruling().as_deref()) }),
    }
}

/// What rules, by the name that the kernel knows it by. Ours are those of the structures that ext.bpf.c and outside.bpf.c load.
fn in_words(name: Option<&str>) -> String {
    match name {
        Some("mete_group_vtrr" | "mete_outside") => {
            "another mete schedule (mete status names its process, if it has its parameters as files)".into()
        }
        Some(name) => format!("the scheduler {name}"),
        None => "a scheduler without a name".into(),
    }
}

/// The name of the scheduler that rules.
fn ruling() -> Option<String> {
    let name = fs::read_to_string(Path::new(SCHED_EXT).join("root/ops")).ok()?;
    Some(name.trim().to_owned())
}
