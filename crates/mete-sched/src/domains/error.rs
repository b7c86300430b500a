//! Why domains cannot be set up as asked, and which of them are empty.

use std::fmt;
use std::path::PathBuf;

use super::{FIRST, MAX_DOMAINS, process};

/// Why domains cannot be set up as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DomainError {
    /// The text is no domain at all.
    #[error("{0:?} is no domain: write NAME=SELECTOR, for example web=comm:nginx")]
    Form(String),
    /// The name has letters that could be mistaken for something else.
    #[error(
        "{0:?} cannot be a domain's name: a name has letters, digits and any of - _ . / @, and is no path to . or .."
    )]
    Name(String),
    /// The name belongs to a built-in domain.
    #[error(
        "the domain name {0:?} is taken: \"other\" is what belongs to no domain, \"idle\" is the idle time"
    )]
    Reserved(String),
    /// Two domains have the same name.
    #[error("the domain {0:?} is given twice; give several selectors to one domain as {0}=SELECTOR,SELECTOR")]
    Twice(String),
    /// There are more domains than log areas have room for.
    #[error("{0} domains are too many: log areas have room for {most}", most = MAX_DOMAINS - FIRST.index())]
    TooMany(usize),
    /// The kind of selector is unknown.
    #[error(
        "{0:?} selects nothing: write pid:NUMBER, comm:NAME, exe:PATH, cgroup:PATH, user:NAME or children:NUMBER"
    )]
    Selector(String),
    /// The value does not fit the kind of selector.
    #[error("{text:?} needs {expected}")]
    Value {
        /// What was written.
        text: String,
        /// What should stand there.
        expected: String,
    },
    /// There is no such user.
    #[error(
        "there is no user {name:?} in /etc/passwd; a number works for users that are kept elsewhere{hint}"
    )]
    NoUser {
        /// The name.
        name: String,
        /// What may have been meant.
        hint: String,
    },
    /// There is no such control group.
    #[error(
        "there is no control group {}: give its directory, or its path as /proc/PID/cgroup shows it{hint}",
        process::shown(path.as_os_str())
    )]
    NoCgroup {
        /// What was written.
        path: PathBuf,
        /// What may have been meant.
        hint: String,
    },
    /// No process is selected, and none can be selected later: a process keeps its number for its whole life.
    #[error(
        "the domain {name:?} is empty and stays so: there is no process for {selector}; ps -e -o pid,comm,user \
         shows what runs"
    )]
    NoMatch {
        /// The domain.
        name: String,
        /// The selector.
        selector: String,
    },
    /// No domain has a member.
    #[error(
        "no domain has a process in it: nothing that runs now matches {selectors}; start it first, or see what \
         runs with ps -e -o pid,comm,user{}", hidden(*unread)
    )]
    NoMembers {
        /// The selectors of all domains.
        selectors: String,
        /// The number of processes whose programs this user may not see, if a selector asks for programs.
        unread: usize,
    },
    /// The selected processes belong to an earlier domain.
    #[error(
        "the domain {name:?} is empty: what matches {selector} belongs to {owner:?} already, because a domain \
         that is named earlier takes precedence, and a selector of processes before one of control groups; name {name:?} first, \
         or select fewer processes for {owner:?}"
    )]
    AllTaken {
        /// The domain.
        name: String,
        /// The selector.
        selector: String,
        /// The earlier domain.
        owner: String,
    },
}

/// A domain that has no members yet. A process that matches later belongs to it from then on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EmptyDomain {
    /// The domain.
    pub name: String,
    /// The selectors of the processes that would belong to it.
    pub selectors: String,
    /// The number of processes whose programs this user may not see, if a selector asks for programs.
    pub unread: usize,
}

/// The end of a sentence about processes whose programs this user may not see; empty if there are none.
fn hidden(unread: usize) -> String {
    match unread {
        0 => String::new(),
        _ => format!("; this user may not see which programs {unread} of the processes run: root may"),
    }
}

impl fmt::Display for EmptyDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EmptyDomain { name, selectors, unread } = self;
        write!(
            f,
            "the domain {name:?} is empty so far: nothing that runs now matches {selectors}; what starts later and \
             matches belongs to it{}",
            hidden(*unread)
        )
    }
}
