//! Control groups of a stage's own, one for each domain.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use mete_measure::Reason;

/// Where version 2 is mounted.
const ROOT: &str = "/sys/fs/cgroup";
/// For how long a group is waited for whose members end.
const LONGEST_END: Duration = Duration::from_secs(10);

/// Control groups that go when this is dropped. Their members have to end before.
pub(crate) struct Groups(Vec<PathBuf>);

impl Groups {
    /// Makes that number of them.
    ///
    /// # Errors
    ///
    /// What is missing.
    pub fn make(number: usize) -> Result<Groups, Reason> {
        static MADE: AtomicU32 = AtomicU32::new(0);
        have_shares().map_err(Reason::while_trying(format!(
            "have control groups of version 2 in {ROOT} share processor time"
        )))?;
        let stage = MADE.fetch_add(1, Ordering::Relaxed);
        let mut groups = Groups(Vec::with_capacity(number));
        for domain in 0..number {
            let path = Path::new(ROOT).join(format!("mete-study-{}-{stage}-{domain}", process::id()));
            fs::create_dir(&path).map_err(Reason::while_trying("make a control group"))?;
            groups.0.push(path);
        }
        Ok(groups)
    }

    /// Moves a process into the group of a domain.
    ///
    /// # Errors
    ///
    /// The kernel's answer.
    pub fn put(&self, pid: i32, domain: usize) -> Result<(), Reason> {
        let procs = self.0[domain].join("cgroup.procs");
        fs::write(procs, pid.to_string()).map_err(Reason::while_trying("move a process into a control group"))
    }

    /// What selects the group of a domain.
    pub fn selector(&self, domain: usize) -> String {
        let name = self.0[domain].strip_prefix(ROOT).unwrap_or(&self.0[domain]);
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
        for group in &self.0 {
            while fs::remove_dir(group).is_err() && group.exists() && begin.elapsed() < LONGEST_END {
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}
