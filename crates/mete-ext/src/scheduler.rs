//! The scheduler as a value: loaded, ruling, gone.

use std::fmt;
use std::fs::{self, File};
use std::os::fd::AsRawFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use libbpf_rs::{Link, MapCore, MapFlags, ProgramInput};
use mete_kernel::{Weight, check_capabilities, load_skeleton};

use crate::ExtError;
use crate::skeleton::{ExtSkel, ExtSkelBuilder, types};

/// The number of the root, which is in no queue.
const ROOT: u32 = 0;
const NO_CONTROLLER: &str = "it has no share of its own, because its parent does not distribute processor time: \
                             write +cpu into the parent's cgroup.subtree_control";

/// Where the kernel says what sched_ext does.
const SCHED_EXT: &str = "/sys/kernel/sched_ext";

/// Distributed group virtual-time round robin, which rules all ordinary tasks while this lives.
pub struct GroupScheduler {
    // Fields are dropped in this order: first the kernel takes its tasks back, then nothing is loaded any more.
    _link: Link,
    skeleton: ExtSkel<'static>,
}

/// What the scheduler has done since it started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// Tasks that were chosen to run next. Missed choices are counted, too.
    pub decisions: u64,
    /// Tasks that a processor took from another one, because it had nothing due itself.
    pub stolen: u64,
    /// Choices that could not be carried out, because the task had left at that moment.
    pub missed: u64,
    /// Tasks that went ahead of all others because they had waited for some seconds: the share of their cgroup is that
    /// small, or there are that many others.
    pub hastened: u64,
    /// Tasks that were taken for blocked and did wait. There should be none; each of them waited for two or three seconds.
    pub found: u64,
    /// Why the kernel has ended the scheduler, if it has.
    pub ended: Option<Ended>,
}

/// Why the kernel has ended the scheduler. It rules all tasks itself again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ended {
    /// The kernel's word for it, such as *runnable task stall*.
    pub reason: String,
    /// What exactly happened, such as which task waited for how long; empty if the kernel says no more.
    pub message: String,
    /// What the kernel printed of all processors and all tasks that waited.
    pub dump: String,
}

/// In the kernel's words, with what it printed.
impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ended { reason, message, dump } = self;
        f.write_str(reason)?;
        if !message.is_empty() {
            write!(f, ": {message}")?;
        }
        if !dump.is_empty() {
            write!(f, "\nThe kernel's report:\n{dump}")?;
        }
        Ok(())
    }
}

impl GroupScheduler {
    /// Loads the policy and switches all ordinary tasks to it.
    ///
    /// Needs Linux 6.12 with sched_ext and type information, and root or the capabilities `CAP_BPF`, `CAP_PERFMON` and
    /// `CAP_SYS_ADMIN`.
    ///
    /// # Errors
    ///
    /// [`ExtError`] says what is missing, which scheduler rules already, or what the kernel refused.
    pub fn start() -> Result<GroupScheduler, ExtError> {
        check_sched_ext()?;
        check_capabilities()?;
        let processors = check_processors()?;
        let mut skeleton = load_skeleton::<ExtSkelBuilder>(|open| {
            if let Some(settings) = &mut open.maps.rodata_data {
                settings.processor_count = processors;
            }
            Ok(())
        })?;
        let link = skeleton.maps.mete.attach_struct_ops().map_err(ExtError::Refused)?;
        Ok(GroupScheduler { _link: link, skeleton })
    }

    /// Sets the weight of a cgroup. It takes the place of the cgroup's `cpu.weight` until the cgroup is removed or this
    /// scheduler ends; `None` gives `cpu.weight` its place back.
    ///
    /// # Errors
    ///
    /// [`ExtError::Cgroup`] if the directory is no cgroup of version 2 that has a share of its own, and why.
    pub fn set_weight(&self, cgroup: &Path, weight: Option<Weight>) -> Result<(), ExtError> {
        let failed = |why: String| ExtError::Cgroup { path: cgroup.into(), why };
        let folder = File::open(cgroup).map_err(|error| failed(error.to_string()))?;
        let inode = folder.metadata().map_err(|error| failed(error.to_string()))?.ino();
        let numbers = [self.domain(&folder).map_err(failed)?, weight.map_or(0, Weight::get)];
        let mut arguments = [&inode.to_ne_bytes()[..], &numbers.map(u32::to_ne_bytes).concat()].concat();
        let input = ProgramInput { context_in: Some(&mut arguments), ..ProgramInput::default() };
        let done = self.skeleton.progs.set_share.test_run(input).map_err(ExtError::Refused)?;
        if done.return_value == 0 { Ok(()) } else { Err(failed("it has just been removed".into())) }
    }

    /// The number that the scheduler has given to a cgroup; an error says why it has none.
    fn domain(&self, folder: &File) -> Result<u32, String> {
        let key = folder.as_raw_fd().to_ne_bytes();
        let found = self.skeleton.maps.domains_of_cgroups.lookup(&key, MapFlags::ANY);
        let value = match found {
            Ok(Some(value)) => value,
            Ok(None) => return Err(NO_CONTROLLER.into()),
            Err(error) => return Err(format!("{error:#}")),
        };
        let number = value.try_into().map_or(0, u32::from_ne_bytes);
        if number == ROOT {
            return Err("the root of all control groups competes with no other".into());
        }
        Ok(number)
    }

    /// What the scheduler has done since it started, and whether it still rules.
    #[must_use]
    pub fn status(&self) -> Status {
        let counted = self.skeleton.maps.bss_processors_data.as_ref();
        let sum = |count: fn(&types::processor) -> u64| {
            counted.map_or(0, |counted| counted.processors.iter().map(count).sum())
        };
        let swept = self.skeleton.maps.bss_data.as_ref();
        Status {
            decisions: sum(|processor| processor.decisions),
            stolen: sum(|processor| processor.stolen),
            missed: sum(|processor| processor.missed),
            hastened: swept.map_or(0, |swept| swept.hastened),
            found: swept.map_or(0, |swept| swept.found),
            ended: self.ended(),
        }
    }

    fn ended(&self) -> Option<Ended> {
        let exit = self.skeleton.maps.bss_data.as_ref()?;
        let dump = self.skeleton.maps.bss_dump_data.as_ref()?;
        (exit.exit_kind != 0).then(|| Ended {
            reason: sentence(&exit.exit_reason),
            message: sentence(&exit.exit_message),
            dump: sentence(&dump.exit_dump),
        })
    }
}

/// The text in front of the first zero.
fn sentence(letters: &[i8]) -> String {
    let bytes: Vec<u8> =
        letters.iter().map(|&letter| letter.cast_unsigned()).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

fn check_sched_ext() -> Result<(), ExtError> {
    let state = Path::new(SCHED_EXT).join("state");
    let Ok(state) = fs::read_to_string(state) else { return Err(ExtError::Absent) };
    match state.trim() {
        "disabled" => Ok(()),
        _ => Err(ExtError::Taken { by: ruling().unwrap_or_else(|| "without a name".into()) }),
    }
}

/// The name of the scheduler that rules.
fn ruling() -> Option<String> {
    let name = fs::read_to_string(Path::new(SCHED_EXT).join("root/ops")).ok()?;
    Some(name.trim().to_owned())
}

fn check_processors() -> Result<u32, ExtError> {
    let found = mete_kernel::record::possible_processors()?;
    let most = size_of::<types::bss_processors>() / size_of::<types::processor>();
    match u32::try_from(found) {
        Ok(processors) if found <= most => Ok(processors),
        _ => Err(ExtError::TooManyProcessors { found, most }),
    }
}
