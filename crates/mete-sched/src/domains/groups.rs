//! Control groups as selectors: a directory, the path within the hierarchy that `/proc/PID/cgroup` shows, or
//! a pattern of such paths.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use mete_kernel::Glob;
use mete_log::DomainId;

use super::{DomainError, hint, process};

/// The control groups that match a pattern, now and later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Groups {
    pattern: OsString,
    glob: Glob,
    /// The mount point at which the pattern's paths begin.
    mount: PathBuf,
}

/// What a selector of control groups means here.
pub(super) enum MeantGroups {
    /// A group that exists, by its directory.
    One(PathBuf),
    Matching(Groups),
}

impl Groups {
    /// The pattern as the user wrote it.
    pub fn pattern(&self) -> &OsStr {
        &self.pattern
    }

    /// The matching control groups that exist now.
    pub fn directories(&self) -> Vec<PathBuf> {
        let mut found = Vec::new();
        self.collect(&self.mount.join(self.prefix()), &mut found);
        found
    }

    /// The directory above every match, relative to the mount point.
    fn prefix(&self) -> PathBuf {
        let prefix = self.glob.prefix();
        let end = prefix.iter().rposition(|&byte| byte == b'/').unwrap_or(0);
        let path = prefix[..end].strip_prefix(b"/").unwrap_or_default();
        OsString::from_vec(path.to_vec()).into()
    }

    fn collect(&self, directory: &Path, found: &mut Vec<PathBuf>) {
        for path in directories_in(directory) {
            if self.glob.matches(inside(&self.mount, &path).as_os_str().as_bytes()) {
                found.push(path.clone());
            }
            self.collect(&path, found);
        }
    }
}

/// Reads the value of a `cgroup:` selector.
pub(super) fn parse(value: &OsStr) -> Result<MeantGroups, DomainError> {
    let glob = Glob::of_paths(value.as_bytes());
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = cgroup_mounts(&mounts);
    // A group's own name may contain a star, so an existing directory takes precedence over a pattern.
    let given = Path::new(value);
    let below = mounts.iter().map(|mount| mount.join(given.strip_prefix("/").unwrap_or(given)));
    if let Some(found) = std::iter::once(given.to_owned()).chain(below).find(|path| is_cgroup(path)) {
        return Ok(MeantGroups::One(found));
    }
    let none = || DomainError::NoCgroup { path: value.into(), hint: nearest_groups(given, &mounts) };
    if glob.literal().is_some() {
        return Err(none());
    }
    // The user may have written the mount point, too. Then the pattern begins behind it.
    let bytes = value.as_bytes();
    let within = mounts.iter().find_map(|mount| {
        let rest = bytes.strip_prefix(mount.as_os_str().as_bytes())?;
        rest.starts_with(b"/").then(|| (mount.clone(), rest.to_vec()))
    });
    let rest = if bytes.starts_with(b"/") { bytes.to_vec() } else { [b"/", bytes].concat() };
    let candidates = within.into_iter().chain(mounts.iter().map(|mount| (mount.clone(), rest.clone())));
    let groups = candidates.map(|(mount, rest)| {
        let glob = Glob::of_paths(&rest);
        Groups { pattern: value.to_owned(), glob, mount }
    });
    let mut groups: Vec<_> = groups.filter(|groups| is_cgroup(&groups.mount.join(groups.prefix()))).collect();
    // A hierarchy with such groups takes precedence over one that may have some later.
    let found = groups.iter().position(|groups| !groups.directories().is_empty()).unwrap_or(0);
    if groups.is_empty() { Err(none()) } else { Ok(MeantGroups::Matching(groups.swap_remove(found))) }
}

