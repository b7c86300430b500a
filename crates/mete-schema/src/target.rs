//! The kinds of instrumentation point.

use std::fmt;

use crate::ast::{self, Name};
use crate::format::{self, is_name};
use crate::limits::MAX_PROBE_LETTERS;
use crate::problem::Problem;
use crate::schema::Target;
use mete_base::nearest;

/// A kind of point: the word before the first colon, and the parts behind it.
#[derive(Clone, Copy, Debug)]
pub struct PointKind {
    /// The word.
    pub word: &'static str,
    /// The parts, in order.
    pub parts: &'static [TargetPart],
    /// Makes the target of its parts, of which there must be as many as `parts` has.
    build: BuildTarget,
}

type BuildTarget = fn(&mut dyn Iterator<Item = String>) -> Target;

/// What one part of a target names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TargetPart {
    /// A tracepoint of the kernel.
    Tracepoint,
    /// The group of a tracepoint.
    Group,
    /// A tracepoint in its group, or a static probe of its provider.
    Name,
    /// A function, of the kernel or of a program.
    Function,
    /// The path of a program.
    Path,
    /// The provider of a static probe.
    Provider,
    /// The event of a probe of the log facility.
    Event,
}

impl TargetPart {
    /// The word that stands for the part in the form of a kind.
    const fn word(self) -> &'static str {
        match self {
            TargetPart::Tracepoint => "TRACEPOINT",
            TargetPart::Group => "GROUP",
            TargetPart::Name => "NAME",
            TargetPart::Function => "FUNCTION",
            TargetPart::Path => "PATH",
            TargetPart::Provider => "PROVIDER",
            TargetPart::Event => "EVENT",
        }
    }

    /// Whether the part goes into generated code and must be a name. Paths and symbols of programs need not
    /// be names, because they go to the loader.
    const fn must_be_name(self) -> bool {
        match self {
            TargetPart::Tracepoint | TargetPart::Group | TargetPart::Name | TargetPart::Provider => true,
            TargetPart::Function | TargetPart::Path | TargetPart::Event => false,
        }
    }
}

/// All kinds of point.
pub const KINDS: [PointKind; 10] = {
    use TargetPart::{Event, Function, Group, Name, Path, Provider, Tracepoint};
    [
        kind("tp_btf", &[Tracepoint], |parts| Target::TpBtf(next(parts))),
        kind("raw_tp", &[Tracepoint], |parts| Target::RawTracepoint(next(parts))),
        kind("tracepoint", &[Group, Name], |parts| Target::Tracepoint {
            group: next(parts),
            name: next(parts),
        }),
        kind("fentry", &[Function], |parts| Target::Fentry(next(parts))),
        kind("fexit", &[Function], |parts| Target::Fexit(next(parts))),
        kind("kprobe", &[Function], |parts| Target::Kprobe(next(parts))),
        kind("uprobe", &[Path, Function], |parts| Target::Uprobe { path: next(parts), symbol: next(parts) }),
        kind("uretprobe", &[Path, Function], |parts| Target::Uretprobe {
            path: next(parts),
            symbol: next(parts),
        }),
        kind("usdt", &[Path, Provider, Name], |parts| Target::Usdt {
            path: next(parts),
            provider: next(parts),
            name: next(parts),
        }),
        kind("probe", &[Event], |parts| Target::Probe(next(parts))),
    ]
};

const fn kind(word: &'static str, parts: &'static [TargetPart], build: BuildTarget) -> PointKind {
    PointKind { word, parts, build }
}

/// The next part. `resolve` has checked the number of parts, so that none is missing.
fn next(parts: &mut dyn Iterator<Item = String>) -> String {
    parts.next().unwrap_or_default()
}

/// The place that a target names.
///
/// # Errors
///
/// What is wrong with the target.
pub fn resolve(target: &ast::Target) -> Result<Target, Box<Problem>> {
    let Some(PointKind { word, parts, build }) = KINDS.into_iter().find(|kind| kind.word == target.kind.text)
    else {
        return Err(no_kind(&target.kind));
    };
    if parts.len() != target.parts.len() {
        let last = target.parts.last().map_or(target.kind.span, |part| part.span);
        let wanted = format!("{word}:{}", parts.iter().map(|part| part.word()).collect::<Vec<_>>().join(":"));
        let title = format!("`{word}` is written `{wanted}`");
        let label = format!("expected {} behind it", count(parts.len()));
        return Err(Problem::new(target.kind.span.to(last), title, label).into());
    }
    for (part, what) in target.parts.iter().zip(parts) {
        check_part(part, *what)?;
    }
    Ok(build(&mut target.parts.iter().map(|part| part.text.clone())))
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

/// Whether the kernel may use this name. A name may begin with a digit there: `9p_protocol_dump` is a
/// tracepoint.
fn is_word(text: &str) -> bool {
    is_name(text) || text.starts_with(|letter: char| letter.is_ascii_digit()) && is_name(&format!("_{text}"))
}

/// Checks that a part can be what it should name.
fn check_part(part: &Name, what: TargetPart) -> Result<(), Box<Problem>> {
    if what == TargetPart::Path && !part.text.starts_with('/') {
        let problem = Problem::new(part.span, "the path of a program must be absolute", "expected `\"/…\"`");
        let help = "write it out: the recorder has no search path, and another working directory";
        return Err(problem.help(help.to_owned()).into());
    }
    if what == TargetPart::Event && part.text.len() > MAX_PROBE_LETTERS {
        let title = format!("the name of a probe has {} letters", part.text.len());
        let label = format!("at most {MAX_PROBE_LETTERS} are kept of it");
        let help =
            format!("write its first {MAX_PROBE_LETTERS} letters: programs publish no more of their probes");
        return Err(Problem::new(part.span, title, label).help(help).into());
    }
    if what.must_be_name() && !is_word(&part.text) {
        let title = format!("{:?} is no name", part.text);
        let label = format!("expected the {} as a name", what.word().to_lowercase());
        return Err(Problem::new(part.span, title, label).into());
    }
    Ok(())
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
