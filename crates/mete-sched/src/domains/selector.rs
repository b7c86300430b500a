//! How a user names a domain and says who belongs to it: `web=comm:nginx`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mete_policy::Role;

use super::DomainError;
use super::process::{self, Process};

/// The kernel cuts names of programs to so many bytes.
const COMM_BYTES: usize = 15;

/// Who belongs to a domain. Descendants of whoever is selected belong to it, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `pid:123`: one process.
    Pid(u32),
    /// `comm:nginx`: processes of that name.
    Comm(String),
    /// `exe:/usr/bin/x`: processes that run this program.
    Program(PathBuf),
    /// `cgroup:/path`: everything in a control group and below, of either version.
    Cgroup(PathBuf),
    /// `user:www-data` or `user:33`: processes of a user.
    User {
        /// As the user was given.
        name: String,
        /// Its number.
        id: u32,
    },
    /// `children:123`: descendants of a process, without itself.
    Children(u32),
}

impl Selector {
    /// Whether a process is selected by itself, its ancestors aside. Control groups are not asked
    /// here: they list their members themselves.
    pub fn selects(&self, process: &Process) -> bool {
        match self {
            Selector::Pid(pid) => process.pid == *pid,
            Selector::Children(pid) => process.parent == *pid,
            Selector::Cgroup(_) => false,
            // A user's name or a program's is never meant to reach into the kernel.
            _ if process.is_kernel => false,
            Selector::Comm(name) => process.comm == cut(name),
            Selector::Program(path) => process::program(process.pid).as_ref() == Some(path),
            Selector::User { id, .. } => process::user(process.pid) == Some(*id),
        }
    }

    /// Whether it can select somebody later if it selects nobody now. The number of a process that
    /// has ended goes to somebody else, who was not meant.
    pub fn can_come_true(&self) -> bool {
        match self {
            Selector::Pid(_) => false,
            Selector::Children(pid) => Process::read(*pid).is_some(),
            Selector::Comm(_) | Selector::Program(_) | Selector::Cgroup(_) | Selector::User { .. } => true,
        }
    }

    /// Whether what it selects can change without a new process: by exec or setuid.
    pub fn is_pattern(&self) -> bool {
        matches!(self, Selector::Comm(_) | Selector::Program(_) | Selector::User { .. })
    }
}

fn cut(name: &str) -> &str {
    let end = (0..=COMM_BYTES.min(name.len())).rev().find(|&end| name.is_char_boundary(end)).unwrap_or(0);
    &name[..end]
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Pid(pid) => write!(f, "pid:{pid}"),
            Selector::Comm(name) => write!(f, "comm:{name}"),
            Selector::Program(path) => write!(f, "exe:{}", path.display()),
            Selector::Cgroup(path) => write!(f, "cgroup:{}", path.display()),
            Selector::User { name, .. } => write!(f, "user:{name}"),
            Selector::Children(pid) => write!(f, "children:{pid}"),
        }
    }
}

impl FromStr for Selector {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Selector, DomainError> {
        let unknown = || DomainError::Selector { text: text.to_owned() };
        let (kind, value) = text.split_once(':').ok_or_else(unknown)?;
        if value.is_empty() {
            return Err(DomainError::Value { text: text.to_owned(), expected: "something behind the colon" });
        }
        let pid = || {
            let expected = "a process number, such as pid:1234";
            let pid = value.parse().ok().filter(|&pid| pid > 0);
            pid.ok_or(DomainError::Value { text: text.to_owned(), expected })
        };
        match kind {
            "pid" => Ok(Selector::Pid(pid()?)),
            "children" => Ok(Selector::Children(pid()?)),
            "comm" => Ok(Selector::Comm(value.to_owned())),
            "exe" => program(text, value),
            "cgroup" => Ok(Selector::Cgroup(cgroup_directory(value)?)),
            "user" => Ok(Selector::User { name: value.to_owned(), id: user_id(value)? }),
            _ => Err(unknown()),
        }
    }
}

fn program(text: &str, path: &str) -> Result<Selector, DomainError> {
    // /proc names programs by their real path.
    let found = fs::canonicalize(path).ok().filter(|path| path.is_file());
    let expected = "the path of a program that exists, such as exe:/usr/bin/sleep";
    found.map(Selector::Program).ok_or(DomainError::Value { text: text.to_owned(), expected })
}

/// A control group's directory: given itself, or as the path within its hierarchy that
/// `/proc/PID/cgroup` shows.
fn cgroup_directory(path: &str) -> Result<PathBuf, DomainError> {
    let given = [PathBuf::from(path)];
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let below = cgroup_mounts(&mounts).map(|mount| mount.join(path.trim_start_matches('/')));
    let found = given.into_iter().chain(below).find(|directory| is_cgroup(directory));
    found.ok_or_else(|| DomainError::NoCgroup { path: path.into() })
}

pub(crate) fn is_cgroup(directory: &Path) -> bool {
    directory.join("cgroup.procs").is_file()
}