/// Where a group is to be expected that is not there yet; `None` if that is no path of a group.
pub(super) fn expected(path: &Path) -> Option<PathBuf> {
    let mountinfo = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let is_plain = path.components().all(|part| matches!(part, Component::RootDir | Component::Normal(_)));
    let is_one = Glob::of_paths(path.as_os_str().as_bytes()).literal().is_some();
    // What stands behind selectors on a command line is no name of a group to be.
    let is_meant = |what: &&str| path.to_string_lossy().contains(what);
    if !is_plain || !is_one || [",share=", ",limit="].iter().any(is_meant) {
        return None;
    }
    let mounts = cgroup_mounts(&mountinfo);
    if mounts.iter().any(|mount| path.starts_with(mount)) {
        return Some(path.to_owned());
    }
    // Where both versions are mounted, the one that deals out processor time has the groups that may have shares.
    let first = mount_of_controller(&mountinfo, b"cpu").or_else(|| mounts.into_iter().next())?;
    Some(first.join(path.strip_prefix("/").unwrap_or(path)))
}

/// A hint that names groups with nearly this name, or with its last part elsewhere.
fn nearest_groups(path: &Path, mounts: &[PathBuf]) -> String {
    let Some(name) = path.file_name() else { return String::new() };
    let in_one = |mount: &PathBuf| {
        all_below(mount).directories().into_iter().map(|path| inside(mount, &path)).collect::<Vec<_>>()
    };
    let all: Vec<PathBuf> = mounts.iter().flat_map(in_one).collect();
    let same = all.iter().filter(|path| path.file_name() == Some(name));
    let mut same: Vec<_> = same.map(|path| process::shown(path.as_os_str())).collect();
    if same.is_empty() {
        let lasts: BTreeMap<_, _> = all.iter().filter_map(|path| Some((path.file_name()?, path))).collect();
        let near = hint::nearest(name.as_bytes(), lasts.keys().map(|name| name.as_bytes()));
        let near = near.iter().filter_map(|name| lasts.get(OsStr::new(name)));
        same = near.map(|path| process::shown(path.as_os_str())).collect();
    }
    same.dedup();
    same.truncate(3);
    hint::did_you_mean(same)
}

/// The path of a group in its hierarchy.
fn inside(mount: &Path, path: &Path) -> PathBuf {
    Path::new("/").join(path.strip_prefix(mount).unwrap_or(path))
}

fn directories_in(directory: &Path) -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|entry| entry.path())
}

/// All groups of one hierarchy, apart from its root.
fn all_below(mount: &Path) -> Groups {
    Groups { pattern: OsString::new(), glob: Glob::of_paths(b"/**"), mount: mount.to_owned() }
}

/// The groups that have processes of their own, below the root of one hierarchy, with their paths in it. The
/// hierarchy is that of version 2 if any process is in a group of it; else the version 1 hierarchy with the
/// largest number of groups in use.
pub(super) fn populated() -> Vec<(PathBuf, PathBuf)> {
    let mounts = fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mut best: Vec<(PathBuf, PathBuf)> = Vec::new();
    for mount in cgroup_mounts(&mounts) {
        let mut found = Vec::new();
        for path in all_below(&mount).directories() {
            if fs::read(path.join("cgroup.procs")).is_ok_and(|text| !text.is_empty()) {
                let name = inside(&mount, &path);
                found.push((path, name));
            }
        }
        let is_version_2 = mount.join("cgroup.controllers").exists();
        if is_version_2 && !found.is_empty() {
            return found;
        }
        if found.len() > best.len() {
            best = found;
        }
    }
    best
}

pub(crate) fn is_cgroup(directory: &Path) -> bool {
    directory.join("cgroup.procs").is_file()
}

/// The directory of the same group under a controller of version 1, which has a hierarchy of its own; `None`
/// if there is none.
pub fn in_controller(group: &Path, controller: &str) -> Option<PathBuf> {
    let mountinfo = fs::read("/proc/self/mountinfo").ok()?;
    let mount = cgroup_mounts(&mountinfo).into_iter().find(|mount| group.starts_with(mount))?;
    let path = group.strip_prefix(mount).ok()?;
    mount_of_controller(&mountinfo, controller.as_bytes())
        .map(|mount| mount.join(path))
        .filter(|path| is_cgroup(path))
}

/// Whether a directory is where control groups are mounted.
pub(crate) fn is_root(group: &Path) -> bool {
    let mountinfo = fs::read("/proc/self/mountinfo").unwrap_or_default();
    fs::canonicalize(group).is_ok_and(|group| cgroup_mounts(&mountinfo).contains(&group))
}

