//! The user that a command runs as. Logging needs root, but the command does not: if `sudo` has started this
//! program, the command runs as the user who called `sudo`, as it would without being logged.

use std::ffi::{CStr, CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::{env, fs, ptr};

use anyhow::{Context, anyhow, bail};
use rustix::process::{Gid, Uid, geteuid};
use rustix::thread::{set_thread_groups, set_thread_res_gid, set_thread_res_uid};

use crate::failure;

/// The option `--user`.
#[derive(Clone, Debug, clap::Args)]
pub struct UserOption {
    /// Run COMMAND as this user, by name or number; if not given, under sudo, as the user who called sudo
    #[arg(long, value_name = "NAME", requires = "command", value_parser = asked_for)]
    user: Option<User>,
}

/// A user that a command runs as.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: OsString,
    uid: u32,
    gid: u32,
    groups: Vec<u32>,
    /// Home directory and shell, of a user that the system knows.
    home: Option<(OsString, OsString)>,
}

impl UserOption {
    /// The user that the command runs as; `None` if it is the user of this program.
    pub fn user(&self) -> anyhow::Result<Option<User>> {
        let chosen = match &self.user {
            Some(asked) => Some(asked.clone()),
            None if geteuid().is_root() => caller()?,
            None => None,
        };
        let chosen = chosen.filter(|user| user.uid != geteuid().as_raw());
        if let Some(user) = chosen.as_ref().filter(|_| !geteuid().is_root()) {
            bail!("only root can run a command as another user ({})", user.name.display());
        }
        Ok(chosen)
    }

    /// The same. If `--user` was not given and the user is another one, also prints a line that says so, with
    /// a further consequence (`consequence`).
    pub fn told(&self, command: &[OsString], consequence: &str) -> anyhow::Result<Option<User>> {
        let Some(program) = command.first() else { return Ok(None) };
        let user = self.user()?;
        if let Some(user) = user.as_ref().filter(|_| self.user.is_none()) {
            let (program, name) = (program.display(), user.name.display());
            failure::say(&format!(
                "{program} runs as {name}, who called sudo{consequence}; --user root has it run as root"
            ));
        }
        Ok(user)
    }
}

/// The value of `--user`: a name, or a number that is no user's name.
fn asked_for(asked: &str) -> anyhow::Result<User> {
    let known = User::by_name(asked).with_context(|| format!("cannot look for the user {asked:?}"))?;
    if let Some(user) = known {
        return Ok(user);
    }
    let unknown = || anyhow!("there is no user {asked:?}");
    let uid = asked.parse().ok().filter(is_user).ok_or_else(unknown)?;
    User::of(uid, uid).with_context(unknown)
}

/// The largest number names no user. The kernel takes it as "unchanged", and the command would stay root's.
fn is_user(number: &u32) -> bool {
    *number != u32::MAX
}

/// The user who called sudo; `None` if this program was not started by sudo.
fn caller() -> anyhow::Result<Option<User>> {
    let Some(uid) = env::var_os("SUDO_UID") else { return Ok(None) };
    let number = |name: &str| env::var(name).ok().and_then(|text| text.parse().ok()).filter(is_user);
    let (Some(uid), Some(gid)) = (number("SUDO_UID"), number("SUDO_GID")) else {
        bail!(
            "SUDO_UID={} and SUDO_GID name no user who called sudo; choose the command's user with --user",
            uid.display()
        );
    };
    Ok(Some(User::of(uid, gid).context("cannot look for the user who called sudo")?))
}

impl User {
    /// The user with this number. Of a user that the system does not know, only the numbers are known.
    fn of(uid: u32, gid: u32) -> io::Result<User> {
        let unknown = User { name: uid.to_string().into(), uid, gid, groups: vec![gid], home: None };
        // SAFETY: `entry`, `text` and `found` live throughout the call, and the length is that of `text`.
        let known = lookup(|entry, text, found| unsafe {
            libc::getpwuid_r(uid, entry, text.as_mut_ptr(), text.len(), found)
        })?;
        Ok(known.unwrap_or(unknown))
    }

    fn by_name(name: &str) -> io::Result<Option<User>> {
        let name = CString::new(name)?;
        // SAFETY: as in `of`, and the name ends with a zero.
        lookup(|entry, text, found| unsafe {
            libc::getpwnam_r(name.as_ptr(), entry, text.as_mut_ptr(), text.len(), found)
        })
    }