/// Where cgroups are mounted, version 2 first: there the kernel can be asked about all controllers.
fn cgroup_mounts(mountinfo: &str) -> impl Iterator<Item = PathBuf> {
    let of_kind = |kind: &'static str| {
        mountinfo.lines().filter_map(move |line| {
            let (mount, filesystem) = line.split_once(" - ")?;
            (filesystem.split(' ').next() == Some(kind))
                .then(|| mount.split(' ').nth(4).map(PathBuf::from))?
        })
    };
    of_kind("cgroup2").chain(of_kind("cgroup")).collect::<Vec<_>>().into_iter()
}

fn user_id(name: &str) -> Result<u32, DomainError> {
    if let Ok(id) = name.parse() {
        return Ok(id);
    }
    let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
    find_user(&users, name).ok_or_else(|| DomainError::NoUser { name: name.to_owned() })
}

fn find_user(passwd: &str, name: &str) -> Option<u32> {
    let mut fields =
        passwd.lines().map(|line| line.split(':')).find(|fields| fields.clone().next() == Some(name))?;
    fields.nth(2)?.parse().ok()
}

/// A domain as the user asks for it: `NAME=SELECTOR[,SELECTOR…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSpec {
    /// Its name.
    pub name: String,
    /// Who belongs to it.
    pub selectors: Vec<Selector>,
    /// What it is to the affinity policy; `None` to find out from the logs: who reports transactions is a
    /// driver, who deals with a driver a client.
    pub role: Option<Role>,
}

impl DomainSpec {
    /// The same domain in this role.
    pub fn with_role(mut self, role: Role) -> DomainSpec {
        self.role = Some(role);
        self
    }
}

impl FromStr for DomainSpec {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<DomainSpec, DomainError> {
        let (name, selectors) =
            text.split_once('=').ok_or_else(|| DomainError::Form { text: text.to_owned() })?;
        let is_plain = |letter: char| letter.is_alphanumeric() || "-_./@".contains(letter);
        if name.is_empty() || !name.chars().all(is_plain) {
            return Err(DomainError::Name { name: name.to_owned() });
        }
        let selectors = selectors.split(',').map(str::parse).collect::<Result<_, _>>()?;
        Ok(DomainSpec { name: name.to_owned(), selectors, role: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(comm: &str) -> Process {
        Process { pid: 77, comm: comm.into(), parent: 7, is_kernel: false, start: 1, ran: 0 }
    }

    #[test]
    fn log_6_selectors_read_back_as_they_were_written() {
        for text in ["pid:123", "comm:nginx", "exe:/proc/self/exe", "user:root", "user:33", "children:9"] {
            let selector: Selector = text.parse().unwrap();
            if !text.starts_with("exe") {
                assert_eq!(selector.to_string(), text);
            }
        }
        let spec: DomainSpec = "web-1=comm:nginx,pid:5".parse().unwrap();
        assert_eq!((spec.name.as_str(), spec.selectors.len()), ("web-1", 2));
        assert_eq!(spec.selectors[1], Selector::Pid(5));
    }

    #[test]
    fn log_6_a_mistyped_domain_is_answered_with_what_was_expected() {
        for (text, expected) in [
            ("web", "NAME=SELECTOR"),
            ("=pid:1", "a name"),
            ("a b=pid:1", "a name"),
            ("web=nginx", "comm:"),
            ("web=pid:x", "process number"),
            ("web=pid:0", "process number"),
            ("web=comm:", "behind the colon"),
            ("web=user:nobody-of-that-name", "no user"),
            ("web=cgroup:/no/such/group", "no control group"),
            ("web=exe:/no/such/program", "path of a program"),
            ("web=pid:1,", "comm:"),
        ] {
            let error = text.parse::<DomainSpec>().unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn log_6_a_long_name_matches_what_the_kernel_keeps_of_it() {
        let selector: Selector = "comm:a-very-long-program-name".parse().unwrap();
        assert!(selector.selects(&process("a-very-long-pro")));
        assert!(!selector.selects(&process("a-very-long")));
    }

    #[test]
    fn log_6_patterns_do_not_reach_into_the_kernel() {
        let kernel = Process { is_kernel: true, ..process("kworker") };
        assert!(!Selector::Comm("kworker".into()).selects(&kernel));
        assert!(Selector::Pid(77).selects(&kernel));
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let users = "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\n";
        assert_eq!(find_user(users, "www-data"), Some(33));
        assert_eq!(find_user(users, "www"), None);
    }

    #[test]
    fn cgroup_mounts_are_found_with_version_2_first() {
        let mounts = "30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            32 24 0:28 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n\
            33 24 0:29 / /tmp rw - tmpfs tmpfs rw\n";
        let found: Vec<_> = cgroup_mounts(mounts).collect();
        assert_eq!(found, [Path::new("/sys/fs/cgroup/unified"), Path::new("/sys/fs/cgroup/cpu")]);
    }
}
