//! Failures, as one sentence.

use std::io::Write;

use crate::terminal::harmless;

/// Says on stderr what went wrong. If nobody can hear it, the exit status still tells.
pub fn tell(error: &anyhow::Error) {
    say(&sentence(error));
}

/// Something that people should know, and that does not stop the work.
pub fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "mete: {}", harmless(text));
}

/// The chain of causes, joined. A cause that its effect has quoted already is not said twice.
pub fn sentence(error: &anyhow::Error) -> String {
    let mut sentence = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if sentence.contains(&cause) {
            continue;
        }
        if !sentence.is_empty() {
            sentence.push_str(": ");
        }
        sentence.push_str(&cause);
    }
    sentence
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::sentence;

    #[test]
    fn causes_are_joined_and_none_is_said_twice() {
        let error = anyhow!("no such file").context("cannot read x: no such file").context("reading x");
        assert_eq!(sentence(&error), "reading x: cannot read x: no such file");
    }
}
