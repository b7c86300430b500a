//! A directory for the files of one measurement.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::{io, process};

use tempfile::{Builder, TempDir};

/// A new directory. When this is dropped, it is removed with all files in it.
#[derive(Debug)]
pub struct Scratch(TempDir);

impl Scratch {
    /// Makes the directory, with access for this user only.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn new() -> io::Result<Scratch> {
        let prefix = format!("mete-bench-{}-", process::id());
        let mut builder = Builder::new();
        builder.prefix(&prefix).permissions(Permissions::from_mode(0o700)).tempdir().map(Scratch)
    }

    /// The directory's path.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// Writes a file in the directory.
    ///
    /// # Errors
    ///
    /// The error of the file system.
    pub fn write(&self, name: &str, text: &str) -> io::Result<()> {
        fs::write(self.path().join(name), text)
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
