//! `mete sim --list`: the scenarios that come with the program, and the policies.

use mete_command::output::Output;
use mete_command::table::{Head, Table};
use mete_policy::CATALOG;
use mete_sim::Scenario;
use mete_sim::scenario::SHIPPED;
use serde::Serialize;

/// One line of `--list --json`.
#[derive(Serialize)]
struct Listed<'a> {
    kind: &'static str,
    name: &'a str,
    about: &'a str,
}

/// Prints them.
pub fn list(output: &mut Output) -> anyhow::Result<()> {
    let mut scenarios = Table::new([Head::Name("scenario"), Head::Text("shows")]);
    for shipped in SHIPPED {
        let scenario = Scenario::parse(shipped.name, shipped.text, &[])?;
        output.object(&Listed { kind: "scenario", name: shipped.name, about: &scenario.about })?;
        scenarios.row([shipped.name.to_owned(), scenario.about]);
    }
    let mut policies = Table::new([Head::Name("policy"), Head::Text("is")]);
    for entry in CATALOG {
        output.object(&Listed { kind: "policy", name: entry.name, about: entry.about })?;
        policies.row([entry.name, entry.about].map(str::to_owned));
    }
    output.text(scenarios.text())?;
    output.text(String::new())?;
    output.text(policies.text())
}
