//! Hints about what the user may have meant with a selector that can never select anything.

use std::env;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::process::shown;

/// Divisor: a name is near if it differs by at most this part of its letters.
const NEAR: usize = 3;
/// The largest number of names in a hint: as many as a user will read.
const MOST: usize = 3;

/// The names with the most similar spelling.
pub(super) fn nearest<'a>(name: &[u8], names: impl Iterator<Item = &'a [u8]>) -> Vec<String> {
    let limit = (name.len() / NEAR).clamp(1, 4);
    let distant = names.map(|other| (distance(name, other), other));
    let mut near: Vec<_> = distant.filter(|(distance, _)| *distance <= limit).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, name)| shown(OsStr::from_bytes(name))).collect()
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

/// The number of bytes that must be changed, inserted or removed to make one name of the other (Levenshtein's
/// distance).
fn distance(one: &[u8], other: &[u8]) -> usize {
    // One row of the table of distances between beginnings of the names. The next row overwrites it; `diagonal` keeps
    // the one value that is still needed.
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (nth, byte) in one.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], nth + 1);
        for (at, other_byte) in other.iter().enumerate() {
            let changed = diagonal + usize::from(byte != other_byte);
            diagonal = row[at + 1];
            row[at + 1] = changed.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_names_come_first() {
        let names = [&b"nginx"[..], b"nginx2", b"apache", b"ngnix"];
        assert_eq!(nearest(b"ngin", names.into_iter()), ["nginx"]);
        assert_eq!(nearest(b"nginx", names.into_iter())[0], "nginx");
        assert_eq!(distance(b"kitten", b"sitting"), 3);
    }
}
