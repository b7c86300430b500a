//! `mete set` and `mete get`: the parameters of a running recorder.
//!
//! They are its files, and nothing else: what `mete get` shows and `mete set` may is what `cat` and `echo` would. A
//! socket beside the files would be a second way in, to be guarded like the first one. Recorders are found in the
//! mount table, where nothing can be left over from one that has ended.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use mete_parameters::{FoundTree, Root, found};
use serde::Serialize;

use crate::output::Output;

/// Options of `mete set`.
#[derive(Debug, clap::Args)]
#[command(after_help = SET_EXAMPLES)]
pub struct SetOptions {
    #[command(flatten)]
    which: Which,
    /// What to set, in this order
    #[arg(required = true, value_name = "NAME=VALUE", value_parser = assignment)]
    assignments: Vec<(String, String)>,
}

/// Options of `mete get`.
#[derive(Debug, clap::Args)]
#[command(after_help = GET_EXAMPLES)]
pub struct GetOptions {
    #[command(flatten)]
    which: Which,
    /// Print one JSON object for each parameter: see docs/json.md
    #[arg(long)]
    pub json: bool,
    /// Which parameters; all that cost nothing to read without any
    #[arg(value_name = "NAME")]
    names: Vec<String>,
}

const SET_EXAMPLES: &str = "\
Examples:
  sudo mete set enable=0
  sudo mete set SCHEDIN=1 SCHEDOUT=1 TRY_TO_WAKEUP=0
  sudo mete set --recorder trace lowwater=25
  echo 0 > /run/recorder/enable      the same by the files, wherever they are

A recorder that was started with --parameters can be asked. docs/parameters.md says what there is.";

const GET_EXAMPLES: &str = "\
Examples:
  sudo mete get
  sudo mete get enable buffer_size
  sudo mete get benchmarks/SCHEDIN   what logging that event costs, in ns
  cat /run/recorder/status           the same by the files, wherever they are";

/// Which recorder.
#[derive(Debug, clap::Args)]
struct Which {
    /// Which recorder, where several run: its trace or parameters, or the number of its process
    #[arg(short, long, value_name = "DIR|PID")]
    recorder: Option<PathBuf>,
}

/// The parameters of a recorder, by a descriptor of their root: whatever is at its path by now, this is the recorder's.
struct Tree {
    root: Root,
}

impl Tree {
    fn files(&self) -> PathBuf {
        self.root.path()
    }
}

impl Which {
    /// The parameters of the recorder that is meant. Those of other users are none: the kernel lets only their owners
    /// in, and what they look like is for their owners to choose.
    fn tree(&self) -> anyhow::Result<Tree> {
        let user = rustix::process::getuid().as_raw();
        let (trees, of_root): (Vec<_>, Vec<_>) =
            found().context("cannot read the mount table")?.into_iter().partition(|tree| tree.user == user);
        let fits = |tree: &&FoundTree| self.recorder.as_ref().is_none_or(|wanted| is_called(tree, wanted));
        let mut fitting = trees.iter().filter(fits);
        match (fitting.next(), fitting.next()) {
            (Some(tree), None) => open(tree),
            (Some(_), Some(_)) => bail!("several recorders run; choose one by --recorder: {}", list(&trees)),
            (None, _) if trees.is_empty() && !of_root.is_empty() => {
                bail!("only root's recorders run, and only root may ask them; try sudo: {}", list(&of_root))
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

fn open(tree: &FoundTree) -> anyhow::Result<Tree> {
    let root = tree.open().with_context(|| format!("cannot look into {}", tree.path.display()))?;
    Ok(Tree { root })
}

fn list(trees: &[FoundTree]) -> String {
    let one = |tree: &FoundTree| format!("{} (process {})", tree.path.display(), tree.pid);
    trees.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// By its parameters' directory, its number, or its trace's directory.
fn is_called(tree: &FoundTree, wanted: &Path) -> bool {
    let wanted_path = fs::canonicalize(wanted).or_else(|_| std::path::absolute(wanted)).unwrap_or_default();
    if wanted_path == tree.path || wanted.to_str().is_some_and(|text| text.parse() == Ok(tree.pid)) {
        return true;
    }
    let status = open(tree).ok().and_then(|tree| fs::read_to_string(tree.files().join("status")).ok());
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

/// No name leads out of the directory.
fn is_name(name: &str) -> bool {
    !name.is_empty() && !name.starts_with('/') && name.split('/').all(|part| !matches!(part, "" | "." | ".."))
}

/// Sets parameters.
pub fn set(options: &SetOptions) -> anyhow::Result<()> {
    let tree = options.which.tree()?;
    options.assignments.iter().try_for_each(|(name, value)| set_one(&tree.files(), name, value))
}

fn set_one(tree: &Path, name: &str, value: &str) -> anyhow::Result<()> {
    let write = |mut file: File| file.write_all(value.as_bytes());
    let Err(error) = File::options().write(true).open(tree.join(name)).and_then(write) else { return Ok(()) };
    match error.kind() {
        std::io::ErrorKind::NotFound => Err(unknown(tree, name)),
        std::io::ErrorKind::PermissionDenied => Err(anyhow!("{name} can be read only")),
        _ => Err(anyhow!("cannot set {}", refusal(tree, &format!("{name}={value}"), &error))),
    }
}

/// What was asked, and why it is refused: a system call has no room for a sentence, and `status` has.
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
struct Parameter<'a> {
    kind: &'static str,
    name: &'a str,
    value: &'a str,
}

/// Prints parameters.
pub fn get(options: &GetOptions, output: &mut Output) -> anyhow::Result<()> {
    let found = options.which.tree()?;
    let tree = found.files();
    let names = if options.names.is_empty() { settings(&tree)? } else { options.names.clone() };
    for name in &names {
        let value = read(&tree, name)?;
        let value = value.trim_end();
        output.object(&Parameter { kind: "parameter", name, value })?;
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

/// What can be set and read; the others are a request, a report, and measurements.
fn settings(tree: &Path) -> anyhow::Result<Vec<String>> {
    let is_setting = |name: &String| {
        use std::os::unix::fs::PermissionsExt;
        fs::metadata(tree.join(name)).is_ok_and(|found| found.permissions().mode() & 0o600 == 0o600)
    };
    Ok(plain_files(tree)?.into_iter().filter(is_setting).collect())
}

fn plain_files(tree: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(tree).context("cannot look into the recorder's parameters")?;
    let files = entries.flatten().filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()));
    Ok(files.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect())
}
