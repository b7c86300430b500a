//! The name under which a process's tree stands in the mount table.

use std::fs;
use std::os::unix::fs::MetadataExt;

/// The beginning of a tree's entry in the mount table.
const SOURCE: &str = "mete:";
/// The name of a process's tree in the mount table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct MountSource {
    /// The process's number.
    pub pid: u32,
    /// When the process began. Together with its number, this identifies the process.
    pub start: u64,
    /// The number of directories that were made for the tree, from its own directory upwards.
    pub made: usize,
    /// The namespace in which the process has this number.
    pub namespace: u64,
}

impl MountSource {
    /// The name of this process's tree.
    pub(crate) fn own(made: usize) -> MountSource {
        let pid = std::process::id();
        MountSource { pid, start: start_of(pid).unwrap_or(0), made, namespace: own_namespace() }
    }

    pub(crate) fn text(self) -> String {
        format!("{SOURCE}{}:{}:{}:{}", self.pid, self.start, self.made, self.namespace)
    }

    pub(crate) fn parse(text: &str) -> Option<MountSource> {
        let mut fields = text.strip_prefix(SOURCE)?.split(':');
        let mut number = || fields.next()?.parse::<u64>().ok();
        let (pid, start, made, namespace) = (number()?, number()?, number()?, number()?);
        let source = MountSource { pid: pid.try_into().ok()?, start, made: made.try_into().ok()?, namespace };
        fields.next().is_none().then_some(source)
    }

    /// The name of the process in the names of files.
    pub(crate) fn name(self) -> String {
        format!("{}-{}", self.pid, self.start)
    }

    /// The process with such a name.
    pub(crate) fn named(name: &str, made: usize, namespace: u64) -> Option<MountSource> {
        let (pid, start) = name.split_once('-')?;
        Some(MountSource { pid: pid.parse().ok()?, start: start.parse().ok()?, made, namespace })
    }

    /// Whether its process may be alive. A process that has ended is not, even if its parent has not waited
    /// for it. Nothing is known here about the processes of other namespaces, such as a container's or those
    /// of the machine around a container.
    pub(crate) fn is_alive(self) -> bool {
        self.namespace != own_namespace() || start_of(self.pid) == Some(self.start)
    }
}

/// The number of this process's namespace of processes; 0 if that cannot be found out.
pub(crate) fn own_namespace() -> u64 {
    fs::metadata("/proc/self/ns/pid").map_or(0, |found| found.ino())
}

/// When a process began, in ticks since boot; `None` if it has ended.
fn start_of(pid: u32) -> Option<u64> {
    let text = fs::read(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain all kinds of bytes, even parentheses, so it ends at the last parenthesis.
    let behind = text.iter().rposition(|byte| *byte == b')')?;
    let mut fields = std::str::from_utf8(text.get(behind + 2..)?).ok()?.split(' ');
    let state = fields.next()?;
    // The state is field 3, the start is field 22.
    let start = fields.nth(18)?.parse().ok()?;
    (!matches!(state, "Z" | "X")).then_some(start)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_4_a_process_is_known_by_its_number_and_its_beginning() {
        let own = MountSource::own(2);
        assert_eq!(MountSource::parse(&own.text()), Some(own));
        assert!(own.is_alive() && !MountSource { start: own.start + 1, ..own }.is_alive());
    }
}
