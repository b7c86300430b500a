//! `mete doctor`: what this machine can do, what depends on it, and how to get what is missing
//! (design decision D11).

mod machine;
mod peers;
mod probes;
mod programs;
mod shares;

use mete_command::output::Output;
use mete_command::table::{Head, Table};
use mete_kernel::Capability;
use serde::Serialize;

/// Options of `mete doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct DoctorOptions {
    /// Print one JSON object for each capability: see docs/json.md
    #[arg(long)]
    pub json: bool,
}

const EXAMPLES: &str = "\
Examples:
  mete doctor                what an ordinary user can do here
  sudo mete doctor           what root can do here
  mete doctor --json | jq -r 'select(.present | not) | .name'

The exit status is 0 even if something is missing: this is a report.";

/// Capabilities that serve one purpose.
struct Group {
    name: &'static str,
    capabilities: Vec<Capability>,
}

/// One line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "capability")]
struct CapabilityObject<'a> {
    name: &'a str,
    group: &'a str,
    present: bool,
    finding: &'a str,
    needed_for: String,
    remedy: &'a str,
}

/// Looks for each capability, and prints what was found.
pub fn run(_options: &DoctorOptions, output: &mut Output) -> anyhow::Result<()> {
    let groups = [
        Group { name: "the machine", capabilities: machine::capabilities() },
        Group { name: "the kernel component", capabilities: mete_kernel::capabilities() },
        Group { name: "shares of processor time", capabilities: shares::capabilities() },
        Group { name: "probes in programs", capabilities: probes::capabilities() },
        Group { name: "programs beside mete", capabilities: programs::capabilities() },
        Group { name: "peers of the bench", capabilities: peers::capabilities() },
    ];
    let mut table =
        Table::new([Head::Name(""), Head::Name("what"), Head::Text("found"), Head::Text("needed for")]);
    for group in &groups {
        print_objects(group, output)?;
        fill(&mut table, group);
    }
    output.text(table.text())?;
    print_remedies(&groups, output)?;
    output.text(unneeded(&groups))
}

fn print_objects(group: &Group, output: &mut Output) -> anyhow::Result<()> {
    group.capabilities.iter().try_for_each(|capability| {
        output.object(&CapabilityObject {
            name: capability.name,
            group: group.name,
            present: capability.is_present(),
            finding: finding(capability),
            needed_for: capability.needed_for.to_string(),
            remedy: capability.remedy,
        })
    })
}

fn fill(table: &mut Table, group: &Group) {
    if !table.is_empty() {
        table.row([const { String::new() }; 4]);
    }
    table.row([String::new(), group.name.to_uppercase(), String::new(), String::new()]);
    for capability in group.capabilities.iter().filter(|found| found.is_needed()) {
        let mark = if capability.is_present() { "yes" } else { "no" };
        let need = capability.needed_for.to_string();
        table.row([mark, capability.name, finding(capability), &need].map(str::to_owned));
    }
}

fn print_remedies(groups: &[Group], output: &mut Output) -> anyhow::Result<()> {
    let all = groups.iter().flat_map(|group| &group.capabilities);
    let missing = all.filter(|found| !found.is_present() && found.is_needed());
    let mut table = Table::new([Head::Name("what is missing"), Head::Text("how to get it")]);
    for capability in missing {
        table.row([capability.name, capability.remedy].map(str::to_owned));
    }
    if table.is_empty() {
        output.text("\nNothing is missing.")
    } else {
        output.text(format!("\n{}", table.text()))
    }
}

fn unneeded(groups: &[Group]) -> String {
    let all = groups.iter().flat_map(|group| &group.capabilities);
    let words = all
        .filter(|found| !found.is_needed())
        .map(|found| format!("{} ({})", found.name, if found.is_present() { "present" } else { "missing" }));
    format!("\nNeeded for nothing yet: {}", words.collect::<Vec<_>>().join(", "))
}

fn finding(capability: &Capability) -> &str {
    match &capability.finding {
        Ok(found) | Err(found) => found,
    }
}
