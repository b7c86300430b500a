//! Why something could not be measured.

use std::fmt::{self, Display};

/// One sentence for people that says what is missing or refused. It becomes the note of a row without a
/// value. No reason is fatal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason(String);

impl Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Reason {
    /// A reason with this text.
    pub fn new(text: impl Into<String>) -> Reason {
        Reason(text.into())
    }

    /// The text of an error as a reason, on one line.
    pub fn from_error(error: impl Display) -> Reason {
        Reason(error.to_string().replace('\n', "; "))
    }

    /// A function for `map_err` whose reason says what was tried, and the error.
    pub fn while_trying<E: Display>(what: impl Into<String>) -> impl FnOnce(E) -> Reason {
        let what = what.into();
        move |error| Reason(format!("cannot {what}: {error}"))
    }
}

/// What was made, to change it; or else a copy of the reason why it could not be made, which stays for the
/// next call.
pub fn made<T>(made: &mut Result<T, Reason>) -> Result<&mut T, Reason> {
    made.as_mut().map_err(|reason| reason.clone())
}

/// Any error is a reason. So a reason is no error itself: [`Reason::from_error`] takes it where one is
/// needed.
impl<E: std::error::Error> From<E> for Reason {
    fn from(error: E) -> Reason {
        Reason::from_error(error)
    }
}
