//! Compiled programs, kept for the next time. They are loaded into the kernel, so this reads nothing that
//! another user could have put there. It opens the path of the directory part by part. Each part belongs to
//! this user or to root, and no other user may exchange it. The file that is read is the one that was
//! checked.

use std::env;
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use mete_base::folder::{Folder, PathTrust};
use rustix::fs::{FileType, Mode, OFlags, fstat};
use rustix::process::geteuid;

use crate::KernelError;

/// The base of root's directory. It is not in the home that the environment names, because that may be the
/// home of the user who called `sudo`.
const OF_ROOT: &str = "/var/cache";
/// The rights that other users must not have to the directory.
const NOT_OTHERS: Mode = Mode::RWXG.union(Mode::RWXO);

/// A directory that only its user can enter, because the files in it are loaded into the kernel.
#[derive(Clone, Debug)]
pub struct Cache {
    /// Candidates. The first one that can be trusted is used.
    places: Vec<PathBuf>,
}

impl Cache {
    /// A cache in this directory, which is made when there is something to keep.
    pub fn at(path: impl Into<PathBuf>) -> Cache {
        Cache { places: vec![path.into()] }
    }

    /// The user's cache: `mete/programs` in `XDG_CACHE_HOME`, or else in `~/.cache`. That of root is in
    /// `/var/cache`, unless the environment names a directory that belongs to root, together with all those
    /// above it.
    pub fn of_user() -> Cache {
        let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        Cache::of(geteuid().is_root(), named, env::home_dir())
    }

    fn of(is_root: bool, named: Option<PathBuf>, home: Option<PathBuf>) -> Cache {
        let base = if is_root { None } else { home.map(|home| home.join(".cache")) };
        let base = base.unwrap_or_else(|| OF_ROOT.into());
        let bases = match named {
            Some(named) if is_root => vec![named, base],
            Some(named) => vec![named],
            None => vec![base],
        };
        Cache { places: bases.into_iter().map(|base| base.join("mete/programs")).collect() }
    }

    /// The object that is kept under this key. If there is none, `make` makes it in an empty directory, and
    /// it is kept.
    pub(super) fn get(
        &self,
        key: u64,
        make: impl FnOnce(&Path) -> Result<Vec<u8>, KernelError>,
    ) -> Result<Vec<u8>, KernelError> {
        let (folder, path) = self.open()?;
        let failed = |source| KernelError::Cache { path: path.to_owned(), source };
        let name = format!("{key:016x}.o");
        if let Some(object) = kept(&folder, name.as_ref()).map_err(failed)?.and_then(unsealed) {
            return Ok(object);
        }
        let scratch = Scratch::new(&folder).map_err(failed)?;
        // The error of the empty directory is replaced: it would name a path that is gone.
        let object = make(&scratch.folder.path()).map_err(|error| match error {
            KernelError::Cache { source, .. } => failed(source),
            error => error,
        })?;
        keep(&folder, &name, &scratch.name, &sealed(&object)).map_err(failed)?;
        Ok(object)
    }

    /// The directory, and its path for messages.
    fn open(&self) -> Result<(Folder, &Path), KernelError> {
        let mut refused = (OF_ROOT.into(), io::ErrorKind::NotFound.into());
        for path in &self.places {
            match prepare(path) {
                Ok(folder) => return Ok((folder, path)),
                Err(source) => refused = (path.clone(), source),
            }
        }
        let (path, source) = refused;
        Err(KernelError::Cache { path, source })
    }
}

/// Makes or opens the directory, and checks who can enter it.
fn prepare(path: &Path) -> io::Result<Folder> {
    let (folder, _) = Folder::make(path, PathTrust::Own, Mode::RWXU)?;
    // By its descriptor: the path could mean another directory by now.
    let found = fstat(&folder)?;
    let mode = Mode::from_raw_mode(found.st_mode);
    if found.st_uid == geteuid().as_raw() && !mode.intersects(NOT_OTHERS) {
        return Ok(folder);
    }
    Err(io::Error::other("others can enter it, or it is not this user's; remove it, or chmod it to 0700"))
}

