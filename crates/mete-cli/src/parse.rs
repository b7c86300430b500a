//! Parsers of the values of options that name policies and domains.

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::error::ErrorKind;
use mete_base::nearest::question;
use mete_command::command_line::Mistake;
use mete_policy::CATALOG;
use mete_sched::{DomainSpec, Domains};

/// The name of a policy. The error for an unknown name lists the policies, and says which one may have been meant.
pub fn policy(name: &str) -> Result<String, String> {
    known_policy(name, CATALOG.iter().map(|entry| entry.name))
}

/// A name of a policy, if it is among `known`.
pub fn known_policy(name: &str, known: impl Iterator<Item = &'static str>) -> Result<String, String> {
    let known: Vec<_> = known.collect();
    if known.contains(&name) {
        return Ok(name.to_owned());
    }
    let meant = question(name, known.iter().copied());
    Err(format!("there is no policy {name:?}: there are {}{meant}", known.join(", ")))
}

/// A domain. Its selectors may hold any bytes, because names of programs and paths need not be valid UTF-8.
pub fn domain() -> impl TypedValueParser<Value = DomainSpec> {
    OsStringValueParser::new().try_map(|text| DomainSpec::parse(&text))
}

/// Whether each of these domains has a name of its own.
pub fn check_domains(domains: &[DomainSpec]) -> Result<(), Mistake> {
    let made = Domains::new(domains.iter().cloned());
    made.map(drop).map_err(|error| (ErrorKind::ValueValidation, error.to_string()))
}
