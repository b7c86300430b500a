//! Parsers of the values of options that name policies and domains.

use clap::builder::{OsStringValueParser, PathBufValueParser, TypedValueParser};
use clap::error::ErrorKind;
use mete_base::nearest::nearest;
use mete_command::command_line::Mistake;
use mete_policy::{CATALOG, Entry, by_name};
use mete_sched::domains::SharedDomain;
use mete_sched::{DomainSpec, Domains};
use mete_shares::{Config, SharePolicy};

/// The name of a policy. The error for an unknown name lists the policies, and says which one may have been
/// meant.
pub fn policy(name: &str) -> Result<&'static Entry, String> {
    known_policy(name, CATALOG.iter().map(|entry| entry.name))?;
    // It is among the names above, so this error is never seen.
    by_name(name).ok_or_else(|| format!("there is no policy {name:?}"))
}

/// A name of a policy, if it is among `known`.
pub fn known_policy(name: &str, known: impl Iterator<Item = &'static str>) -> Result<String, String> {
    let known: Vec<_> = known.collect();
    if name.is_empty() {
        let known = known.join(", ");
        return Err(format!(
            "there is nothing where a name belongs, as between two commas: there are {known}"
        ));
    }
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(match nearest(name, known.iter().copied()) {
        Some(meant) => format!("there is no policy {name:?}; did you mean {meant}? mete sim --list has all"),
        None => format!("there is no policy {name:?}: there are {}", known.join(", ")),
    })
}

/// A policy that can take effect on a running machine.
#[derive(Clone, Copy, Debug)]
pub enum LivePolicy {
    /// It places clients.
    Affinity,
    /// It chooses who runs.
    Shares(SharePolicy),
}

/// A policy that can take effect, by its name.
pub fn live_policy(name: &str) -> Result<LivePolicy, String> {
    known_policy(name, SharePolicy::names().chain(["affinity"]))?;
    Ok(SharePolicy::named(name).map_or(LivePolicy::Affinity, LivePolicy::Shares))
}

/// A domain. Its selectors may hold any bytes, because names of programs and paths need not be valid UTF-8.
pub fn domain() -> impl TypedValueParser<Value = DomainSpec> {
    OsStringValueParser::new().try_map(|text| DomainSpec::parse(&text))
}

/// A file with shares.
pub fn config() -> impl TypedValueParser<Value = Config> {
    PathBufValueParser::new().try_map(|path| Config::read(&path))
}

/// Whether each of these domains has a name of its own.
pub fn check_domains(domains: &[DomainSpec]) -> Result<(), Mistake> {
    let made = Domains::new(domains.iter().cloned());
    made.map(drop).map_err(|error| (ErrorKind::ValueValidation, error.to_string()))
}

/// A domain, with a share behind its selectors or without one.
pub fn shared_domain() -> impl TypedValueParser<Value = SharedDomain> {
    OsStringValueParser::new().try_map(|text| SharedDomain::parse(&text))
}
