//! `mete set` and `mete get`: the parameters of a running recorder.
//!
//! Both use the recorder's parameter files and nothing else, so `mete get` shows what `cat` shows, and `mete set` may
//! do what `echo` may do. A socket beside the files would be a second way in, which had to be guarded like the first
//! one. Recorders are found in the mount table, where a recorder that has ended leaves nothing.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use mete_command::output::Output;
use mete_parameters::{FoundTree, Root, found};
use serde::Serialize;

/// Options of `mete set`.
#[derive(Debug, clap::Args)]
#[command(after_help = SET_EXAMPLES)]
pub struct SetOptions {
    #[command(flatten)]
    which: WhichRecorder,
    /// The parameters to set, in this order
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
    assignments: Vec<(String, String)>,
}

/// Options of `mete get`.
#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetOptions {
    #[command(flatten)]
    which: WhichRecorder,
    /// Print one JSON object for each parameter: see docs/json.md
    #[arg(long)]
    pub json: bool,
    /// The parameters to print; without any, all that can be set
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  sudo mete set enable=0
  sudo mete set SCHEDIN=1 SCHEDOUT=1 TRY_TO_WAKEUP=0
  sudo mete set --recorder trace lowwater=25
  echo 0 > /run/recorder/enable      the same through the file

This works for recorders that were started with --parameters. All parameters are described in
docs/parameters.md.";

const GET_EXAMPLES: &str = "\
Examples:
  sudo mete get
  sudo mete get enable buffer_size
  sudo mete get benchmarks/SCHEDIN   what logging that event costs, in ns
  cat /run/recorder/status           the same through the file";

/// Which recorder.
#[derive(Debug, clap::Args)]
struct WhichRecorder {
    /// The recorder, if several run: the directory of its trace or of its parameters, or its process id
    #[arg(short, long, value_name = "DIR|PID")]
    recorder: Option<PathBuf>,
}

impl WhichRecorder {
    /// The parameters of the recorder that is meant. They are reached through an open descriptor of their root, so they
    /// stay the recorder's even if something else is mounted at the path later.
    ///
    /// Recorders of other users do not count: the kernel lets only their
    /// owners in, and another user could mount files that only look like those of a recorder.
    fn tree(&self) -> anyhow::Result<Root> {
        let user = rustix::process::getuid().as_raw();
        let (trees, of_root): (Vec<_>, Vec<_>) =
            found().context("cannot read the mount table")?.into_iter().partition(|tree| tree.user == user);
        let mut fitting =
            trees.iter().filter(|tree| self.recorder.as_ref().is_none_or(|wanted| is_called(tree, wanted)));
        match (fitting.next(), fitting.next()) {
            (Some(tree), None) => open(tree),
            (Some(_), Some(_)) => bail!("several recorders run; choose one by --recorder: {}", list(&trees)),
            (None, _) if trees.is_empty() && !of_root.is_empty() => {
                bail!("only root's recorders run, and only root may use them; try sudo: {}", list(&of_root))
            }
            (None, _) if trees.is_empty() => {
                bail!("no recorder has its parameters as files; start one with mete record --parameters DIR")
            }
            (None, _) => bail!(
                "no recorder is called {}; there are {}",
                self.recorder.as_deref().unwrap_or(Path::new("so")).display(),
                list(&trees)
            ),
        }
    }
}

fn open(tree: &FoundTree) -> anyhow::Result<Root> {
    tree.open().with_context(|| format!("cannot look into {}", tree.path.display()))
}

fn list(trees: &[FoundTree]) -> String {
    let names = trees.iter().map(|tree| format!("{} (process {})", tree.path.display(), tree.pid));
    names.collect::<Vec<_>>().join(", ")
}

