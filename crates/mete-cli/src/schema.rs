//! `mete schema`: checks, explains and formats schemata, and generates code for programs.

use std::fs;
use std::io::{IsTerminal, Read, Write, stderr, stdin};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use mete_base::draft::Draft;
use mete_base::nearest::question;
use mete_command::failure;
use mete_command::output::Output;
use mete_command::table::number;
use mete_kernel::record::{absent_counters, absent_points};
use mete_schema::counter::Perf;
use mete_schema::format::{expression, format};
use mete_schema::kernel::{Btf, KernelTypes, Running};
use mete_schema::limits::MAX_FILE_BYTES;
use mete_schema::{Checked, Problems, Schema, Source, Span, check, explain, generate, parse, shipped};
use serde::Serialize;

/// Options of `mete schema`.
#[derive(Debug, clap::Args)]
#[command(after_help = EXAMPLES)]
pub struct SchemaOptions {
    /// What to do with a schema.
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Say whether a schema is correct, and whether this machine's kernel has everything that it names
    #[command(after_help = CHECK_EXAMPLES)]
    Check(CheckOptions),
    /// Say what a schema records: each event byte by byte, counters, points
    #[command(after_help = EXPLAIN_EXAMPLES)]
    Explain(CheckOptions),
    /// Print a schema in its canonical form
    #[command(after_help = FORMAT_EXAMPLES)]
    Format(FormatOptions),
    /// Print encoders and decoders of a schema's events, for programs
    #[command(after_help = GENERATE_EXAMPLES)]
    Generate(SchemaGenerateOptions),
}

const EXAMPLES: &str = "\
Examples:
  mete schema check scheduler
  mete schema check my-events.mete my-points.mete
  mete schema explain locking
  mete schema format --write my-events.mete
  mete schema generate c stopwatch > stopwatch.h

The language is described in docs/schema.md.";

const CHECK_EXAMPLES: &str = "\
Examples:
  mete schema check scheduler
  mete schema check my-events.mete my-points.mete --btf /boot/other-kernel.btf
  mete schema check my.mete --json | jq -r 'select(.kind == \"problem\").title'";

const EXPLAIN_EXAMPLES: &str = "\
Examples:
  mete schema explain locking
  mete schema explain my.mete --json | jq -r 'select(.kind == \"event\").name'";

const FORMAT_EXAMPLES: &str = "\
Examples:
  mete schema format my-events.mete
  mete schema format --write my-events.mete my-points.mete
  mete schema format --check *.mete";

const GENERATE_EXAMPLES: &str = "\
Examples:
  mete schema generate c stopwatch > stopwatch.h
  mete schema generate rust my-events.mete > my_events.rs";

