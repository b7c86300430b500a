//! `mete convert`: a trace for other programs.

use std::fs;
use std::io::{IsTerminal, Write, stdout};
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use mete_base::draft::Draft;
use mete_base::folder_draft::FolderDraft;
use mete_command::command_line::Mistake;
use mete_command::progress::Progress;
use mete_command::{failure, interrupt, output};
use mete_convert::{
    ArrowFile, Converted, Csv, Ctf, CtfVersion, Format, JsonLines, Parquet, Perfetto, Perl, Position, Text,
    convert_while,
};
use mete_trace::description::{FILE_NAME, FORMER_FILE_NAME};
use mete_trace::{Filter, Trace};

use super::choice::TraceChoice;
use super::{status, tell_circumstances, tell_errors};

/// Options of `mete convert`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct ConvertOptions {
    #[command(flatten)]
    choice: TraceChoice,
    /// The form to convert to
    #[arg(long, value_name = "FORM")]
    to: Form,
    /// Where to write, instead of standard output; a file there is replaced; a new directory for CTF
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

const EXAMPLES: &str = "\
Examples:
  mete convert trace --to perfetto -o trace.pftrace   open it at ui.perfetto.dev
  mete convert trace --to parquet -o trace.parquet
  mete convert trace --to ctf1 -o trace.ctf
  babeltrace2 trace.ctf
  mete convert trace --to csv --event SCHEDIN -o schedin.csv
  mete convert trace --to json | jq -r 'select(.kind == \"lost\") | .events'

docs/convert.md describes what each form holds and how it shows losses. A file gets its name only when it
is complete.

The exit status is 3 if a part of the trace cannot be read; everything else is converted all the same. It
is 1 if nothing was written.";

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Form {
    /// Tracks of processors and threads, for ui.perfetto.dev
    Perfetto,
    /// One table, for DuckDB, polars, pandas, Spark
    Parquet,
    /// The same table in the Arrow IPC file format
    Arrow,
    /// Common Trace Format 2, a directory: babeltrace2 from 2.1 on
    Ctf,
    /// Common Trace Format 1.8, a directory: babeltrace2, Trace Compass
    Ctf1,
    /// An array of hashes, as KLogger writes it
    Perl,
    /// JSON lines
    Json,
    /// One table of all events
    Csv,
    /// Lines for people, as `mete show` prints them
    Text,
}

impl Form {
    /// Whether it is not text, which a terminal cannot show.
    fn is_binary(self) -> bool {
        matches!(self, Form::Perfetto | Form::Parquet | Form::Arrow)
    }

    /// The version of CTF, which is a directory; `None` for all other forms.
    fn ctf(self) -> Option<CtfVersion> {
        match self {
            Form::Ctf => Some(CtfVersion::Two),
            Form::Ctf1 => Some(CtfVersion::One),
            _ => None,
        }
    }
}

impl ConvertOptions {
    /// Whether the options go together.
    ///
    /// # Errors
    ///
    /// Which options do not go together, and what to do.
    pub fn check(&self) -> Result<(), Mistake> {
        if self.to.ctf().is_some() && self.path().is_none() {
            let mistake = "CTF is a directory of several files; give its place with -o";
            return Err((ErrorKind::MissingRequiredArgument, mistake.to_owned()));
        }
        self.choice.check()
    }

    /// Where to write; `None` for standard output.
    fn path(&self) -> Option<&Path> {
        self.output.as_deref().filter(|path| *path != Path::new("-"))
    }
}

