//! A key that a table of TOML does not have.

use crate::nearest::{list, nearest};

/// A key that a table does not have, and those that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownKey {
    /// The key, as it was written.
    pub written: String,
    /// The keys that the table has.
    pub known: Vec<String>,
}

impl UnknownKey {
    /// The key that the reader of TOML has refused; `None` if its message is about something else.
    ///
    /// serde has no typed error: it hands the key and the known ones to the error type of the reader, which
    /// keeps only a message. So they are taken from serde's words, here and nowhere else. The tests below fail
    /// if the words change.
    #[must_use]
    pub fn in_message(message: &str) -> Option<UnknownKey> {
        let (_, rest) = message.split_once("unknown field `")?;
        let (written, known) = rest.split_once('`')?;
        // Between quotes is every second part.
        let known = known.split('`').skip(1).step_by(2).map(str::to_owned).collect();
        Some(UnknownKey { written: written.to_owned(), known })
    }

    /// The end of a sentence: the key that may have been meant, or else those that there are.
    #[must_use]
    pub fn question(&self) -> String {
        let known = || self.known.iter().map(String::as_str);
        match nearest(&self.written, known()) {
            Some(meant) => format!("; did you mean {meant}?"),
            None => format!("; there are {}", list(&known().collect::<Vec<_>>())),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde::de::Error;

    use super::*;

    #[test]
    fn the_words_of_an_unknown_key_are_those_that_serde_has() {
        for known in [&[][..], &["a"], &["a", "b"], &["a", "b", "c"]] {
            let said = toml::de::Error::unknown_field("written", known);
            let expected = UnknownKey {
                written: "written".into(),
                known: known.iter().map(|key| (*key).to_owned()).collect(),
            };
            assert_eq!(UnknownKey::in_message(said.message()), Some(expected), "{said}");
        }
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code, reason = "it is never read successfully")]
    struct Table {
        one: u32,
        other: u32,
    }

    #[test]
    fn a_text_with_an_unknown_key_is_refused_in_these_words_and_other_mistakes_are_not() {
        let said = toml::from_str::<Table>("oen = 1").unwrap_err();
        let expected = UnknownKey { written: "oen".into(), known: vec!["one".into(), "other".into()] };
        assert_eq!(UnknownKey::in_message(said.message()), Some(expected), "{said}");
        for text in ["one = 1", "one = 'x'", "one = 1\none = 1", "one"] {
            let said = toml::from_str::<Table>(text).unwrap_err();
            assert_eq!(UnknownKey::in_message(said.message()), None, "{said}");
        }
    }
}