#[derive(Debug, clap::Args)]
struct CheckOptions {
    /// The files of one schema, or the name of a shipped one: stopwatch, locking, scheduler, interrupt; - is
    /// standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Check against the types in this file instead of the running kernel's
    #[arg(long, value_name = "FILE")]
    btf: Option<PathBuf>,
    /// Check without a kernel: only whether the schema itself is correct
    #[arg(long, conflicts_with = "btf")]
    no_btf: bool,
    /// Print JSON objects: see docs/json.md
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct FormatOptions {
    /// The files, or names of shipped schemata; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print only the names of files that are not in canonical form; fail if there are any
    #[arg(long)]
    check: bool,
    /// Write each file back in its canonical form
    #[arg(long, conflicts_with = "check")]
    write: bool,
}

#[derive(Debug, clap::Args)]
struct SchemaGenerateOptions {
    /// The language of the code
    #[arg(value_enum)]
    language: Language,
    /// The files of one schema, or the name of a shipped one; - is standard input
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum Language {
    /// A header
    C,
    /// A module
    Rust,
}

/// Does what was asked for.
pub fn run(options: &SchemaOptions) -> anyhow::Result<()> {
    match &options.action {
        Action::Check(options) => run_check(options, &mut Output::new(options.json)),
        Action::Explain(options) => run_explain(options, &mut Output::new(options.json)),
        Action::Format(options) => run_format(options, &mut Output::new(false)),
        Action::Generate(options) => run_generate(options, &mut Output::new(false)),
    }
}

/// Reads a shipped schema or a file. A file with the name of a shipped schema, such as a program called
/// `stopwatch`, can be given as `./stopwatch`.
fn read(path: &Path) -> anyhow::Result<Source> {
    if let Some(shipped) = path.to_str().and_then(shipped::by_name) {
        return Ok(shipped.source());
    }
    let is_standard_input = path == Path::new("-");
    let file: Box<dyn Read> = match is_standard_input {
        true => Box::new(stdin()),
        false => Box::new(fs::File::open(path).with_context(|| not_there(path))?),
    };
    let name = if is_standard_input { "standard input".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    // One byte more than the limit, so that a file that is too large is found to be so.
    file.take(MAX_FILE_BYTES as u64 + 1)
        .read_to_end(&mut bytes)
        .with_context(|| format!("cannot read {name}"))?;
    let text = String::from_utf8(bytes).with_context(|| format!("{name} is no text in UTF-8"))?;
    Ok(Source::new(name, text))
}

fn not_there(path: &Path) -> String {
    let names = shipped::SHIPPED.map(|shipped| shipped.name);
    let meant = path.to_str().map_or_else(String::new, |name| question(name, names));
    format!("cannot read the schema {} (a file, or one of {}{meant})", path.display(), names.join(", "))
}

/// The files of a schema, or shipped schemata.
pub fn sources(files: &[PathBuf]) -> anyhow::Result<Vec<Source>> {
    files.iter().map(|path| read(path)).collect()
}

/// A schema and its files. Problems are printed.
fn read_all(files: &[PathBuf], output: &mut Output) -> anyhow::Result<(Schema, Vec<Source>)> {
    let sources = sources(files)?;
    let schema = Schema::read(&sources).or_else(|problems| refuse(&problems, &sources, output))?;
    Ok((schema, sources))
}

/// The kernel to check against. If the running kernel does not describe its types, says so, and nothing is
/// checked against a kernel.
fn kernel(options: &CheckOptions) -> anyhow::Result<Option<Box<dyn KernelTypes>>> {
    if options.no_btf {
        return Ok(None);
    }
    if let Some(path) = &options.btf {
        return Ok(Some(Box::new(Btf::read(path)?)));
    }
    match Running::new() {
        Ok(kernel) => Ok(Some(Box::new(kernel))),
        Err(error) => {
            failure::say(&format!("points are not checked: {error}"));
            Ok(None)
        }
    }
}

fn run_check(options: &CheckOptions, output: &mut Output) -> anyhow::Result<()> {
    let (schema, sources) = read_all(&options.files, output)?;
    let kernel = kernel(options)?;
    let checked =
        check(&schema, kernel.as_deref()).or_else(|problems| refuse(&problems, &sources, output))?;
    let summary = Summary {
        absent: options.absent(&schema, &checked),
        ..Summary::new(&schema, &checked, kernel.as_deref())
    };
    output.object(&summary)?;
    output.text(summary.text())
}

impl CheckOptions {
    /// What this machine cannot record or count. Empty if another kernel's types were given: they may be of
    /// another machine.
    fn absent(&self, schema: &Schema, checked: &Checked) -> Vec<String> {
        match self.no_btf || self.btf.is_some() {
            true => Vec::new(),
            false => [absent_points(schema), absent_counters(schema, checked)].concat(),
        }
    }
}

/// Prints all problems, and returns an error that counts them.
pub fn refuse<T>(problems: &Problems, sources: &[Source], output: &mut Output) -> anyhow::Result<T> {
    for problem in &problems.0 {
        output.object(&ProblemObject::new(problem, sources))?;
    }
    if !output.is_json() {
        // If stderr is closed, the exit status still tells of the problems.
        let _ = writeln!(stderr(), "{}\n", problems.render(sources, stderr().is_terminal()));
    }
    let names: Vec<_> = sources.iter().map(|source| source.name.as_str()).collect();
    match problems.0.len() {
        1 => bail!("{} has a problem", names.join(", ")),
        many => {
            bail!("{} {} {many} problems", names.join(", "), if names.len() == 1 { "has" } else { "have" })
        }
    }
}

fn run_explain(options: &CheckOptions, output: &mut Output) -> anyhow::Result<()> {
    let (schema, _) = read_all(&options.files, output)?;
    let kernel = kernel(options)?;
    // A schema that does not fit this kernel can be explained as well, except for the types of the arguments.
    let checked = check(&schema, kernel.as_deref());
    if let Err(problems) = &checked {
        failure::say(&format!("this does not fit the kernel, see `mete schema check`: {problems}"));
    }
    objects(&schema, output)?;
    output.text(explain(&schema, checked.as_ref().ok()).trim_end())
}

fn run_format(options: &FormatOptions, output: &mut Output) -> anyhow::Result<()> {
    let mut different = 0;
    for path in &options.files {
        let source = read(path)?;
        let formatted = formatted(&source)?;
        let is_different = formatted != source.text;
        match (options.check, options.write) {
            (true, _) if is_different => {
                different += 1;
                output.text(&source.name)?;
            }
            (false, true) if is_different => replace(path, &formatted)?,
            (false, false) => output.verbatim(formatted.trim_end_matches('\n'))?,
            _ => {}
        }
    }
    match different {
        0 => Ok(()),
        1 => bail!("a file is not in canonical form: see `mete schema format --write`"),
        many => bail!("{many} files are not in canonical form: see `mete schema format --write`"),
    }
}

fn run_generate(options: &SchemaGenerateOptions, output: &mut Output) -> anyhow::Result<()> {
    let (schema, _) = read_all(&options.files, output)?;
    let text = match options.language {
        Language::C => generate::c(&schema),
        Language::Rust => generate::rust(&schema),
    };
    output.verbatim(text.trim_end_matches('\n'))
}

/// A schema's canonical form. Its names need not be known, but a text that cannot be parsed cannot be
/// formatted.
fn formatted(source: &Source) -> anyhow::Result<String> {
    let mut problems = Vec::new();
    let file = parse(0, &source.text, &mut problems);
    if problems.is_empty() {
        return Ok(format(&file));
    }
    refuse(&Problems(problems), std::slice::from_ref(source), &mut Output::new(false))
}

/// Replaces a file by a new one that is written beside it, so that nothing is lost if the disk is full.
fn replace(path: &Path, text: &str) -> anyhow::Result<()> {
    if !path.exists() {
        bail!("cannot write {}: it is no file", path.display());
    }
    let written = Draft::begin(path).and_then(|draft| draft.finish(text));
    written.with_context(|| format!("cannot write {}", path.display()))
}

/// What `--json` prints of a correct schema.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "schema")]
struct Summary<'a> {
    events: usize,
    points: usize,
    largest_record_bytes: usize,
    fingerprint: String,
    kernel: Option<String>,
    unchecked: &'a [String],
    absent: Vec<String>,
    /// The number of points that were checked against the kernel.
    #[serde(skip)]
    in_kernel: usize,
    /// The number of points whose program was looked into.
    #[serde(skip)]
    in_programs: usize,
}

impl<'a> Summary<'a> {
    fn new(schema: &Schema, checked: &'a Checked, kernel: Option<&dyn KernelTypes>) -> Summary<'a> {
        Summary {
            events: schema.events.len(),
            points: schema.points.len(),
            largest_record_bytes: schema.events.iter().map(|event| event.layout.size).max().unwrap_or(0),
            fingerprint: format!("{:016x}", schema.fingerprint()),
            kernel: kernel.map(|kernel| kernel.name().to_owned()),
            unchecked: &checked.unchecked,
            absent: Vec::new(),
            in_kernel: schema.points_of_kernel().saturating_sub(checked.unchecked.len()),
            in_programs: kernel.map_or(0, |kernel| schema.points_in_programs(kernel)),
        }
    }

    fn text(&self) -> String {
        let first = format!(
            "The schema is correct: {} in records of up to {} bytes, {}{}.",
            number(self.events as u64, "event"),
            self.largest_record_bytes,
            number(self.points as u64, "point"),
            self.of_points(),
        );
        let absent = self.absent.iter().map(|sentence| format!("It cannot be recorded here: {sentence}"));
        let sentences = self.unchecked.iter().cloned().chain(absent);
        sentences.fold(first, |text, sentence| format!("{text}\n{sentence}."))
    }
}

impl Summary<'_> {
    /// How many points were compared with the kernel. Only their names and types are compared.
    fn of_points(&self) -> String {
        let Some(kernel) = &self.kernel else {
            return if self.points > 0 { " not checked against a kernel" } else { "" }.to_owned();
        };
        let rest = self.points.saturating_sub(self.in_kernel + self.in_programs);
        let known = format!("with names and types as {kernel} has them");
        let parts = [
            (self.in_kernel, known.as_str()),
            (self.in_programs, "found in programs"),
            (rest, "not checked"),
        ];
        let parts: Vec<_> = parts.into_iter().filter(|(count, _)| *count > 0).collect();
        match parts.as_slice() {
            [] => String::new(),
            [(_, what)] => format!(" {what}"),
            [(first, what), others @ ..] => {
                let begin = format!(", {first} of them {what}");
                others.iter().fold(begin, |text, (count, what)| format!("{text}, {count} {what}"))
            }
        }
    }
}

/// What `--json` prints for each problem.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "problem")]
struct ProblemObject<'a> {
    title: &'a str,
    place: SourcePlace<'a>,
    label: &'a str,
    other: Option<SourcePlace<'a>>,
    help: Option<&'a str>,
}

#[derive(Serialize)]
struct SourcePlace<'a> {
    file: &'a str,
    line: usize,
    column: usize,
}