    /// Has a command run as this user, with the user's groups and the environment variables that tell of a
    /// user. The change of the user comes after everything else that was set up to happen in the child before
    /// this call.
    pub fn run(&self, command: &mut Command) {
        command.env("USER", &self.name).env("LOGNAME", &self.name);
        match &self.home {
            Some((home, shell)) => command.env("HOME", home).env("SHELL", shell),
            None => command.env("HOME", "/").env_remove("SHELL"),
        };
        let runtime = PathBuf::from(format!("/run/user/{}", self.uid));
        match self.owns(&runtime) {
            true => command.env("XDG_RUNTIME_DIR", runtime),
            false => command.env_remove("XDG_RUNTIME_DIR"),
        };
        let (uid, gid) = (self.uid, self.gid);
        let groups: Vec<Gid> = self.groups.iter().copied().map(Gid::from_raw).collect();
        // SAFETY: between fork and exec, the closure makes system calls and nothing else.
        unsafe { command.pre_exec(move || become_user(uid, gid, &groups)) };
    }

    fn owns(&self, directory: &std::path::Path) -> bool {
        use std::os::unix::fs::MetadataExt;
        fs::symlink_metadata(directory).is_ok_and(|found| found.is_dir() && found.uid() == self.uid)
    }
}

/// Runs in the child between fork and exec, where there is one thread: the calls change the thread that makes
/// them.
fn become_user(uid: u32, gid: u32, groups: &[Gid]) -> io::Result<()> {
    let (uid, gid) = (Uid::from_raw(uid), Gid::from_raw(gid));
    set_thread_groups(groups)?;
    set_thread_res_gid(gid, gid, gid)?;
    // The user comes last: without root's rights, the groups could no longer be changed.
    Ok(set_thread_res_uid(uid, uid, uid)?)
}

/// Looks a user up, with as much room for the answer as it needs.
fn lookup(
    ask: impl Fn(*mut libc::passwd, &mut [libc::c_char], *mut *mut libc::passwd) -> libc::c_int,
) -> io::Result<Option<User>> {
    const MOST: usize = 1 << 20;
    let mut text: Vec<libc::c_char> = vec![0; 1024];
    loop {
        // SAFETY: all zeroes is a value of this structure of numbers and pointers.
        let mut entry: libc::passwd = unsafe { std::mem::zeroed() };
        let mut found = ptr::null_mut();
        match ask(&raw mut entry, &mut text, &raw mut found) {
            libc::ERANGE if text.len() < MOST => text.resize(text.len() * 4, 0),
            libc::EINTR => {}
            0 if found.is_null() => return Ok(None),
            // SAFETY: the user was found, so the structure's pointers lead to texts in `text`, which end with
            // a zero.
            0 => return Ok(Some(unsafe { known(&entry) })),
            error => return Err(io::Error::from_raw_os_error(error)),
        }
    }
}

/// # Safety
///
/// The system has filled the entry, and its texts are still there.
unsafe fn known(entry: &libc::passwd) -> User {
    let text = |text: *mut libc::c_char| {
        if text.is_null() {
            return OsString::new();
        }
        // SAFETY: as the caller promises.
        OsStr::from_bytes(unsafe { CStr::from_ptr(text) }.to_bytes()).to_owned()
    };
    let shell = Some(text(entry.pw_shell)).filter(|shell| !shell.is_empty());
    User {
        name: text(entry.pw_name),
        uid: entry.pw_uid,
        gid: entry.pw_gid,
        // SAFETY: as the caller promises.
        groups: unsafe { groups(entry) },
        home: Some((text(entry.pw_dir), shell.unwrap_or_else(|| "/bin/sh".into()))),
    }
}

/// # Safety
///
/// As for [`known`].
unsafe fn groups(entry: &libc::passwd) -> Vec<u32> {
    /// The kernel takes no more groups (`NGROUPS_MAX`).
    const MOST: usize = 65536;
    let mut groups = vec![0; 64];
    loop {
        let mut count = groups.len() as libc::c_int;
        // SAFETY: the name ends with a zero, and `count` is the length of the list.
        let all =
            unsafe { libc::getgrouplist(entry.pw_name, entry.pw_gid, groups.as_mut_ptr(), &raw mut count) };
        if all >= 0 {
            groups.truncate(count.max(0) as usize);
            return groups;
        }
        if groups.len() >= MOST {
            return vec![entry.pw_gid];
        }
        groups.resize(groups.len() * 4, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_are_known_by_name_and_number() {
        let root = User::by_name("root").unwrap().unwrap();
        assert_eq!((root.uid, root.gid, root.groups.contains(&0)), (0, 0, true));
        assert_eq!(User::of(0, 7).unwrap(), root);
        let unknown = User::of(64_999, 7).unwrap();
        assert_eq!((unknown.groups, unknown.home), (vec![7], None));
        assert!(User::by_name("no such user").unwrap().is_none());
        assert!(asked_for("no-such-user").unwrap_err().to_string().contains("there is no user"));
        assert_eq!(asked_for("64999").unwrap().uid, 64_999);
        assert!(asked_for("4294967295").unwrap_err().to_string().contains("there is no user"));
    }
}
