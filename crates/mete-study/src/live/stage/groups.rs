//! Control groups of a stage's own, one for each domain.

use std::ffi::CString;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mete_measure::Reason;

/// Where version 2 is mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// For how long a group is waited for whose members end.
const LONGEST_END: Duration = Duration::from_secs(10);

/// From this number on, it takes some time until they have gone, which is looked at as often.
const MANY: usize = 100;
const BETWEEN_COUNTS: Duration = Duration::from_millis(500);

/// What a group within another one is called.
const WITHIN: &str = "within";

/// Control groups that go when this is dropped. Their members have to end before.
pub(crate) struct Groups {
    outermost: Vec<PathBuf>,
    /// How many are in each other.
    depth: usize,
}

impl Groups {
    /// Makes that number of them, each with `depth - 1` groups in each other within it.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn make(number: usize, depth: usize) -> Result<Groups, Reason> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        have_shares().map_err(Reason::while_trying(format!(
            "have control groups of version 2 in {ROOT} share processor time"
        )))?;
        let stage = MADE.fetch_add(1, Ordering::Relaxed);
        let mut groups = Groups { outermost: Vec::with_capacity(number), depth };
        for domain in 0..number {
            let path = Path::new(ROOT).join(format!("mete-study-{}-{stage}-{domain}", process::id()));
            groups.outermost.push(path);
            groups
                .chain(domain)
                .try_for_each(fs::create_dir)
                .map_err(Reason::while_trying("make a control group"))?;
        }
        Ok(groups)
    }

    /// The groups of a domain, from the outermost to the innermost.
    fn chain(&self, domain: usize) -> impl DoubleEndedIterator<Item = PathBuf> {
        let outermost = &self.outermost[domain];
        (0..self.depth).map(|depth| {
            std::iter::repeat_n(WITHIN, depth).fold(outermost.clone(), |path, name| path.join(name))
        })
    }

    /// The innermost group of a domain, in which its members begin.
    pub fn path(&self, domain: usize) -> CString {
        let innermost = self.chain(domain).next_back().unwrap_or_default();
        // The names are made here, and have no zeroes.
        CString::new(innermost.into_os_string().into_vec()).unwrap_or_default()
    }

    /// What selects the outermost group of a domain.
    pub fn selector(&self, domain: usize) -> String {
        let outermost = &self.outermost[domain];
        let name = outermost.strip_prefix(ROOT).unwrap_or(outermost);
        format!("cgroup:/{}", name.display())
    }
}

/// Has groups of version 2 compete. Where another file system is mounted, there is no such file, and none is made.
fn have_shares() -> io::Result<()> {
    let mut control = OpenOptions::new().write(true).open(Path::new(ROOT).join("cgroup.subtree_control"))?;
    control.write_all(b"+cpu")
}

impl Drop for Groups {
    fn drop(&mut self) {
        let begin = Instant::now();
        let number = self.outermost.len() * self.depth;
        for group in (0..self.outermost.len()).flat_map(|domain| self.chain(domain).rev()) {
            while fs::remove_dir(&group).is_err() && group.exists() && begin.elapsed() < LONGEST_END {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
        if number >= MANY {
            wait_until_gone(begin);
        }
    }
}

/// The kernel takes leave of groups that are removed bit by bit; a scheduler has numbers for a thousand. Where some of them are
/// kept for what they have in memory, it ends when no more of them go.
fn wait_until_gone(begin: Instant) {
    let mut before = usize::MAX;
    while let Some(dying) = dying().filter(|&dying| dying < before && begin.elapsed() < LONGEST_END) {
        before = dying;
        std::thread::sleep(BETWEEN_COUNTS);
    }
}

/// How many groups are removed and still there.
fn dying() -> Option<usize> {
    let text = fs::read_to_string(Path::new(ROOT).join("cgroup.stat")).ok()?;
    text.lines().find_map(|line| line.strip_prefix("nr_dying_descendants "))?.trim().parse().ok()
}
