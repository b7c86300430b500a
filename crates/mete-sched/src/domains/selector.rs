//! How a user names a domain and selects the processes that belong to it: `web=comm:nginx`.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use mete_kernel::{Glob, Selects};
use mete_policy::Role;

use super::DomainError;
use super::groups::{self, Groups, MeantGroups};
use super::hint;
use super::process::{self, Process, shown};

/// The number of bytes to which the kernel cuts names of programs, even within a letter.
const COMM_BYTES: usize = 15;

/// A name, a path, or a [pattern](Glob) of names or paths, as the user wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    text: OsString,
    glob: Glob,
}

/// Selects processes for a domain. The descendants of the selected processes belong to the domain, too.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// `pid:123`: one process.
    Pid(u32),
    /// `comm:nginx` or `comm:nginx*`: processes with this name.
    Comm(Pattern),
    /// `exe:/usr/bin/x` or `exe:/opt/*/bin/x`: processes that run this program.
    Program(Pattern),
    /// `cgroup:/path`: all processes in a control group and below it, of either version.
    Cgroup(PathBuf),
    /// `cgroup:/path/*`: all processes in these control groups and below them, even if the groups are made
    /// later.
    Cgroups(Groups),
    /// `user:www-data` or `user:33`: processes of a user.
    User {
        /// The user as it was given.
        name: String,
        /// The user's number.
        id: u32,
    },
    /// `children:123`: the descendants of a process, without the process itself.
    Children(u32),
}

impl Selector {
    /// Selects processes that have exactly this name.
    pub fn comm(name: &OsStr) -> Selector {
        Selector::Comm(Pattern { text: name.to_owned(), glob: kept(name.as_bytes()) })
    }

    /// Reads a selector. Its names and paths may contain any bytes.
    ///
    /// # Errors
    ///
    /// [`DomainError`] says what was expected, or why the selector can never select anything.
    pub fn parse(text: &OsStr) -> Result<Selector, DomainError> {
        let unknown = || DomainError::Selector(shown(text));
        let bytes = text.as_bytes();
        let colon = bytes.iter().position(|&byte| byte == b':').ok_or_else(unknown)?;
        let value = OsStr::from_bytes(&bytes[colon + 1..]);
        let wrong = |expected: String| DomainError::Value { text: shown(text), expected };
        if value.is_empty() {
            return Err(wrong("something behind the colon".into()));
        }
        match &bytes[..colon] {
            b"pid" => Ok(Selector::Pid(process_number(value).map_err(wrong)?)),
            b"children" => Ok(Selector::Children(process_number(value).map_err(wrong)?)),
            b"comm" => comm(value).map_err(wrong),
            b"exe" => program(value).map_err(wrong),
            b"cgroup" => groups::parse(value).map(|meant| match meant {
                MeantGroups::One(directory) => Selector::Cgroup(directory),
                MeantGroups::Matching(groups) => Selector::Cgroups(groups),
            }),
            b"user" => Ok(Selector::User { name: shown(value), id: user_id(value)? }),
            _ => Err(unknown()),
        }
    }

    /// Reads a selector that is written down for later: a control group need not be there yet.
    ///
    /// # Errors
    ///
    /// As [`parse`](Selector::parse).
    pub fn parse_ahead(text: &OsStr) -> Result<Selector, DomainError> {
        Selector::parse(text).or_else(|error| match &error {
            DomainError::NoCgroup { path, .. } => groups::expected(path).map(Selector::Cgroup).ok_or(error),
            _ => Err(error),
        })
    }

    /// Whether the selector selects a process itself, apart from its ancestors. Selectors of control groups
    /// never do: the groups list their members themselves.
    pub fn selects(&self, process: &Process) -> bool {
        match self {
            Selector::Pid(pid) => process.pid == *pid,
            Selector::Children(pid) => process.parent == *pid,
            Selector::Cgroup(_) | Selector::Cgroups(_) => false,
            // The name of a user or a program is never meant to select threads of the kernel.
            _ if process.is_kernel => false,
            Selector::Comm(name) => name.glob.matches(process.comm.as_bytes()),
            Selector::Program(path) => process::program(process.pid)
                .is_some_and(|program| path.glob.matches(program.as_os_str().as_bytes())),
            Selector::User { id, .. } => process::user(process.pid) == Some(*id),
        }
    }

