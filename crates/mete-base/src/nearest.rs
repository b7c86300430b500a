//! Finds the name that an author may have meant.

/// Names that are less close than this are not suggested.
const CLOSE: f64 = 0.75;
/// Divisor: of names that may be any bytes, one is near if it differs by at most this part of its letters.
const NEAR: usize = 3;
/// The largest number of names that [`few`] gives: as many as a user will read.
const MOST: usize = 3;

/// The name of `known` that is closest to what was written, if one is close enough.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|name| (closeness(&written, &name.to_lowercase()), name))
        .filter(|(closeness, _)| *closeness >= CLOSE)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// The names with the most similar spelling, at most three, the most similar first. Other users chose these
/// names, so that they may be any bytes. Names that only contain one another are not near: of many processes
/// or control groups, most would be.
pub fn few<'a>(written: &[u8], known: impl IntoIterator<Item = &'a [u8]>) -> Vec<&'a [u8]> {
    let limit = (written.len() / NEAR).clamp(1, 4);
    // Two letters that changed places count as one mistake.
    let distant = known.into_iter().map(|name| (strsim::generic_damerau_levenshtein(written, name), name));
    let mut near: Vec<_> = distant.filter(|(distance, _)| *distance <= limit).collect();
    near.sort_unstable();
    near.dedup();
    near.into_iter().take(MOST).map(|(_, name)| name).collect()
}

/// The end of a sentence about an unknown name: `; did you mean x?`, or nothing if no name is close enough.
pub fn question<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    nearest(written, known).map_or_else(String::new, |meant| format!("; did you mean {meant}?"))
}

/// How close two names are, from 0 to 1. A name with one typing mistake is close even if it is short. A name
/// is close to one that it contains (`old_pid` and `pid`), and to one whose parts it has all
/// (`l2_cache_misses` and `l2_misses`).
fn closeness(written: &str, name: &str) -> f64 {
    let similarity =
        strsim::normalized_damerau_levenshtein(written, name).max(strsim::jaro_winkler(written, name) - 0.1);
    let is_long = written.len() >= 3 && name.len() >= 3;
    let has_parts =
        written.contains('_') && written.split('_').all(|part| name.split('_').any(|it| it == part));
    let is_close =
        strsim::damerau_levenshtein(written, name) <= 1 || name.contains(written) || written.contains(name);
    match () {
        // Preferred to names that are only similar.
        () if has_parts => similarity.max(0.95),
        () if is_long && is_close => similarity.max(CLOSE),
        () => similarity,
    }
}

/// Help for a name that is unknown: "did you mean `x`?", or a list of all known names, introduced by `what`,
/// if none is close and the list is short.
pub fn help<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    what: &str,
) -> Option<String> {
    const FEW: usize = 12;
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
    // One more than fits shows that the list is too long.
    let names: Vec<_> = known.into_iter().take(FEW + 1).collect();
    (1..=FEW).contains(&names.len()).then(|| format!("{what}: {}", list(&names)))
}

/// `a`, `b` and `c`.
pub fn list(names: &[&str]) -> String {
    let quoted: Vec<_> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.as_slice() {
        [] => String::new(),
        [one] => one.clone(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistyped_names_are_found_and_names_far_off_are_not() {
        assert_eq!(nearest("SCHEDN", ["SCHEDIN", "SCHEDOUT", "EXIT"]), Some("SCHEDIN"));
        assert_eq!(nearest("Pid", ["pid", "tgid"]), Some("pid"));
        assert_eq!(nearest("l2_misses", ["llc_misses", "l2_cache_misses"]), Some("l2_cache_misses"));
        assert_eq!(nearest("itn", ["uint", "int", "short"]), Some("int"));
        assert_eq!(nearest("zebra", ["pid", "tgid"]), None);
    }

    #[test]
    fn the_nearest_names_come_first() {
        let names = [&b"nginx"[..], b"nginx2", b"apache", b"ngnix"];
        assert_eq!(few(b"ngin", names), [b"nginx"]);
        assert_eq!(few(b"nginx", names)[0], b"nginx");
        // Three bytes apart: near to a name of nine letters, and not to one of six.
        assert_eq!(few(b"kitten", [&b"sitting"[..]]), [&b""[..]; 0]);
        assert_eq!(few(b"kittenish", [&b"sittingish"[..]]), [b"sittingish"]);
        assert_eq!(few(b"wbe", [&b"web"[..]]), [b"web"]);
    }
}
