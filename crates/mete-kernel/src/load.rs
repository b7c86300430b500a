//! From an object to verified programs: opened, configured, loaded. What the loader library has to say goes
//! into the error and not to the terminal.

use std::fs;
use std::mem::MaybeUninit;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{Object, ObjectBuilder, OpenObject, PrintLevel};
use rustix::process::{Resource, getrlimit};

use crate::KernelError;

/// Opens, configures and verifies an object with a skeleton. The memory of a skeleton is never given back, so
/// this is for objects that are loaded a few times in a program's life.
///
/// # Errors
///
/// [`KernelError::NoTypeInformation`], or [`KernelError::Refused`] with what the loader library said.
pub fn load_skeleton<B>(
    mut configure: impl FnMut(&mut B::Output) -> libbpf_rs::Result<()>,
) -> Result<<B::Output as OpenSkel<'static>>::Output, KernelError>
where
    B: SkelBuilder<'static> + Default,
{
    load(OF_SKELETON, || {
        // A skeleton borrows the memory of its object. It drops the object, but the memory stays: a pointer
        // for each load, which costs less than a type that refers to itself.
        let memory = Box::leak(Box::new(MaybeUninit::uninit()));
        let mut open = B::default().open(memory)?;
        configure(&mut open)?;
        open.load()
    })
}

/// Opens, configures and verifies an object that was made from a schema.
pub(crate) fn load_object(
    bytes: &[u8],
    mut configure: impl FnMut(&mut OpenObject) -> libbpf_rs::Result<()>,
) -> Result<Object, KernelError> {
    load(OF_SCHEMA, || {
        let mut open = ObjectBuilder::default().open_memory(bytes)?;
        configure(&mut open)?;
        open.load()
    })
}

fn load<T>(needed: u64, attempt: impl FnMut() -> libbpf_rs::Result<T>) -> Result<T, KernelError> {
    if !Path::new("/sys/kernel/btf/vmlinux").exists() {
        return Err(KernelError::NoTypeInformation);
    }
    check_descriptors(needed)?;
    // It lives until the error is made, which takes the warnings.
    let _quiet = Quiet::begin();
    undisturbed(attempt).map_err(refused)
}

/// The descriptors that a skeleton's programs and maps take, and those that the loader library opens to find
/// out what the kernel can do.
const OF_SKELETON: u64 = 100;
/// The same for the programs of a usual schema, which are fewer. If there are more of them, the kernel's
/// refusal says that descriptors are missing.
const OF_SCHEMA: u64 = 24;

/// Whether there is room for the descriptors. Where there is none, the loader library takes the kernel for
/// one that cannot do what it tried, and what fails then is something else.
fn check_descriptors(needed: u64) -> Result<(), KernelError> {
    let most = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    // Without /proc they are not counted, and what fails is said by what fails.
    let open = fs::read_dir("/proc/self/fd").map_or(0, Iterator::count) as u64;
    if most.saturating_sub(open) < needed {
        return Err(KernelError::Descriptors { most, open, needed });
    }
    Ok(())
}

/// Tries again where the kernel has stopped the verification of a program because a signal was pending for
/// this thread. The kernel reports EAGAIN then, and nothing is wrong with the program. The loader library
/// tries five times without a pause; on a busy machine, the cause may last longer than that.
fn undisturbed<T>(mut load: impl FnMut() -> libbpf_rs::Result<T>) -> libbpf_rs::Result<T> {
    const TRIES: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(20);
    for _ in 1..TRIES {
        match load() {
            Err(error) if error.kind() == libbpf_rs::ErrorKind::WouldBlock => std::thread::sleep(PAUSE),
            loaded => return loaded,
        }
    }
    load()
}

/// How many processors this machine may ever have, each of which has a buffer.
///
/// # Errors
///
/// [`KernelError::Refused`] if the kernel does not say.
pub fn processors() -> Result<usize, KernelError> {
    libbpf_rs::num_possible_cpus().map_err(refused)
}

fn refused(source: libbpf_rs::Error) -> KernelError {
    KernelError::Refused { detail: std::mem::take(&mut warnings()), source }
}

/// The warnings of the loader library since [`Quiet::begin`].
static WARNINGS: Mutex<String> = Mutex::new(String::new());

fn warnings() -> MutexGuard<'static, String> {
    WARNINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Keeps the last warnings of the loader library, because these explain an error.
fn keep(_: PrintLevel, text: String) {
    const ENOUGH: usize = 4096;
    let mut warnings = warnings();
    warnings.push('\n');
    warnings.push_str(text.trim_end());
    let excess = warnings.len().saturating_sub(ENOUGH);
    // Not in the middle of a letter: `drain` would panic.
    let cut = (excess..warnings.len()).find(|&at| warnings.is_char_boundary(at)).unwrap_or(0);
    warnings.drain(..cut);
}

/// While this lives, the output of the loader library goes to [`keep`].
pub(crate) struct Quiet(Option<(PrintLevel, libbpf_rs::PrintCallback)>);

impl Quiet {
    pub(crate) fn begin() -> Quiet {
        warnings().clear();
        Quiet(libbpf_rs::set_print(Some((PrintLevel::Warn, keep))))
    }
}

impl Drop for Quiet {
    fn drop(&mut self) {
        libbpf_rs::set_print(self.0.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Loads a program whose first attempts are disturbed, then does as `then`. Answers with the number of
    /// attempts, too.
    fn tried(disturbed: u32, then: fn() -> libbpf_rs::Result<()>) -> (Result<(), libbpf_rs::ErrorKind>, u32) {
        let mut tries = 0;
        let loaded = undisturbed(|| {
            tries += 1;
            if tries > disturbed { then() } else { Err(libbpf_rs::Error::from_raw_os_error(libc::EAGAIN)) }
        });
        (loaded.map_err(|error| error.kind()), tries)
    }

    fn refuse() -> libbpf_rs::Result<()> {
        Err(libbpf_rs::Error::from_raw_os_error(libc::EPERM))
    }

    #[test]
    fn log_13_loading_that_a_signal_disturbs_is_tried_again_and_what_is_refused_is_not() {
        assert_eq!(tried(0, || Ok(())), (Ok(()), 1));
        assert_eq!(tried(4, || Ok(())), (Ok(()), 5));
        assert_eq!(tried(1, refuse), (Err(libbpf_rs::ErrorKind::PermissionDenied), 2));
        assert_eq!(tried(100, || Ok(())), (Err(libbpf_rs::ErrorKind::WouldBlock), 5), "it ends");
    }
}
