//! Points of a schema that this kernel describes, but does not run programs at.

use mete_schema::Schema;
use mete_schema::schema::{Point, Target};

use super::refusal::{NO_BREAKPOINTS, NO_FUNCTIONS};
use crate::capability;

/// The number of points that a sentence names.
const NAMED: usize = 3;

/// Says which points cannot be recorded, as far as that is known without recording: a sentence for each kind.
/// Whether programs may run at functions is found out by trying, which only a user can that may load
/// programs.
pub fn absent_points(schema: &Schema) -> Vec<String> {
    absent(&schema.points, capability::has_breakpoints(), capability::takes_functions)
}

fn absent(
    points: &[Point],
    has_breakpoints: bool,
    takes_functions: impl FnOnce() -> Option<bool>,
) -> Vec<String> {
    let functions = targets(points, |target| matches!(target, Target::Fentry(_) | Target::Fexit(_)));
    let breakpoints = targets(points, |target| matches!(target, Target::Kprobe(_)));
    // Not tried where no point needs it: a program would be loaded.
    let refuses_functions = !functions.is_empty() && takes_functions() == Some(false);
    let mut sentences = Vec::new();
    if refuses_functions {
        let instead = if has_breakpoints { "take a tracepoint, or `kprobe:`" } else { "take a tracepoint" };
        sentences.push(format!("{}: {NO_FUNCTIONS}; {instead}", names(&functions)));
    }
    if !breakpoints.is_empty() && !has_breakpoints {
        sentences.push(format!("{}: {NO_BREAKPOINTS}; take a tracepoint", names(&breakpoints)));
    }
    sentences
}

fn targets(points: &[Point], is_wanted: fn(&Target) -> bool) -> Vec<&Target> {
    points.iter().map(|point| &point.target).filter(|target| is_wanted(target)).collect()
}

/// The first few points by name, and the number of the others.
fn names(targets: &[&Target]) -> String {
    let named: Vec<_> = targets.iter().take(NAMED).map(ToString::to_string).collect();
    match targets.len().saturating_sub(NAMED) {
        0 => named.join(", "),
        more => format!("{} and {more} more", named.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use mete_schema::{Problems, Source};

    use super::*;

    #[test]
    fn klog_8_points_that_this_kernel_runs_no_programs_at_are_named_by_kind() -> Result<(), Problems> {
        let points: String =
            ["tp_btf:a", "fentry:b", "fexit:c", "kprobe:d", "kprobe:e", "kprobe:f", "kprobe:g"]
                .map(|point| format!("at {point} log A()\n"))
                .concat();
        let points = Schema::read(&[Source::new("test", format!("event A {{ }}\n{points}"))])?.points;
        let functions = "fentry:b, fexit:c: this kernel lets no program run where its functions begin or end, see mete doctor";
        let breakpoints = "kprobe:d, kprobe:e, kprobe:f and 1 more: this kernel has no breakpoints (kprobes) for programs, see \
            mete doctor; take a tracepoint";
        let instead = |what: &str| format!("{functions}; take a tracepoint{what}");
        assert_eq!(absent(&points, false, || Some(false)), [instead(""), breakpoints.to_owned()]);
        assert_eq!(absent(&points, true, || Some(false)), [instead(", or `kprobe:`")]);
        assert_eq!(absent(&points, false, || None), [breakpoints]);
        assert!(absent(&points, true, || Some(true)).is_empty());
        assert!(absent(&points[..1], false, || panic!("nothing is tried for tracepoints")).is_empty());
        Ok(())
    }
}