    /// The same selector for the kernel component, which knows processes from their first moment on. `None`
    /// for control groups, which are bound as such.
    pub fn rule(&self) -> Option<Selects> {
        match self {
            Selector::Pid(pid) => Some(Selects::Process(*pid)),
            Selector::Children(pid) => Some(Selects::Children(*pid)),
            Selector::User { id, .. } => Some(Selects::User(*id)),
            Selector::Comm(name) => Some(Selects::Comm(name.glob.clone())),
            Selector::Program(path) => Some(Selects::Program(path.glob.clone())),
            Selector::Cgroup(_) | Selector::Cgroups(_) => None,
        }
    }

    /// Whether the selector may select a process later if it selects none now. The number of a process that
    /// has ended is given to another process, which was not meant.
    pub fn can_come_true(&self) -> bool {
        match self {
            Selector::Pid(_) => false,
            Selector::Children(pid) => Process::read(*pid).is_some(),
            _ => true,
        }
    }

    /// Whether a process can come to be selected, or no longer be selected, without a new process: by exec or
    /// by a change of its user.
    pub fn is_pattern(&self) -> bool {
        matches!(self, Selector::Comm(_) | Selector::Program(_) | Selector::User { .. })
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Selector::Pid(pid) => write!(f, "pid:{pid}"),
            Selector::Comm(name) => write!(f, "comm:{}", shown(&name.text)),
            Selector::Program(path) => write!(f, "exe:{}", shown(&path.text)),
            Selector::Cgroup(path) => write!(f, "cgroup:{}", shown(path.as_os_str())),
            Selector::Cgroups(groups) => write!(f, "cgroup:{}", shown(groups.pattern())),
            Selector::User { name, .. } => write!(f, "user:{name}"),
            Selector::Children(pid) => write!(f, "children:{pid}"),
        }
    }
}

impl FromStr for Selector {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<Selector, DomainError> {
        Selector::parse(text.as_ref())
    }
}

fn process_number(value: &OsStr) -> Result<u32, String> {
    let pid = value.to_str().and_then(|value| value.parse().ok()).filter(|&pid| pid > 0);
    pid.ok_or_else(|| "a process number, such as pid:1234".into())
}

/// What the kernel keeps of a name: only the beginning of a longer one, so that only that can match.
fn kept(name: &[u8]) -> Glob {
    Glob::name(&name[..name.len().min(COMM_BYTES)])
}

fn comm(value: &OsStr) -> Result<Selector, String> {
    let glob = Glob::of_names(value.as_bytes());
    if let Some(name) = glob.literal() {
        return Ok(Selector::Comm(Pattern { text: value.to_owned(), glob: kept(&name) }));
    }
    if glob.shortest() > COMM_BYTES {
        let prefix = OsString::from_vec(glob.prefix()[..glob.prefix().len().min(COMM_BYTES - 1)].to_vec());
        return Err(format!(
            "a shorter pattern: the kernel keeps {COMM_BYTES} bytes of a name, and this takes {} at least; for example \
             comm:{}*",
            glob.shortest(),
            shown(&prefix)
        ));
    }
    Ok(Selector::Comm(Pattern { text: value.to_owned(), glob }))
}

fn program(value: &OsStr) -> Result<Selector, String> {
    let glob = Glob::of_paths(value.as_bytes());
    let Some(path) = glob.literal() else {
        return Ok(Selector::Program(Pattern { text: value.to_owned(), glob: real_prefix(&glob)? }));
    };
    // `/proc` names programs by their real paths.
    let found = fs::canonicalize(OsStr::from_bytes(&path)).ok().filter(|path| path.is_file());
    let path = found.ok_or_else(|| hint::program(OsStr::from_bytes(&path)))?.into_os_string();
    Ok(Selector::Program(Pattern { glob: Glob::path(path.as_bytes()), text: path }))
}