/// The bytes of a file in the cache; `None` if there is none. The descriptor that is checked is the one that
/// is read.
fn kept(folder: &Folder, name: &OsStr) -> io::Result<Option<Vec<u8>>> {
    let Some(entry) = folder.entry(name)? else { return Ok(None) };
    let is_trusted = entry.kind() == FileType::RegularFile
        && entry.is_own()
        && !entry.mode().intersects(Mode::WGRP | Mode::WOTH);
    if !is_trusted {
        let why =
            format!("{} in it is no file of this user, or others can write it; remove it", name.display());
        return Err(io::Error::other(why));
    }
    let mut object = Vec::new();
    entry.open(OFlags::RDONLY)?.read_to_end(&mut object)?;
    Ok(Some(object))
}

/// An object with a checksum at its end. A machine that loses its power may leave a part of a file under the
/// name of the whole.
fn sealed(object: &[u8]) -> Vec<u8> {
    [object, &sum(object).to_le_bytes()].concat()
}

/// The object without its checksum; `None` if it is damaged, so that it is made anew.
fn unsealed(mut bytes: Vec<u8>) -> Option<Vec<u8>> {
    let (object, end) = bytes.split_last_chunk()?;
    if u64::from_le_bytes(*end) != sum(object) {
        return None;
    }
    bytes.truncate(object.len());
    Some(bytes)
}

/// A checksum against mistakes, not against attacks. If it changes with the standard library, everything is
/// compiled once more.
fn sum(object: &[u8]) -> u64 {
    let mut hash = DefaultHasher::new();
    object.hash(&mut hash);
    hash.finish()
}

/// Writes a file under another name first, and renames it, so that a reader always sees the whole file.
///
/// Not a `draft` of `mete-base`: that takes a path, and follows links, where this keeps to the folder whose
/// owners were checked. It also waits for the disk, which here costs more than it saves: an object has a
/// checksum, and one that a stopped machine has cut off is compiled anew.
fn keep(folder: &Folder, name: &str, work: &str, object: &[u8]) -> io::Result<()> {
    let whole = format!("{work}.o");
    // A process of the same number may have been killed, and have left one.
    let _ = folder.remove(&whole);
    let written = folder.create(&whole, Mode::RUSR | Mode::WUSR).and_then(|mut file| file.write_all(object));
    let kept = written.and_then(|()| folder.rename(&whole, name));
    kept.inspect_err(|_| drop(folder.remove(&whole)))
}

/// A directory for one compilation, which is removed at its end.
struct Scratch {
    folder: Folder,
    name: String,
    inside: PathBuf,
}

