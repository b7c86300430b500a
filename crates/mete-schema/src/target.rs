//! The kinds of instrumentation point.

use std::fmt;

use crate::ast::{self, Name};
use crate::format::{self, is_name};
use crate::limits::MAX_PROBE_LETTERS;
use crate::problem::Problem;
use crate::schema::Target;
use mete_base::nearest;

/// All kinds of point: the word before the first colon, and the parts behind it.
pub const KINDS: [(&str, &[&str]); 10] = [
    ("tp_btf", &["TRACEPOINT"]),
    ("raw_tp", &["TRACEPOINT"]),
    ("tracepoint", &["GROUP", "NAME"]),
    ("fentry", &["FUNCTION"]),
    ("fexit", &["FUNCTION"]),
    ("kprobe", &["FUNCTION"]),
    ("uprobe", &["PATH", "FUNCTION"]),
    ("uretprobe", &["PATH", "FUNCTION"]),
    ("usdt", &["PATH", "PROVIDER", "NAME"]),
    ("probe", &["EVENT"]),
];

/// The place that a target names.
///
/// # Errors
///
/// What is wrong with the target.
pub fn resolve(target: &ast::Target) -> Result<Target, Box<Problem>> {
    let Some((word, parts)) = KINDS.into_iter().find(|(word, _)| *word == target.kind.text) else {
        return Err(no_kind(&target.kind));
    };
    if parts.len() != target.parts.len() {
        let last = target.parts.last().map_or(target.kind.span, |part| part.span);
        let wanted = format!("{word}:{}", parts.join(":"));
        let title = format!("`{word}` is written `{wanted}`");
        let label = format!("expected {} behind it", count(parts.len()));
        return Err(Problem::new(target.kind.span.to(last), title, label).into());
    }
    for (part, what) in target.parts.iter().zip(parts) {
        check_part(part, what)?;
    }
    Ok(build(word, target.parts.iter().map(|part| part.text.clone())))
}

fn no_kind(kind: &Name) -> Box<Problem> {
    let words = KINDS.map(|(word, _)| word);
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
