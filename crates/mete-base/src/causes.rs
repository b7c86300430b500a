//! An error and its causes as one sentence.

use std::error::Error;

/// The error and the chain of its causes, joined by colons. A cause that an earlier one has quoted already is
/// left out.
pub fn sentence(error: &dyn Error) -> String {
    let mut sentence = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if !sentence.contains(&text) {
            sentence.push_str(": ");
            sentence.push_str(&text);
        }
        next = cause.source();
    }
    sentence
}

#[cfg(test)]
mod tests {
    use std::fmt;

    use super::*;

    /// An error with its text and its cause.
    #[derive(Debug)]
    struct Told(&'static str, Option<Box<Told>>);

    impl fmt::Display for Told {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str(self.0)
        }
    }

    impl Error for Told {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            self.1.as_ref().map(|cause| cause.as_ref() as _)
        }
    }

    #[test]
    fn causes_are_joined_and_none_is_said_twice() {
        let cause = Told("cannot read x: no such file", Some(Box::new(Told("no such file", None))));
        let error = Told("reading x", Some(Box::new(cause)));
        assert_eq!(sentence(&error), "reading x: cannot read x: no such file");
    }
}