impl Scratch {
    fn new(inside: &Folder) -> io::Result<Scratch> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("work-{}-{nth}", process::id());
        // A process of the same number may have been killed, and have left one.
        let _ = std::fs::remove_dir_all(inside.path().join(&name));
        let folder = inside.create_folder(&name, Mode::RWXU)?;
        Ok(Scratch { folder, inside: inside.path().join(&name), name })
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.inside);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, chown, symlink};

    use super::*;

    /// A directory that is removed at the end of its test.
    #[test]
    fn klog_8_compiled_programs_are_made_once_and_only_their_user_can_enter() -> Result<(), KernelError> {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().join("a/b"));
        let make = |_: &Path| Ok(b"object".to_vec());
        assert_eq!(cache.get(7, make)?, b"object");
        assert_eq!(cache.get(7, |_| panic!("it is kept"))?, b"object");
        assert_eq!(cache.get(8, |_| Ok(Vec::new()))?, b"");
        let mode = fs::metadata(place.path().join("a/b")).map(|found| found.permissions().mode() & 0o777);
        assert_eq!(mode.ok(), Some(0o700));
        assert_eq!(
            fs::read_dir(place.path().join("a/b")).map(Iterator::count).ok(),
            Some(2),
            "nothing else is left"
        );
        Ok(())
    }

    #[test]
    fn klog_8_a_compiled_program_that_is_damaged_is_made_anew() -> io::Result<()> {
        let place = tempfile::tempdir().unwrap();
        let cache = Cache::at(place.path().join("a"));
        let make = |_: &Path| Ok(b"object".to_vec());
        let file = place.path().join("a").join(format!("{:016x}.o", 7));
        for damaged in [&b""[..], b"obj", b"object12345678", b"\0\0\0\0\0\0\0\0"] {
            assert_eq!(cache.get(7, make).unwrap(), b"object");
            fs::write(&file, damaged)?;
            assert_eq!(cache.get(7, make).unwrap(), b"object", "{damaged:?}");
            assert_eq!(cache.get(7, |_| panic!("it is kept")).unwrap(), b"object");
        }
        Ok(())
    }

    #[test]
    fn klog_8_compiled_programs_are_not_taken_from_where_others_may_write() -> io::Result<()> {
        let place = tempfile::tempdir().unwrap();
        fs::set_permissions(place.path(), fs::Permissions::from_mode(0o777))?;
        let error = Cache::at(place.path()).get(7, |_| panic!("nothing is made there"));
        assert!(matches!(error, Err(KernelError::Cache { .. })), "{error:?}");
        Ok(())
    }

    #[test]
    fn klog_8_root_takes_compiled_programs_from_roots_own_directories_alone() -> io::Result<()> {
        const NOBODY: u32 = 65534;
        if !geteuid().is_root() {
            println!(
                "SKIPPED: klog_8_root_takes_compiled_programs_from_roots_own_directories_alone: this needs root"
            );
            return Ok(());
        }
        let place = tempfile::tempdir().unwrap();
        let (home, own) = (place.path().join("home"), place.path().join("own"));
        let foreign = home.join(".cache/mete/programs");
        fs::create_dir_all(&foreign)?;
        fs::set_permissions(&foreign, fs::Permissions::from_mode(0o700))?;
        fs::write(foreign.join(format!("{:016x}.o", 7)), "foreign")?;
        // All of it belongs to root, except the folder in which that user can exchange it for something else.
        chown(&home, Some(NOBODY), Some(NOBODY))?;
        let refused = Cache::at(&foreign).get(7, |_| panic!("nothing is made there")).unwrap_err();
        assert!(refused.to_string().contains("home is another user's"), "{refused}");
        let cache = Cache { places: vec![foreign, own.clone()] };
        assert_eq!(cache.get(7, |_| Ok(b"own".to_vec())).unwrap(), b"own");
        assert!(own.join(format!("{:016x}.o", 7)).is_file());
        // It follows no link of that user either, and takes no file that the user owns.
        symlink(&own, place.path().join("link"))?;
        std::os::unix::fs::lchown(place.path().join("link"), Some(NOBODY), Some(NOBODY))?;
        assert!(Cache::at(place.path().join("link")).get(7, |_| panic!("it is not trusted")).is_err());
        chown(own.join(format!("{:016x}.o", 7)), Some(NOBODY), None)?;
        let refused = cache.get(7, |_| panic!("it is not trusted")).unwrap_err();
        assert!(refused.to_string().contains("is no file of this user"), "{refused}");
        Ok(())
    }

    #[test]
    fn klog_8_a_cache_is_the_users_and_roots_is_not_in_the_home_that_the_environment_names() {
        let of = |is_root, named: Option<&str>| {
            Cache::of(is_root, named.map(PathBuf::from), Some("/home/user".into())).places
        };
        let expected =
            |bases: &[&str]| bases.iter().map(|base| PathBuf::from(base).join("mete/programs")).collect();
        let named = Some("/named");
        let cases: [(_, Vec<PathBuf>); 4] = [
            (of(false, None), expected(&["/home/user/.cache"])),
            (of(false, named), expected(&["/named"])),
            (of(true, None), expected(&["/var/cache"])),
            (of(true, named), expected(&["/named", "/var/cache"])),
        ];
        cases.into_iter().for_each(|(found, expected)| assert_eq!(found, expected));
    }
}