impl<'a> ProblemObject<'a> {
    fn new(problem: &'a mete_schema::Problem, sources: &'a [Source]) -> ProblemObject<'a> {
        ProblemObject {
            title: &problem.title,
            place: SourcePlace::new(problem.span, sources),
            label: &problem.label,
            other: problem.other.as_ref().map(|(span, _)| SourcePlace::new(*span, sources)),
            help: problem.help.as_deref(),
        }
    }
}

impl<'a> SourcePlace<'a> {
    fn new(span: Span, sources: &'a [Source]) -> SourcePlace<'a> {
        let source = &sources[span.file as usize];
        let (line, column) = source.line_and_column(span.start as usize);
        SourcePlace { file: &source.name, line, column }
    }
}

/// What `--json` prints for each event.
#[derive(Serialize)]
#[serde(tag = "kind", rename = "event")]
struct EventObject<'a> {
    name: &'a str,
    id: u16,
    bytes: usize,
    fingerprint: String,
    docs: &'a str,
    fields: Vec<FieldObject<'a>>,
}

#[derive(Serialize)]
struct FieldObject<'a> {
    name: &'a str,
    r#type: String,
    offset: usize,
    bytes: usize,
    docs: &'a str,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename = "counter")]
struct CounterObject<'a> {
    number: u8,
    arch: &'a str,
    name: &'a str,
    perf: Vec<&'a str>,
}