/// Where version 1 has mounted a controller.
#[must_use]
pub fn controller_mount(controller: &str) -> Option<PathBuf> {
    mount_of_controller(&fs::read("/proc/self/mountinfo").ok()?, controller.as_bytes())
}

/// The path of the control group that a process is in under a controller of version 1, below where that is
/// mounted; `None` if it is in the topmost one, or there is no such controller.
#[must_use]
pub fn group_under(process: u32, controller: &str) -> Option<PathBuf> {
    let groups = fs::read(format!("/proc/{process}/cgroup")).ok()?;
    let path = groups.split(|&byte| byte == b'\n').find_map(|line| {
        let mut fields = line.splitn(3, |&byte| byte == b':').skip(1);
        let (controllers, path) = (fields.next()?, fields.next()?);
        controllers.split(|&byte| byte == b',').any(|it| it == controller.as_bytes()).then_some(path)
    })?;
    let path = path.strip_prefix(b"/").filter(|path| !path.is_empty())?;
    Some(PathBuf::from(OsStr::from_bytes(path)))
}

/// The mount point of version 1 that has a controller.
fn mount_of_controller(mountinfo: &[u8], controller: &[u8]) -> Option<PathBuf> {
    let line = mountinfo.split(|&byte| byte == b'\n').find(|line| {
        let options = line.rsplit(|&byte| byte == b' ').next().unwrap_or_default();
        let has = options.split(|&byte| byte == b',').any(|option| option == controller);
        has && mounts_of(line, b"cgroup").next().is_some()
    })?;
    mounts_of(line, b"cgroup").next()
}

/// The mount points of control groups. Version 2 comes first: there the kernel can be asked about all
/// controllers.
fn cgroup_mounts(mountinfo: &[u8]) -> Vec<PathBuf> {
    mounts_of(mountinfo, b"cgroup2").chain(mounts_of(mountinfo, b"cgroup")).collect()
}

fn mounts_of(mountinfo: &[u8], kind: &'static [u8]) -> impl Iterator<Item = PathBuf> {
    mountinfo.split(|&byte| byte == b'\n').filter_map(move |line| {
        // A separator stands before the kind, because the number of fields before it varies.
        let end = line.windows(3).position(|three| three == b" - ")?;
        let is_kind = line[end + 3..].split(|&byte| byte == b' ').next() == Some(kind);
        let mount = line[..end].split(|&byte| byte == b' ').nth(4)?;
        is_kind.then(|| PathBuf::from(OsString::from_vec(mount.to_vec())))
    })
}

/// All processes in these control groups and below them. If the groups are nested, the inner group counts.
pub(super) fn members(groups: &BTreeMap<PathBuf, DomainId>) -> BTreeMap<u32, DomainId> {
    let mut members = BTreeMap::new();
    for (path, domain) in groups {
        collect(path, *domain, groups, &mut members);
    }
    members
}

fn collect(
    directory: &Path,
    domain: DomainId,
    groups: &BTreeMap<PathBuf, DomainId>,
    into: &mut BTreeMap<u32, DomainId>,
) {
    let text = fs::read_to_string(directory.join("cgroup.procs")).unwrap_or_default();
    for pid in text.lines().filter_map(|line| line.parse().ok()) {
        // For a process that is in groups of two hierarchies, the domain that was named first counts.
        let known = into.entry(pid).or_insert(domain);
        *known = domain.min(*known);
    }
    // A group below with a domain of its own is visited as such.
    let below = directories_in(directory).filter(|path| !groups.contains_key(path));
    below.for_each(|path| collect(&path, domain, groups, into));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cgroup_mounts_are_found_with_version_2_first() {
        let mounts = b"30 24 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            32 24 0:28 / /sys/fs/cgroup/unified rw shared:1 - cgroup2 cgroup2 rw\n\
            33 24 0:29 / /tmp/\xd0 rw - tmpfs tmpfs rw\n";
        let found = cgroup_mounts(mounts);
        assert_eq!(found, [Path::new("/sys/fs/cgroup/unified"), Path::new("/sys/fs/cgroup/cpu")]);
    }
}
