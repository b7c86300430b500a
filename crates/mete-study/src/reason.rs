//! Why something could not be measured.

use std::fmt::Display;

/// One sentence for people: what is missing or refused. It becomes the note of a row without a
/// value; nothing here is fatal.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Reason(String);

impl Reason {
    /// A reason in these words.
    pub fn new(text: impl Into<String>) -> Reason {
        Reason(text.into())
    }

    /// A reason that an error gives, on one line.
    pub fn from_error(error: impl Display) -> Reason {
        Reason(error.to_string().replace('\n', "; "))
    }

    /// For `map_err`: what was tried, and the error.
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
    mete_trace::RecordError,
);
