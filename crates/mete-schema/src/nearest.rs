//! Which name was meant.

/// The name of `known` that is closest to what was written, if any is close at all.
pub fn nearest<'a>(written: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let written = written.to_lowercase();
    known
        .into_iter()
        .map(|name| (closeness(&written, &name.to_lowercase()), name))
        .filter(|(closeness, _)| *closeness >= 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, name)| name)
}

/// From 0 to 1. One slip of the fingers is close in a short name, too; so is a name that holds the other one
/// whole (`pid` and `old_pid`), or all its parts (`l2_misses` and `l2_cache_misses`).
fn closeness(written: &str, name: &str) -> f64 {
    const CLOSE: f64 = 0.75;
    let similarity =
        strsim::normalized_damerau_levenshtein(written, name).max(strsim::jaro_winkler(written, name) - 0.1);
    let is_long = written.len() >= 3 && name.len() >= 3;
    let has_parts =
        written.contains('_') && written.split('_').all(|part| name.split('_').any(|it| it == part));
    let is_close =
        strsim::damerau_levenshtein(written, name) <= 1 || name.contains(written) || written.contains(name);
    match () {
        () if has_parts => similarity.max(0.95),
        () if is_long && is_close => similarity.max(CLOSE),
        () => similarity,
    }
}

/// ", did you mean `x`?" as help, or what there is if nothing is close and it is little.
pub fn help<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str> + Clone,
    what: &str,
) -> Option<String> {
    const FEW: usize = 12;
    if let Some(name) = nearest(written, known.clone()) {
        return Some(format!("did you mean `{name}`?"));
    }
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
    fn what_was_mistyped_is_found_and_what_is_far_off_is_not() {
        assert_eq!(nearest("SCHEDN", ["SCHEDIN", "SCHEDOUT", "EXIT"]), Some("SCHEDIN"));
        assert_eq!(nearest("Pid", ["pid", "tgid"]), Some("pid"));
        assert_eq!(nearest("l2_misses", ["llc_misses", "l2_cache_misses"]), Some("l2_cache_misses"));
        assert_eq!(nearest("itn", ["uint", "int", "short"]), Some("int"));
        assert_eq!(nearest("zebra", ["pid", "tgid"]), None);
    }
}
