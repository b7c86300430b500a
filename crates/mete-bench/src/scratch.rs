//! A directory for the files of one measurement.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process};

/// A new directory. When this is dropped, it is removed with all files in it.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Makes the directory, with access for this user only.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn new() -> io::Result<Scratch> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = env::temp_dir().join(format!("mete-bench-{}-{number}", process::id()));
        let mode = 0o700;
        std::os::unix::fs::DirBuilderExt::mode(&mut fs::DirBuilder::new(), mode).create(&path)?;
        Ok(Scratch(path))
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file in the directory.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.0.join(name), text)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // Files that cannot be removed stay in the system's directory for temporary files.
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_a_scratch_directory() {
        let scratch = Scratch::new().unwrap();
        let path = scratch.path().to_owned();
        scratch.write("file", "text").unwrap();
        assert!(path.join("file").exists());
        drop(scratch);
        assert!(!path.exists());
    }
}
