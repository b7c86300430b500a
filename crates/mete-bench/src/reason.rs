//! Why something could not be measured.

use std::fmt::Display;

/// One sentence for people that says what is missing or refused. It becomes the note of a row without a value. No
/// reason is fatal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Reason(String);

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

macro_rules! from {
    ($($error:ty),+ $(,)?) => {$(
        impl From<$error> for Reason {
            fn from(error: $error) -> Reason {
                Reason::from_error(error)
            }
        }
    )+};
}

from!(
    std::io::Error,
    mete_kernel::KernelError,
    mete_log::PlanError,
    mete_log::ReadError,
    mete_log::RegionError,
    mete_probe::attach::AttachError,
    mete_record::RecordingError,
    mete_trace::NamedTraceError,
    mete_trace::RecordError,
);
