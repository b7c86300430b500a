//! What `/proc` says about processes and threads. Each of them may be gone the next moment, so absence is an
//! answer and no error.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt::Write;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use mete_base::letters::is_hidden;
use rustix::param::clock_ticks_per_second;
use rustix::thread::gettid;
use rustix::time::{ClockId, clock_gettime};

/// The flag of kernel threads in `/proc/PID/stat`.
const KERNEL_THREAD: u64 = 0x0020_0000;

/// One process or thread, as its `stat` file describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    /// Its number.
    pub pid: u32,
    /// Its name: at most 15 bytes, of any value but zero. The kernel cuts longer names, even within a letter.
    pub comm: OsString,
    /// Its parent.
    pub parent: u32,
    /// Its process group.
    pub group: u32,
    /// Whether it belongs to the kernel.
    pub is_kernel: bool,
    /// When it began, in ticks since boot. Together with the number, this identifies the process.
    pub start: u64,
    /// The processor time of all its threads so far, in ticks.
    pub ran: u64,
}

impl Process {
    /// A process. A process that has ended is absent even while its parent has not waited for it: a process
    /// that inherits orphans, such as the first process of a container, may leave them as zombies for ever.
    pub fn read(pid: u32) -> Option<Process> {
        Process::find(pid).ok().flatten()
    }

    /// A thread of a process. It is absent in the same cases as a process.
    pub fn read_thread(pid: u32, thread: u32) -> Option<Process> {
        Process::find_thread(pid, thread).ok().flatten()
    }

    /// Like [`Process::read`], for callers that must not mistake a process that cannot be looked at now for
    /// one that has ended.
    ///
    /// # Errors
    ///
    /// [`CannotLook`]
    pub fn find(pid: u32) -> Result<Option<Process>, CannotLook> {
        let Some(text) = look(&format!("/proc/{pid}/stat"))? else { return Ok(None) };
        Ok(Stat::parse(&text).filter(Stat::is_process_there).and_then(|stat| stat.process()))
    }

    /// Like [`Process::find`], for a thread.
    ///
    /// # Errors
    ///
    /// [`CannotLook`]
    pub fn find_thread(pid: u32, thread: u32) -> Result<Option<Process>, CannotLook> {
        let Some(text) = look(&format!("/proc/{pid}/task/{thread}/stat"))? else { return Ok(None) };
        Ok(Stat::parse(&text).filter(|stat| !stat.has_ended()).and_then(|stat| stat.process()))
    }
}

/// This process has no means to look at other processes: it has no descriptor or memory left, or `/proc` is
/// not there. This says nothing about the other processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no descriptor or memory left to look at processes, or /proc is not mounted")]
pub struct CannotLook;

impl CannotLook {
    fn check(error: &io::Error) -> Result<(), CannotLook> {
        match error.raw_os_error() {
            Some(libc::EMFILE | libc::ENFILE | libc::ENOMEM) => Err(CannotLook),
            _ => Ok(()),
        }
    }
}

/// A file of `/proc`; `None` if it is gone or this user may not read it.
fn look(path: &str) -> Result<Option<Vec<u8>>, CannotLook> {
    match fs::read(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) => CannotLook::check(&error).map(|()| None),
    }
}

/// An error if nothing can be found out about processes.
///
/// # Errors
///
/// [`CannotLook`]
pub fn check_sight() -> Result<(), CannotLook> {
    // This process is certainly there, so if it does not find itself, it cannot look.
    Process::find(std::process::id())?.map(drop).ok_or(CannotLook)
}

/// A line of a `stat` file.
struct Stat<'a> {
    pid: &'a str,
    comm: &'a [u8],
    /// The fields from the state on, which is field 3.
    fields: &'a str,
}

