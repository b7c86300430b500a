//! Man pages and shell completions, made from the command line's own description.

use std::io::Write;
use std::path::PathBuf;

use clap::ValueEnum;
use clap::builder::PossibleValuesParser;
use clap_complete::{Generator, Shell};
use mete_base::draft;
use mete_command::output::Output;
use mete_policy::CATALOG;
use mete_schema::shipped;
use mete_shares::SharePolicy;
use mete_sim::scenario;

/// Options of `mete generate`.
#[derive(Debug, clap::Args)]
pub struct GenerateOptions {
    /// What to write
    #[arg(value_enum)]
    what: Generated,
    /// Directory to write into; it is made if it does not exist
    #[arg(long, default_value = ".")]
    out: PathBuf,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Generated {
    /// A man page for each subcommand
    Man,
    /// Completions for each shell
    Completions,
}

/// Writes the files for a command line, and names them.
pub fn run(options: &GenerateOptions, command: clap::Command, output: &mut Output) -> anyhow::Result<()> {
    let files = match options.what {
        Generated::Man => man_pages(command)?,
        Generated::Completions => completions(command)?,
    };
    draft::write_all(&options.out, files.iter().map(|(name, text)| (name.as_str(), text.as_str())))?;
    files.iter().try_for_each(|(name, _)| output.text(options.out.join(name).display().to_string()))
}

/// The name of a file, and what is to be in it.
type GeneratedFile = (String, String);

fn man_pages(mut command: clap::Command) -> anyhow::Result<Vec<GeneratedFile>> {
    command.build();
    let mut pages = Vec::new();
    add_pages(&command, &mut pages)?;
    Ok(pages)
}

/// The page of a command, then those of its subcommands.
fn add_pages(command: &clap::Command, pages: &mut Vec<GeneratedFile>) -> anyhow::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name());
    pages.push((format!("{name}.1"), String::from_utf8(page(command)?)?));
    let mut shown = command.get_subcommands().filter(|command| is_shown(command));
    shown.try_for_each(|command| add_pages(command, pages))
}

/// Whether a command has a page. The subcommand `help` has none: the help on a command is the page of that
/// command.
fn is_shown(command: &clap::Command) -> bool {
    !command.is_hide_set() && command.get_name() != "help"
}

/// The text of a page. The examples keep their lines.
fn page(command: &clap::Command) -> std::io::Result<Vec<u8>> {
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(is_shown) {
        man.render_subcommands_section(&mut page)?;
    }
    let examples = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    writeln!(page, ".SH EXAMPLES\n.nf")?;
    examples.trim_start_matches("Examples:").trim_start_matches('\n').lines().try_for_each(|line| {
        // Roff would interpret backslashes, and dots and quotes at the beginning of a line.
        let guard = if line.starts_with(['.', '\'']) { "\\&" } else { "" };
        writeln!(page, "{guard}{}", line.replace('\\', "\\e").replace('-', "\\-"))
    })?;
    writeln!(page, ".fi")?;
    Ok(page)
}

/// Adds the names that arguments take, for completions. Only completions get this list: the program itself
/// takes more than names, such as files, and its own parser answers a wrong name with a similar one.
fn with_values(command: clap::Command) -> clap::Command {
    let policies: Vec<_> = CATALOG.iter().map(|entry| entry.name).collect();
    let live: Vec<_> = SharePolicy::names().chain(["affinity"]).collect();
    let scenarios: Vec<_> = scenario::SHIPPED.iter().map(|shipped| shipped.name).collect();
    let schemata: Vec<_> = shipped::SHIPPED.iter().map(|shipped| shipped.name).collect();
    let values = [
        ("sim", "policy", &policies),
        ("replay", "policy", &policies),
        ("schedule", "policy", &live),
        ("sim", "scenario", &scenarios),
        ("record", "schema", &schemata),
    ];
    values.into_iter().fold(command, |command, (subcommand, argument, names)| {
        let parser = PossibleValuesParser::new(names);
        command.mut_subcommand(subcommand, |of| of.mut_arg(argument, |of| of.value_parser(parser)))
    })
}

fn completions(command: clap::Command) -> anyhow::Result<Vec<GeneratedFile>> {
    let mut command = with_values(command);
    let one = |&shell: &Shell| {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command, "mete", &mut text);
        Ok((shell.file_name("mete"), String::from_utf8(text)?))
    };
    Shell::value_variants().iter().map(one).collect()
}
