//! Compiled programs, kept for the next time.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, process};

use crate::KernelError;

/// A directory that nobody but its user can enter: what is in it is loaded into the kernel.
#[derive(Clone, Debug)]
pub struct Cache(PathBuf);

impl Cache {
    /// This directory. It is made when something is to be kept.
    pub fn at(path: impl Into<PathBuf>) -> Cache {
        Cache(path.into())
    }

    /// The user's: `mete/programs` in `XDG_CACHE_HOME`, or else in `~/.cache`.
    pub fn of_user() -> Cache {
        let named = env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = named.or_else(|| env::home_dir().map(|home| home.join(".cache")));
        Cache(base.unwrap_or_else(|| "/var/cache".into()).join("mete/programs"))
    }

    /// What is kept under this key, or what is made in an empty directory and kept from now on.
    pub(super) fn get(
        &self,
        key: u64,
        make: impl FnOnce(&Path) -> Result<Vec<u8>, KernelError>,
    ) -> Result<Vec<u8>, KernelError> {
        let failed = |source| KernelError::Cache { path: self.0.clone(), source };
        self.prepare().map_err(failed)?;
        let kept = self.0.join(format!("{key:016x}.o"));
        match fs::read(&kept) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            read => return read.map_err(failed),
        }
        let scratch = Scratch::new(&self.0).map_err(failed)?;
        let object = make(&scratch.0)?;
        // Whoever reads it sees all of it.
        let whole = scratch.0.join("object");
        fs::write(&whole, &object).and_then(|()| fs::rename(&whole, &kept)).map_err(failed)?;
        Ok(object)
    }

    fn prepare(&self) -> io::Result<()> {
        DirBuilder::new().recursive(true).mode(0o700).create(&self.0)?;
        let found = fs::symlink_metadata(&self.0)?;
        let is_own = found.uid() == rustix::process::geteuid().as_raw();
        if found.is_dir() && is_own && found.mode() & 0o077 == 0 {
            return Ok(());
        }
        Err(io::Error::other(
            "others can write there, or it is not this user's; remove it, or chmod it to 0700",
        ))
    }
}

/// A directory for one compilation, gone at its end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(inside: &Path) -> io::Result<Scratch> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let nth = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = inside.join(format!("work-{}-{nth}", process::id()));
        // What a killed process of this number left.
        let _ = fs::remove_dir_all(&path);
        fs::create_dir(&path).map(|()| Scratch(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    struct Place(PathBuf);

    impl Place {
        fn new(test: &str) -> Place {
            Place(env::temp_dir().join(format!("mete-cache-{}-{test}", process::id())))
        }
    }

    impl Drop for Place {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn klog_8_compiled_programs_are_made_once_and_only_their_user_can_enter() -> Result<(), KernelError> {
        let place = Place::new("once");
        let cache = Cache::at(place.0.join("a/b"));
        let make = |_: &Path| Ok(b"object".to_vec());
        assert_eq!(cache.get(7, make)?, b"object");
        assert_eq!(cache.get(7, |_| panic!("it is kept"))?, b"object");
        assert_eq!(cache.get(8, |_| Ok(Vec::new()))?, b"");
        let mode = fs::metadata(&cache.0).map(|found| found.permissions().mode() & 0o777);
        assert_eq!(mode.ok(), Some(0o700));
        assert_eq!(fs::read_dir(&cache.0).map(Iterator::count).ok(), Some(2), "nothing else is left");
        Ok(())
    }

    #[test]
    fn klog_8_compiled_programs_are_not_taken_from_where_others_may_write() -> io::Result<()> {
        let place = Place::new("others");
        fs::create_dir(&place.0)?;
        fs::set_permissions(&place.0, fs::Permissions::from_mode(0o777))?;
        let error = Cache::at(&place.0).get(7, |_| panic!("nothing is made there"));
        assert!(matches!(error, Err(KernelError::Cache { .. })), "{error:?}");
        Ok(())
    }
}