/// The pattern of paths with the real path of the directory before its first star. Links are not followed in
/// patterns, and `/bin` may be a link.
fn real_prefix(glob: &Glob) -> Result<Glob, String> {
    let prefix = glob.prefix();
    if !prefix.starts_with(b"/") {
        let is_anywhere = glob.takes_any_beginning();
        let wrong = "a pattern that begins with a slash, or with ** for any directory";
        return is_anywhere.then(|| glob.clone()).ok_or(wrong.into());
    }
    let end = prefix.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
    let directory = Path::new(OsStr::from_bytes(&prefix[..end.max(1)]));
    let real = fs::canonicalize(directory)
        .map_err(|_| format!("a directory that exists, and {} does not", shown(directory.as_os_str())))?;
    let real = real.as_os_str().as_bytes();
    Ok(glob.with_prefix(if real == b"/" { b"" } else { real }, end))
}

/// The number of a user: the number itself, or the name's in `/etc/passwd`.
///
/// # Errors
///
/// [`DomainError::NoUser`]
pub fn user_id(name: &OsStr) -> Result<u32, DomainError> {
    if let Some(id) = name.to_str().and_then(|name| name.parse().ok()) {
        return Ok(id);
    }
    let passwd = fs::read("/etc/passwd").unwrap_or_default();
    let found = users(&passwd).find(|(known, _)| *known == name.as_bytes());
    found.map(|(_, id)| id).ok_or_else(|| {
        let near = hint::nearest(name.as_bytes(), users(&passwd).map(|(name, _)| name));
        DomainError::NoUser { name: shown(name), hint: hint::did_you_mean(near) }
    })
}

/// The name of a user, or the number of a user that has no name here.
pub fn user_name(id: u32) -> String {
    let passwd = fs::read("/etc/passwd").unwrap_or_default();
    let found = users(&passwd).find(|(_, known)| *known == id);
    found.map_or_else(|| id.to_string(), |(name, _)| super::plain_name(OsStr::from_bytes(name)))
}

/// Whether a letter can be in a domain's name.
pub(super) fn is_plain(letter: char) -> bool {
    letter.is_alphanumeric() || "-_./@".contains(letter)
}

/// The users' names and numbers. The other fields may be in any encoding, so the lines are read as bytes.
fn users(passwd: &[u8]) -> impl Iterator<Item = (&[u8], u32)> {
    passwd.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut fields = line.split(|&byte| byte == b':');
        let name = fields.next().filter(|name| !name.is_empty())?;
        Some((name, str::from_utf8(fields.nth(1)?).ok()?.parse().ok()?))
    })
}

/// A domain as the user asks for it: `NAME=SELECTOR[,SELECTOR…]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DomainSpec {
    /// Its name.
    pub name: String,
    /// The selectors of the processes that belong to it.
    pub selectors: Vec<Selector>,
    /// Its role for the affinity policy. If it is `None`, the role is found out from the logs: a domain that
    /// reports transactions is a driver, and a domain that deals with a driver is a client.
    pub role: Option<Role>,
}

impl DomainSpec {
    /// The users that selectors name.
    pub fn users(&self) -> impl Iterator<Item = u32> {
        self.selectors.iter().filter_map(|selector| match selector {
            Selector::User { id, .. } => Some(*id),
            _ => None,
        })
    }

    /// The same domain with this role.
    pub fn with_role(mut self, role: Role) -> DomainSpec {
        self.role = Some(role);
        self
    }

    /// Reads a domain. Its selectors may contain any bytes.
    ///
    /// # Errors
    ///
    /// [`DomainError`] says what was expected.
    pub fn parse(text: &OsStr) -> Result<DomainSpec, DomainError> {
        let bytes = text.as_bytes();
        let equals = bytes.iter().position(|&byte| byte == b'=');
        let equals = equals.ok_or_else(|| DomainError::Form(shown(text)))?;
        let name = OsStr::from_bytes(&bytes[..equals]);
        let selectors = bytes[equals + 1..].split(|&byte| byte == b',').map(OsStr::from_bytes);
        DomainSpec::new(name, selectors)
    }

    /// A domain of this name, with what these select.
    ///
    /// # Errors
    ///
    /// [`DomainError`] says what was expected.
    pub fn new<'a>(
        name: &OsStr,
        selectors: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<DomainSpec, DomainError> {
        DomainSpec::of(name, selectors.into_iter().map(Selector::parse))
    }