/// Converts a trace.
pub fn run_convert(options: &ConvertOptions) -> anyhow::Result<ExitCode> {
    let (trace, filter) = options.choice.open()?;
    let path = options.path();
    // A pipe may be waited for, and nothing needs clearing up: there, a signal ends the program at once.
    if !path.is_some_and(is_pipe) {
        interrupt::listen()?;
    }
    let done = match (options.to.ctf(), path) {
        (Some(version), Some(path)) => into_folder(&trace, filter, version, path)?,
        (None, Some(path)) => into_file(&trace, filter, options.to, path)?,
        (None, None) if options.to.is_binary() && options.output.is_none() && stdout().is_terminal() => {
            bail!("this form is binary, and standard output is a terminal; give a file with -o");
        }
        // `check` has refused CTF without a place.
        (_, None) => {
            let mut format = format(options.to, stdout(), &trace)?;
            pass(&trace, filter, &mut *format)?
        }
    };
    tell(&trace, &done);
    Ok(match (done.is_whole, path) {
        (true, _) => status(&done),
        (false, Some(_)) => interrupt::ended_without_results("nothing was written"),
        (false, None) => interrupt::ended(false),
    })
}

fn is_pipe(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|found| found.file_type().is_fifo())
}

fn into_file(trace: &Trace, filter: Filter, form: Form, path: &Path) -> anyhow::Result<Converted> {
    let failed = || format!("cannot write {}", path.display());
    refuse_own_file(trace, path)?;
    let draft = Draft::begin_private(path).with_context(failed)?;
    // A block, because the format borrows the draft's file, which can be closed only after it.
    let done = {
        let name = || path.display().to_string();
        let mut format = format(form, draft.file(), trace).with_context(name)?;
        pass(trace, filter, &mut *format).with_context(name)?
    };
    if done.is_whole {
        draft.close().with_context(failed)?;
    }
    Ok(done)
}

/// Refuses to overwrite a file of the trace, under any of its names.
fn refuse_own_file(trace: &Trace, path: &Path) -> anyhow::Result<()> {
    // Compared by device and inode: a link or another path may lead to the same file.
    let identity = |path: &Path| fs::metadata(path).map(|found| (found.dev(), found.ino())).ok();
    let Some(output) = identity(path) else { return Ok(()) };
    let blocks = trace.description().files.iter().map(|file| file.name.as_str());
    let names = blocks.chain([FILE_NAME, FORMER_FILE_NAME]);
    let mut own = names.map(|name| trace.directory().join(name));
    if let Some(own) = own.find(|own| identity(own) == Some(output)) {
        bail!("{} is a part of the trace itself; choose another name", own.display());
    }
    Ok(())
}

fn into_folder(trace: &Trace, filter: Filter, version: CtfVersion, path: &Path) -> anyhow::Result<Converted> {
    let failed = || format!("cannot write {}", path.display());
    let draft = FolderDraft::begin(path).with_context(failed)?;
    let mut format = Ctf::new(&draft.folder(), version, trace);
    let done = pass(trace, filter, &mut format).with_context(|| path.display().to_string())?;
    if done.is_whole {
        draft.close().with_context(failed)?;
    }
    Ok(done)
}

fn format<'a>(form: Form, to: impl Write + Send + 'a, trace: &Trace) -> anyhow::Result<Box<dyn Format + 'a>> {
    let failed = |error| output::failed(&error);
    Ok(match form {
        Form::Perl => Box::new(Perl::new(to)),
        Form::Json => Box::new(JsonLines::new(to)),
        Form::Csv => Box::new(Csv::new(to)),
        Form::Text => Box::new(Text::new(to)),
        Form::Perfetto => Box::new(Perfetto::new(to, trace)),
        Form::Parquet => Box::new(Parquet::new(to, trace).map_err(failed)?),
        Form::Arrow => Box::new(ArrowFile::new(to, trace).map_err(failed)?),
        Form::Ctf | Form::Ctf1 => bail!("CTF is a directory of several files"),
    })
}

fn pass(trace: &Trace, filter: Filter, format: &mut dyn Format) -> anyhow::Result<Converted> {
    let progress = Progress::of_parts("converting");
    let converted = convert_while(trace, filter, format, &mut |position: Position| {
        progress.show_part(position.blocks, position.of);
        interrupt::go_on()
    });
    converted.map_err(|error| output::failed(&error))
}

/// Says what is missing, because not every form has a place for it.
fn tell(trace: &Trace, done: &Converted) {
    tell_circumstances(trace.description());
    tell_errors(done);
    if done.is_whole {
        done.accounts.iter().for_each(|account| failure::say(&account.to_string()));
    }
}