/// Whether `wanted` is the directory of a recorder's parameters, its process id, or the directory of its trace.
fn is_called(tree: &FoundTree, wanted: &Path) -> bool {
    // The directory of a flight recorder's trace does not exist before its first dump.
    let wanted_path = fs::canonicalize(wanted).or_else(|_| std::path::absolute(wanted)).unwrap_or_default();
    if wanted_path == tree.path || wanted.to_str().is_some_and(|text| text.parse() == Ok(tree.pid)) {
        return true;
    }
    let status = open(tree).ok().and_then(|tree| fs::read_to_string(tree.path().join("status")).ok());
    let status = status.unwrap_or_default();
    let trace = status.lines().find_map(|line| line.strip_prefix("trace: ")).map(PathBuf::from);
    trace.is_some_and(|trace| fs::canonicalize(&trace).unwrap_or(trace) == wanted_path)
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if is_name(name) => Ok((name.to_owned(), value.to_owned())),
        _ => Err("it takes a name, =, and a value, such as enable=0".to_owned()),
    }
}

/// Whether this can be a parameter's name. No such name leads out of the directory.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Sets parameters.
pub fn set(options: &SetOptions) -> anyhow::Result<()> {
    let tree = options.which.tree()?;
    options.assignments.iter().try_for_each(|(name, value)| set_one(&tree.path(), name, value))
}

fn set_one(tree: &Path, name: &str, value: &str) -> anyhow::Result<()> {
    let file = File::options().write(true).open(tree.join(name));
    let Err(error) = file.and_then(|mut file| file.write_all(value.as_bytes())) else { return Ok(()) };
    match error.kind() {
        std::io::ErrorKind::NotFound => Err(unknown(tree, name)),
        std::io::ErrorKind::PermissionDenied => Err(anyhow!("{name} can be read only")),
        _ => Err(anyhow!("cannot set {}", refusal(tree, &format!("{name}={value}"), &error))),
    }
}

/// What was asked, and why it was refused. The error number of a system call holds no sentence, but the recorder's file
/// `status` does.
fn refusal(tree: &Path, asked: &str, error: &std::io::Error) -> String {
    let status = fs::read_to_string(tree.join("status")).unwrap_or_default();
    let refused = status.lines().find_map(|line| line.strip_prefix("refused: ")?.strip_prefix(asked));
    let why = refused.and_then(|rest| rest.strip_prefix(": ").map(str::to_owned));
    format!("{asked}: {}", why.unwrap_or_else(|| error.to_string()))
}

fn unknown(tree: &Path, name: &str) -> anyhow::Error {
    let known = plain_files(tree).unwrap_or_default();
    let help = mete_base::nearest::help(name, known.iter().map(String::as_str), "there are");
    anyhow!("there is no parameter {name:?}; {}", help.unwrap_or_else(|| known.join(", ")))
}

/// One line of JSON.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "parameter")]
struct Parameter<'a> {
    name: &'a str,
    value: &'a str,
}

/// Prints parameters.
pub fn get(options: &GetOptions, output: &mut Output) -> anyhow::Result<()> {
    let found = options.which.tree()?;
    let tree = found.path();
    let names = if options.names.is_empty() { settings(&tree)? } else { options.names.clone() };
    for name in &names {
        let value = read(&tree, name)?;
        let value = value.trim_end();
        output.object(&Parameter { name, value })?;
        let is_list = value.contains('\n');
        output.verbatim(if is_list { value.to_owned() } else { format!("{name}={value}") })?;
    }
    Ok(())
}

fn read(tree: &Path, name: &str) -> anyhow::Result<String> {
    if !is_name(name) {
        return Err(unknown(tree, name));
    }
    fs::read_to_string(tree.join(name)).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => unknown(tree, name),
        std::io::ErrorKind::PermissionDenied => anyhow!("{name} can be written only"),
        _ => anyhow!("cannot read {}", refusal(tree, name, &error)),
    })
}

fn settings(tree: &Path) -> anyhow::Result<Vec<String>> {
    Ok(plain_files(tree)?.into_iter().filter(|name| is_setting(&tree.join(name))).collect())
}

/// Whether a parameter can be set and read. The others are a request, a report, and measurements.
fn is_setting(parameter: &Path) -> bool {
    fs::metadata(parameter).is_ok_and(|found| found.permissions().mode() & 0o600 == 0o600)
}

fn plain_files(tree: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(tree).context("cannot look into the recorder's parameters")?;
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    Ok(files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
