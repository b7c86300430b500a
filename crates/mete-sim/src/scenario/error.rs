//! What is wrong with a scenario, where, and what would be right.

use std::ops::Range;

use mete_base::unknown_key::UnknownKey;

/// Why a scenario cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScenarioError {
    /// The text is not a scenario.
    #[error("{file}, line {line}: {what}")]
    Wrong {
        /// The file, or the name of the scenario that comes with the program.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The key, what is wrong with it, and what is allowed.
        what: String,
        /// The key, if there is none of that name.
        unknown: Option<UnknownKey>,
    },
    /// The file cannot be read.
    #[error("cannot read the scenario {file}: {reason}")]
    Unreadable {
        /// The file.
        file: String,
        /// The system's answer.
        reason: String,
    },
    /// There is no file and no shipped scenario of that name.
    #[error("there is no scenario {name:?}: give a file, or one of {known}")]
    Unknown {
        /// The name that was asked for.
        name: String,
        /// The scenarios that come with the program.
        known: String,
    },
    /// A setting from the command line does not fit.
    #[error("--set {setting}: {what}")]
    Setting {
        /// The setting as it was given.
        setting: String,
        /// What is wrong with it.
        what: String,
        /// The key, if there is none of that name.
        unknown: Option<UnknownKey>,
    },
}

impl ScenarioError {
    /// The key that there is not, if that is what is wrong.
    pub fn unknown_key(&self) -> Option<&UnknownKey> {
        match self {
            ScenarioError::Wrong { unknown, .. } | ScenarioError::Setting { unknown, .. } => unknown.as_ref(),
            ScenarioError::Unreadable { .. } | ScenarioError::Unknown { .. } => None,
        }
    }
}

/// A mistake, and its place in the text.
pub(super) struct Fault {
    pub span: Range<usize>,
    pub what: String,
    /// The key, if there is none of that name.
    pub unknown: Option<UnknownKey>,
}

impl Fault {
    pub(super) fn new(span: Range<usize>, what: impl Into<String>) -> Fault {
        Fault { span, what: what.into(), unknown: None }
    }

    /// The error for the user, with the number of the line.
    pub(super) fn in_file(self, file: &str, text: &str) -> ScenarioError {
        let before = text.get(..self.span.start.min(text.len())).unwrap_or(text);
        let line = 1 + before.matches('\n').count();
        ScenarioError::Wrong { file: file.to_owned(), line, what: self.what, unknown: self.unknown }
    }
}