#[derive(Serialize)]
#[serde(tag = "kind", rename = "point")]
struct PointObject<'a> {
    target: String,
    when: Option<String>,
    docs: &'a str,
    logs: Vec<LogObject<'a>>,
}

#[derive(Serialize)]
struct LogObject<'a> {
    event: &'a str,
    condition: Option<String>,
    values: Vec<String>,
}

fn objects(schema: &Schema, output: &mut Output) -> anyhow::Result<()> {
    for event in &schema.events {
        output.object(&event_object(event))?;
    }
    for binding in &schema.bindings {
        let perf = match binding.counter.perf {
            Perf::Everywhere(name) => vec![name],
            Perf::ByMaker { amd, intel } => vec![amd, intel],
        };
        let (number, arch, name) = (binding.number, binding.arch.as_str(), binding.counter.name);
        output.object(&CounterObject { number, arch, name, perf })?;
    }
    schema.points.iter().try_for_each(|point| output.object(&point_object(point, schema)))
}

fn event_object(event: &mete_schema::schema::Event) -> EventObject<'_> {
    let places = event.fields.iter().zip(&event.layout.offsets);
    let fields = places.map(|(field, offset)| FieldObject {
        name: &field.name,
        r#type: field.kind.to_string(),
        offset: *offset,
        bytes: field.kind.size(),
        docs: &field.docs,
    });
    EventObject {
        name: &event.name,
        id: event.id,
        bytes: event.layout.size,
        fingerprint: format!("{:016x}", event.fingerprint()),
        docs: &event.docs,
        fields: fields.collect(),
    }
}

fn point_object<'a>(point: &'a mete_schema::schema::Point, schema: &'a Schema) -> PointObject<'a> {
    let logs = point.logs.iter().map(|log| LogObject {
        event: &schema.events[log.event].name,
        condition: log.condition.as_ref().map(expression),
        values: log.arguments.iter().map(expression).collect(),
    });
    PointObject {
        target: point.target.to_string(),
        when: point.when.as_ref().map(expression),
        docs: &point.docs,
        logs: logs.collect(),
    }
}