    /// A domain that is written down for later: its control groups need not be there yet.
    ///
    /// # Errors
    ///
    /// [`DomainError`] says what was expected.
    pub fn ahead<'a>(
        name: &OsStr,
        selectors: impl IntoIterator<Item = &'a OsStr>,
    ) -> Result<DomainSpec, DomainError> {
        DomainSpec::of(name, selectors.into_iter().map(Selector::parse_ahead))
    }

    fn of(
        name: &OsStr,
        selectors: impl Iterator<Item = Result<Selector, DomainError>>,
    ) -> Result<DomainSpec, DomainError> {
        // Names of domains are paths of their parameters, too.
        let leads_away = |name: &str| name.split('/').any(|part| matches!(part, "." | ".."));
        let plain =
            name.to_str().filter(|name| !name.is_empty() && name.chars().all(is_plain) && !leads_away(name));
        let plain = plain.ok_or_else(|| DomainError::Name(shown(name)))?;
        let selectors = selectors.collect::<Result<Vec<_>, _>>()?;
        if selectors.is_empty() {
            return Err(DomainError::Selector(String::new()));
        }
        Ok(DomainSpec { name: plain.to_owned(), selectors, role: None })
    }
}

impl FromStr for DomainSpec {
    type Err = DomainError;

    fn from_str(text: &str) -> Result<DomainSpec, DomainError> {
        DomainSpec::parse(text.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(comm: &str) -> Process {
        Process { pid: 77, comm: comm.into(), parent: 7, group: 7, is_kernel: false, start: 1, ran: 0 }
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
    fn log_6_a_name_that_the_kernel_cuts_within_a_letter_is_selected_by_the_whole() {
        let whole = "сериализатор";
        let cut = Process { comm: OsString::from_vec(whole.as_bytes()[..15].to_vec()), ..process("") };
        for text in [OsString::from(whole), OsString::from("сериа*"), cut.comm.clone()] {
            let text = [OsStr::new("comm:"), &text].join(OsStr::new(""));
            assert!(Selector::parse(&text).unwrap().selects(&cut), "{text:?}");
        }
    }

    #[test]
    fn log_6_a_selector_that_can_never_match_is_refused_with_what_would() {
        for (text, expected) in [
            ("comm:a-very-long-name*", "comm:a-very-long-na*"),
            ("exe:/no/such/dir/*", "/no/such/dir does not"),
            ("exe:bin/*", "begins with a slash"),
            ("exe:sleep", "the path of a program: exe:/"),
            ("exe:/bin/slep", "did you mean /bin/sleep"),
            ("user:roott", "did you mean root"),
        ] {
            let error = Selector::parse(text.as_ref()).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }

    #[test]
    fn log_6_a_pattern_of_programs_begins_at_the_real_directory() {
        let own = std::env::current_exe().unwrap();
        let link = std::env::temp_dir().join(format!("mete-sched-link-{}", std::process::id()));
        std::os::unix::fs::symlink(own.parent().unwrap(), &link).unwrap();
        let selector =
            Selector::parse(&[OsStr::new("exe:"), link.as_os_str(), OsStr::new("/*")].join(OsStr::new("")));
        fs::remove_file(&link).unwrap();
        assert!(selector.unwrap().selects(&Process::read(std::process::id()).unwrap()));
    }

    #[test]
    fn log_6_a_pattern_of_programs_may_begin_with_any_directory() {
        let own = Process::read(std::process::id()).unwrap();
        let name = std::env::current_exe().unwrap().file_name().unwrap().to_owned();
        for before in ["exe:**/", "exe:**"] {
            let selector = Selector::parse(&[OsStr::new(before), &name].join(OsStr::new(""))).unwrap();
            assert!(selector.selects(&own), "{selector}");
        }
        for text in ["exe:*/sleep", "exe:?bin/*"] {
            let error = Selector::parse(text.as_ref()).unwrap_err().to_string();
            assert!(error.contains("begins with a slash, or with **"), "{text}: {error}");
        }
    }

    #[test]
    fn log_6_patterns_do_not_reach_into_the_kernel() {
        let kernel = Process { is_kernel: true, ..process("kworker") };
        assert!(!Selector::comm("kworker".as_ref()).selects(&kernel));
        assert!(Selector::Pid(77).selects(&kernel));
    }

    #[test]
    fn users_are_found_by_their_whole_name() {
        let passwd = b"root:x:0:0:\xe9:/root:/bin/sh\nwww-data:x:33:33::/:/bin/false\n";
        assert!(users(passwd).eq([(&b"root"[..], 0), (b"www-data", 33)]));
    }
}
