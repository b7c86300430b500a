//! Hints about what the user may have meant with a selector that can never select anything.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::process::shown;

/// The names with the most similar spelling, as text for people.
pub(super) fn nearest<'a>(name: &[u8], names: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let near = mete_base::nearest::few(name, names).into_iter();
    near.map(|name| shown(OsStr::from_bytes(name))).collect()
}

/// The end of a sentence that suggests these names; empty if there are none.
pub(super) fn did_you_mean(names: Vec<String>) -> String {
    if names.is_empty() { String::new() } else { format!("; did you mean {}?", names.join(" or ")) }
}

/// What was expected, for a path that names no program.
pub(super) fn program(path: &OsStr) -> String {
    let expected = "the path of a program that exists, such as exe:/usr/bin/sleep";
    let path = Path::new(path);
    if path.components().count() == 1 && path.is_relative() {
        // A name without a directory: the user may have meant the program that a shell would run.
        let directories = env::var_os("PATH").unwrap_or_default();
        let found =
            env::split_paths(&directories).map(|directory| directory.join(path)).find(|file| file.is_file());
        if let Some(found) = found {
            return format!("the path of a program: exe:{}", shown(found.as_os_str()));
        }
    }
    let Some((directory, name)) = path.parent().zip(path.file_name()) else { return expected.into() };
    let entries: Vec<_> =
        std::fs::read_dir(directory).into_iter().flatten().flatten().map(|e| e.file_name()).collect();
    let near = nearest(name.as_bytes(), entries.iter().map(|name| name.as_bytes()));
    let near = near.into_iter().map(|name| format!("{}/{name}", shown(directory.as_os_str())));
    format!("{expected}{}", did_you_mean(near.collect()))
}
