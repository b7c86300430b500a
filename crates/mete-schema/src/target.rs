//! The kinds of instrumentation point.

use std::fmt;

use crate::ast::{self, Name};
use crate::format::{self, is_name};
use crate::limits::MAX_PROBE_LETTERS;
use crate::problem::Problem;
use crate::schema::Target;
use mete_base::nearest;

/// A kind of point: its word, the parts behind the word, and its description.
pub struct PointKind {
    /// The word before the first colon.
    pub word: &'static str,
    /// The parts behind the word.
    pub parts: &'static [&'static str],
    /// Its description.
    pub about: &'static str,
}

/// All kinds.
pub const KINDS: [PointKind; 10] = [
    PointKind {
        word: "tp_btf",
        parts: &["TRACEPOINT"],
        about: "a kernel tracepoint, its arguments with their types",
    },
    PointKind {
        word: "raw_tp",
        parts: &["TRACEPOINT"],
        about: "the same on kernels that refuse typed access",
    },
    PointKind {
        word: "tracepoint",
        parts: &["GROUP", "NAME"],
        about: "a kernel tracepoint, by the fields of its record",
    },
    PointKind { word: "fentry", parts: &["FUNCTION"], about: "where a kernel function begins" },
    PointKind {
        word: "fexit",
        parts: &["FUNCTION"],
        about: "where a kernel function returns, with `retval`",
    },
    PointKind {
        word: "kprobe",
        parts: &["FUNCTION"],
        about: "where a kernel function begins, by a breakpoint",
    },
    PointKind { word: "uprobe", parts: &["PATH", "FUNCTION"], about: "where a function of a program begins" },
    PointKind { word: "uretprobe", parts: &["PATH", "FUNCTION"], about: "where it returns, with `retval`" },
    PointKind { word: "usdt", parts: &["PATH", "PROVIDER", "NAME"], about: "a static probe in a program" },
    PointKind {
        word: "probe",
        parts: &["EVENT"],
        about: "a probe point of this project in a program, by its event",
    },
];

/// The place that a target names.
///
/// # Errors
///
/// What is wrong with the target.
pub fn resolve(target: &ast::Target) -> Result<Target, Box<Problem>> {
    let Some(kind) = KINDS.iter().find(|kind| kind.word == target.kind.text) else {
        return Err(no_kind(&target.kind));
    };
    if kind.parts.len() != target.parts.len() {
        let last = target.parts.last().map_or(target.kind.span, |part| part.span);
        let wanted = format!("{}:{}", kind.word, kind.parts.join(":"));
        let title = format!("`{}` is written `{wanted}`", kind.word);
        let label = format!("expected {} behind it", count(kind.parts.len()));
        return Err(Problem::new(target.kind.span.to(last), title, label).into());
    }
    for (part, what) in target.parts.iter().zip(kind.parts) {
        check_part(part, what)?;
    }
    Ok(build(kind.word, target.parts.iter().map(|part| part.text.clone())))
}

fn no_kind(kind: &Name) -> Box<Problem> {
    let words = KINDS.map(|kind| kind.word);
    let help = nearest::help(&kind.text, words, "kinds");
    let problem =
        Problem::new(kind.span, format!("there is no kind of point `{}`", kind.text), "expected a kind");
    Box::new(problem.help(help))
}

fn count(parts: usize) -> &'static str {
    ["nothing", "one part", "two parts", "three parts"].get(parts).copied().unwrap_or("more parts")
}

/// Whether the kernel may use this name. A name may begin with a digit there: `9p_protocol_dump` is a tracepoint.
fn is_word(text: &str) -> bool {
    is_name(text) || text.starts_with(|letter: char| letter.is_ascii_digit()) && is_name(&format!("_{text}"))
}

/// Checks that a part that goes into generated code is a name. Paths and symbols of programs need not be names, because
/// they go to the loader.
fn check_part(part: &Name, what: &str) -> Result<(), Box<Problem>> {
    let is_path = what == "PATH";
    if is_path && !part.text.starts_with('/') {
        let problem = Problem::new(part.span, "the path of a program must be absolute", "expected `\"/…\"`");
        let help = "write it out: the recorder has no search path, and another working directory";
        return Err(problem.help(help.to_owned()).into());
    }
    let may_be_quoted = is_path || matches!(what, "FUNCTION" | "EVENT");
    if what == "EVENT" && part.text.len() > MAX_PROBE_LETTERS {
        let title = format!("the name of a probe has {} letters", part.text.len());
        let label = format!("at most {MAX_PROBE_LETTERS} are kept of it");
        let help =
            format!("write its first {MAX_PROBE_LETTERS} letters: programs publish no more of their probes");
        return Err(Problem::new(part.span, title, label).help(help).into());
    }
    if !may_be_quoted && !is_word(&part.text) {
        let title = format!("{:?} is no name", part.text);
        let label = format!("expected the {} as a name", what.to_lowercase());
        return Err(Problem::new(part.span, title, label).into());
    }
    Ok(())
}

fn build(word: &str, mut parts: impl Iterator<Item = String>) -> Target {
    // `resolve` has checked the word and the number of parts, so that none is missing.
    let mut part = || parts.next().unwrap_or_default();
    match word {
        "tp_btf" => Target::TpBtf(part()),
        "raw_tp" => Target::RawTracepoint(part()),
        "tracepoint" => Target::Tracepoint { group: part(), name: part() },
        "fentry" => Target::Fentry(part()),
        "fexit" => Target::Fexit(part()),
        "kprobe" => Target::Kprobe(part()),
        "uprobe" => Target::Uprobe { path: part(), symbol: part() },
        "uretprobe" => Target::Uretprobe { path: part(), symbol: part() },
        "usdt" => Target::Usdt { path: part(), provider: part(), name: part() },
        _ => Target::Probe(part()),
    }
}

impl Target {
    /// The kind's word and the parts behind it.
    pub fn words(&self) -> (&'static str, Vec<&str>) {
        match self {
            Target::TpBtf(name) => ("tp_btf", vec![name]),
            Target::RawTracepoint(name) => ("raw_tp", vec![name]),
            Target::Tracepoint { group, name } => ("tracepoint", vec![group, name]),
            Target::Fentry(name) => ("fentry", vec![name]),
            Target::Fexit(name) => ("fexit", vec![name]),
            Target::Kprobe(name) => ("kprobe", vec![name]),
            Target::Uprobe { path, symbol } => ("uprobe", vec![path, symbol]),
            Target::Uretprobe { path, symbol } => ("uretprobe", vec![path, symbol]),
            Target::Usdt { path, provider, name } => ("usdt", vec![path, provider, name]),
            Target::Probe(name) => ("probe", vec![name]),
        }
    }

    /// Whether the kernel itself is instrumented, so that its types say what the arguments are.
    pub fn is_kernel(&self) -> bool {
        !matches!(
            self,
            Target::Uprobe { .. } | Target::Uretprobe { .. } | Target::Usdt { .. } | Target::Probe(_)
        )
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, parts) = self.words();
        let name = |text: &str| Name { text: text.to_owned(), span: Default::default() };
        let target = ast::Target { kind: name(kind), parts: parts.into_iter().map(name).collect() };
        f.write_str(&format::target(&target))
    }
}