impl<'a> Stat<'a> {
    fn parse(text: &'a [u8]) -> Option<Stat<'a>> {
        // The name is in parentheses, and may contain parentheses itself. So it ends at the last one.
        let begin = text.windows(2).position(|pair| pair == b" (")?;
        let end = text.windows(2).rposition(|pair| pair == b") ")?;
        let comm = text.get(begin + 2..end)?;
        let (pid, fields) = (str::from_utf8(&text[..begin]).ok()?, str::from_utf8(&text[end + 2..]).ok()?);
        Some(Stat { pid, comm, fields })
    }

    fn field(&self, number: usize) -> Option<u64> {
        self.fields.split(' ').nth(number - 3)?.parse().ok()
    }

    fn has_ended(&self) -> bool {
        self.fields.starts_with(['Z', 'X'])
    }

    fn is_process_there(&self) -> bool {
        // A program may go on after its first thread has ended.
        !self.has_ended() || self.field(20).is_some_and(|threads| threads > 1)
    }

    fn process(&self) -> Option<Process> {
        Some(Process {
            pid: self.pid.parse().ok()?,
            comm: OsString::from_vec(self.comm.to_vec()),
            parent: self.field(4)? as u32,
            group: self.field(5)? as u32,
            is_kernel: self.field(9)? & KERNEL_THREAD != 0,
            start: self.field(22)?,
            // The time in user mode plus the time in the kernel.
            ran: self.field(14)?.saturating_add(self.field(15)?),
        })
    }
}

/// The numbers of all processes.
pub fn processes() -> Vec<u32> {
    all().unwrap_or_default()
}

/// Like [`processes`], for callers that must not mistake processes that cannot be looked at now for ones that
/// have ended.
///
/// # Errors
///
/// [`CannotLook`]
pub fn all() -> Result<Vec<u32>, CannotLook> {
    check_sight()?;
    let entries = fs::read_dir("/proc").map_err(|_| CannotLook)?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// All process groups, and whether each is a job: a process in it has a parent in another group of the same session, as a
/// shell is. If the last such parent or process ends while one of the group is stopped, the kernel hangs all of them up
/// (`SIGHUP`; "orphaned process groups", man 2 setpgid).
///
/// # Errors
///
/// [`CannotLook`]
pub fn groups() -> Result<BTreeMap<u32, bool>, CannotLook> {
    let mut all = BTreeMap::new();
    for pid in self::all()? {
        let Some(text) = look(&format!("/proc/{pid}/stat"))? else { continue };
        let Some(stat) = Stat::parse(&text).filter(Stat::is_process_there) else { continue };
        let fields = [4, 5, 6].map(|number| stat.field(number));
        if let [Some(parent), Some(group), Some(session)] = fields {
            all.insert(u64::from(pid), (parent, group, session));
        }
    }
    let mut groups = BTreeMap::new();
    for (parent, group, session) in all.values() {
        let is_job = all.get(parent).is_some_and(|(_, others, of)| others != group && of == session);
        *groups.entry(*group as u32).or_default() |= is_job;
    }
    Ok(groups)
}

/// The number of the calling thread.
pub fn own_thread() -> u32 {
    gettid().as_raw_nonzero().get().cast_unsigned()
}

/// Whether a process is stopped, by a signal or a debugger.
pub fn is_stopped(pid: u32) -> bool {
    is_in_state(pid, &['T', 't'])
}

/// Whether a process has been killed or ends by itself. Its threads may still need processors to do so, and
/// get none.
pub fn is_ending(pid: u32) -> bool {
    const KILLED: u64 = 1 << (libc::SIGKILL - 1);
    let text = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let pending = text.lines().find_map(|line| line.strip_prefix("SigPnd:"));
    let pending = pending.and_then(|set| u64::from_str_radix(set.trim(), 16).ok());
    // Of one that has no status any more, others tell.
    pending.is_some_and(|set| set & KILLED != 0) || is_in_state(pid, &['Z', 'X'])
}

/// Whether a thread runs or waits for a processor now. One that has ended does not.
pub fn is_runnable(thread: u32) -> bool {
    is_in_state(thread, &['R'])
}

fn is_in_state(thread: u32, states: &[char]) -> bool {
    StatFile::of(thread).is_some_and(|file| file.is_in_state(states))
}

/// What tells how a thread is, kept open for who asks again and again: to open it takes longer than to read it. It stays that of the same
/// thread.
#[derive(Debug)]
pub struct StatFile(File);

impl StatFile {
    /// `None` if there is no such thread, or no descriptor.
    pub fn of(thread: u32) -> Option<StatFile> {
        File::open(format!("/proc/{thread}/stat")).ok().map(StatFile)
    }

    /// As [`is_runnable`].
    pub fn is_runnable(&self) -> bool {
        self.is_in_state(&['R'])
    }

    fn is_in_state(&self, states: &[char]) -> bool {
        // In one piece: who asks does so hundreds of times a second.
        let mut text = [0; 1024];
        let read = self.0.read_at(&mut text, 0).unwrap_or(0);
        Stat::parse(&text[..read]).is_some_and(|stat| stat.fields.starts_with(states))
    }
}

/// The present time, as that at which processes begin: in ticks since boot.
pub fn ticks_since_boot() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    let per_second = clock_ticks_per_second();
    now.tv_sec.cast_unsigned() * per_second + now.tv_nsec.cast_unsigned() * per_second / 1_000_000_000
}

/// The numbers of all threads of a process.
pub fn threads(pid: u32) -> Vec<u32> {
    let entries = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// The path of the program that a process runs, even if another file, or none, has that path by now. `None`
/// for a thread of the kernel, and if this user may not see it.
pub fn program(pid: u32) -> Option<PathBuf> {
    const DELETED: &[u8] = b" (deleted)";
    let path = fs::read_link(format!("/proc/{pid}/exe")).ok()?;
    let bytes = path.as_os_str().as_bytes();
    Some(bytes.strip_suffix(DELETED).map_or_else(|| path.clone(), |path| OsStr::from_bytes(path).into()))
}

/// Whether this user may not see which program a process runs.
pub fn hides_program(pid: u32) -> bool {
    fs::read_link(format!("/proc/{pid}/exe"))
        .is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
}

/// Bytes that other users chose, as text for people. Bytes that are no text, and letters that would control
/// the terminal, are escaped.
pub fn shown(bytes: &OsStr) -> String {
    let mut text = String::new();
    for chunk in bytes.as_bytes().utf8_chunks() {
        for letter in chunk.valid().chars() {
            match letter {
                letter if is_hidden(letter) => text.extend(letter.escape_default()),
                letter => text.push(letter),
            }
        }
        for byte in chunk.invalid() {
            // Writing into a string cannot fail.
            let _ = write!(text, "\\x{byte:02x}");
        }
    }
    text
}

/// The effective user of a process: the owner of its directory. The kernel keeps this owner up to date even
/// for a process that has given up rights, whose other files belong to root.
pub fn user(pid: u32) -> Option<u32> {
    fs::metadata(format!("/proc/{pid}")).ok().map(|found| found.uid())
}

/// The number that was given to a process or thread most recently. As long as it stays the same, no process
/// has begun.
pub fn newest() -> Option<u32> {
    Some(population()?.newest)
}

/// What is another one as soon as any process or thread begins or ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Population {
    /// The number that was given most recently.
    pub newest: u32,
    /// How many processes and threads there are.
    threads: u32,
}

/// That of this moment.
pub fn population() -> Option<Population> {
    // The fourth word has how many of them can run, and how many there are.
    let text = fs::read_to_string("/proc/loadavg").ok()?;
    let mut words = text.split_ascii_whitespace().skip(3);
    let threads = words.next()?.rsplit('/').next()?.parse().ok()?;
    Some(Population { newest: words.next()?.parse().ok()?, threads })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_16_the_present_thread_can_run_and_no_process_zero_is_in_any_state() {
        let own = own_thread();
        assert!(is_runnable(own) && !is_stopped(own) && !is_runnable(0) && !is_stopped(0));
    }

    #[test]
    fn a_name_with_parentheses_and_blanks_is_read_whole() {
        let text = b"42 (a) b (c) S 7 42 42 0 -1 4194304 0 0 0 0 30 12 0 0 20 0 1 0 9001 0 0";
        let process = Stat::parse(text).unwrap().process().unwrap();
        assert_eq!(
            process,
            Process {
                pid: 42,
                comm: "a) b (c".into(),
                parent: 7,
                group: 42,
                is_kernel: false,
                start: 9001,
                ran: 42
            }
        );
    }

    #[test]
    fn log_6_a_name_that_is_no_text_is_read_byte_by_byte() {
        // Eight letters of two bytes each. The kernel keeps seven and a half of them.
        let name = &"сериализ".as_bytes()[..15];
        let text = [b"42 (", name, b") S 7 42 42 0 -1 4194304 0 0 0 0 30 12 0 0 20 0 1 0 9001 0 0"].concat();
        let process = Stat::parse(&text).unwrap().process().unwrap();
        assert_eq!((process.comm.as_bytes(), process.parent), (name, 7));
        assert_eq!(shown(&process.comm), "сериали\\xd0");
        assert_eq!(shown(OsStr::new("a\u{202e}b\n")), "a\\u{202e}b\\n");
    }

    #[test]
    fn garbage_is_no_process() {
        for text in ["", "42", "42 (", "42 (x) S", "x (y) S 1"] {
            assert_eq!(Stat::parse(text.as_bytes()).and_then(|stat| stat.process()), None, "{text:?}");
        }
    }

    #[test]
    fn a_process_that_has_ended_is_gone_although_its_parent_has_not_waited_for_it() {
        let mut child =
            std::process::Command::new("cat").stdin(std::process::Stdio::piped()).spawn().unwrap();
        let pid = child.id();
        assert!(Process::read(pid).is_some());
        drop(child.stdin.take());
        let id = rustix::process::Pid::from_child(&child);
        let end = rustix::process::WaitIdOptions::EXITED | rustix::process::WaitIdOptions::NOWAIT;
        rustix::process::waitid(rustix::process::WaitId::Pid(id), end).unwrap();
        assert!(processes().contains(&pid), "a zombie is still listed");
        assert_eq!((Process::read(pid), Process::read_thread(pid, pid)), (None, None));
        child.wait().unwrap();
    }

    #[test]
    fn a_process_whose_first_thread_has_ended_is_there_as_long_as_others_go_on() {
        let is_there = |threads| {
            let text = format!("42 (x) Z 7 42 42 0 -1 64 0 0 0 0 0 0 0 0 20 0 {threads} 0 9 0 0");
            Stat::parse(text.as_bytes()).unwrap().is_process_there()
        };
        assert!(is_there(2) && !is_there(1));
    }

    #[test]
    fn this_process_and_its_threads_are_found() {
        let own = std::process::id();
        let process = Process::read(own).unwrap();
        assert_eq!((process.pid, process.is_kernel), (own, false));
        assert!(processes().contains(&own) && threads(own).contains(&own));
        assert_eq!(Process::read_thread(own, own).unwrap().start, process.start);
        assert_eq!(program(own), std::env::current_exe().ok());
    }
}
