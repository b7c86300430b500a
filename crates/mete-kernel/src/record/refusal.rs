//! What the kernel refuses, in the words of the schema.

use mete_schema::generate::Program;
use mete_schema::schema::Target;

use crate::KernelError;

/// Why `kprobe:` records nothing.
pub(super) const NO_BREAKPOINTS: &str =
    "this kernel has no breakpoints (kprobes) for programs, see mete doctor";
/// Why `fentry:` and `fexit:` record nothing.
pub(super) const NO_FUNCTIONS: &str =
    "this kernel lets no program run where its functions begin or end, see mete doctor";

/// Explains why the kernel refuses the programs: the error names the point whose program it is.
pub(super) fn explain(error: KernelError, points: &[Program]) -> KernelError {
    let KernelError::Refused { detail, source } = error else { return error };
    let refused = points.iter().find(|point| detail.contains(&format!("prog '{}'", point.name)));
    let Some(Program { target, .. }) = refused else { return KernelError::Refused { detail, source } };
    let point = target.to_string();
    match known(target, &detail) {
        // Without what the loader library says: it guesses at other reasons.
        Some(why) => KernelError::RefusedPoint { point, why, detail: String::new() },
        None => {
            let why = verdict(&detail).map(by_verifier).unwrap_or_else(|| format!("{source:#}"));
            KernelError::RefusedPoint { point, why, detail }
        }
    }
}

/// Explains why a program cannot be attached to its point.
pub(super) fn not_attached(target: &Target, source: libbpf_rs::Error) -> KernelError {
    let why = match target {
        // The schema was checked against this kernel, so the function exists, and it is kprobes that are
        // missing.
        Target::Kprobe(_) if source.kind() == libbpf_rs::ErrorKind::NotFound => {
            format!("{NO_BREAKPOINTS}; take a tracepoint")
        }
        _ => format!("{source:#}"),
    };
    KernelError::Point { point: target.to_string(), why }
}

/// A reason that is known to lie in the schema or in the kernel, by what the loader library said.
fn known(target: &Target, said: &str) -> Option<String> {
    let is_of_function = matches!(target, Target::Fentry(_) | Target::Fexit(_));
    let is_typed = is_of_function || matches!(target, Target::TpBtf(_));
    if is_of_function && has_any(said, &["-EPERM", "-ENOTSUPP", "-EOPNOTSUPP"]) {
        return Some(format!("{NO_FUNCTIONS}; take a tracepoint, or `kprobe:`"));
    }
    of_programs(is_typed, said).map(str::to_owned)
}

fn has_any(said: &str, texts: &[&str]) -> bool {
    texts.iter().any(|text| said.contains(text))
}

/// A reason that is known to lie in the program, at any kind of point.
fn of_programs(is_typed: bool, said: &str) -> Option<&'static str> {
    if has_any(said, &["BPF program is too large", "-E2BIG", "is too complex"]) {
        return Some(
            "what is logged there is too much for one program; log fewer events or simpler values, or some of them at another point",
        );
    }
    if is_typed && said.contains("_or_null_") {
        return Some(
            "this kernel may hand over 0 there instead of an address that is looked through; ask first, as in `when NAME != 0`, or take `raw_tp:` of the same tracepoint, which finds 0 behind it then",
        );
    }
    if is_typed && has_any(said, &["cannot access ptr member", "access beyond the end of member"]) {
        return Some(
            "it lets a program look into the first member of a union only; take `raw_tp:` or `kprobe:` of the same place, which read any",
        );
    }
    let is_stack = has_any(said, &["combined stack size", "stack limit"]);
    is_stack.then_some("its texts and values do not fit the 512 bytes of a program's stack; log fewer")
}

fn by_verifier(verdict: &str) -> String {
    format!("its verifier says \"{verdict}\"; this is a fault of mete if the schema is right")
}

/// The last line of the verifier, apart from its statistics.
fn verdict(said: &str) -> Option<&str> {
    let (_, log) = said.split_once("BEGIN PROG LOAD LOG")?;
    let log = log.split("END PROG LOAD LOG").next()?;
    // Lines with a semicolon are from the source of the program.
    log.lines()
        .map(str::trim)
        .rfind(|line| !line.is_empty() && !line.starts_with(['-', ';']) && !is_statistic(line))
}

fn is_statistic(line: &str) -> bool {
    ["processed ", "verification time", "stack depth", "max_states"].iter().any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn said(target: Target, detail: &str) -> String {
        let point = Program { name: "mete_at_3".to_owned(), target, events: Vec::new() };
        let source = libbpf_rs::Error::from(io::Error::from_raw_os_error(libc::EPERM));
        let error = KernelError::Refused { detail: format!("\nlibbpf: {detail}"), source };
        let text = explain(error, &[point]).to_string();
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn klog_8_what_the_kernel_refuses_is_explained_in_the_words_of_the_schema() {
        let function = || Target::Fentry("vfs_read".to_owned());
        let tracepoint = || Target::TpBtf("sched_switch".to_owned());
        let log = "prog 'mete_at_3': -- BEGIN PROG LOAD LOG --\n0: R1=ctx()\nR2 invalid mem access 'scalar'\n\
            processed 7 insns (limit 1000000)\n-- END PROG LOAD LOG --";
        let table = [
            (function(), "prog 'mete_at_3': BPF program load failed: -EPERM"),
            (tracepoint(), "prog 'mete_at_3': BPF program load failed: -E2BIG"),
            (tracepoint(), "prog 'mete_at_3': BPF program is too large. Processed 1000001 insn"),
            (tracepoint(), "prog 'mete_at_3': combined stack size of 2 calls is 544"),
            (tracepoint(), log),
            (tracepoint(), &log.replace("scalar", "trusted_ptr_or_null_")),
            (
                tracepoint(),
                "cannot access ptr member uaddr with moff 0 in struct (anon) with off 4 size 4 prog 'mete_at_3'",
            ),
            (tracepoint(), "prog 'mete_at_3': BPF program load failed: -EINVAL"),
            (tracepoint(), "failed to create map 'buffers'"),
        ];
        let found = table.map(|(target, detail)| said(target, detail));
        let too_much = "the kernel does not take the program for tp_btf:sched_switch: what is logged there is too much for one \
            program; log fewer events or simpler values, or some of them at another point";
        let expected = [
            "the kernel does not take the program for fentry:vfs_read: this kernel lets no program run where its functions \
             begin or end, see mete doctor; take a tracepoint, or `kprobe:`",
            too_much,
            too_much,
            "the kernel does not take the program for tp_btf:sched_switch: its texts and values do not fit the 512 bytes of a \
             program's stack; log fewer",
            "the kernel does not take the program for tp_btf:sched_switch: its verifier says \"R2 invalid mem access \
             'scalar'\"; this is a fault of mete if the schema is right",
            "the kernel does not take the program for tp_btf:sched_switch: this kernel may hand over 0 there instead of an \
             address that is looked through; ask first, as in `when NAME != 0`, or take `raw_tp:` of the same tracepoint, \
             which finds 0 behind it then",
            "the kernel does not take the program for tp_btf:sched_switch: it lets a program look into the first member of a \
             union only; take `raw_tp:` or `kprobe:` of the same place, which read any",
            "the kernel does not take the program for tp_btf:sched_switch: Operation not permitted (os error 1)",
            "the kernel refused the eBPF programs (Operation not permitted (os error 1))",
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn klog_8_a_point_that_the_kernel_has_no_means_for_is_refused_with_the_reason() {
        let absent = || libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound));
        let said = not_attached(&Target::Kprobe("vfs_read".to_owned()), absent()).to_string();
        let expected = "cannot record at kprobe:vfs_read: this kernel has no breakpoints (kprobes) for programs, see mete \
            doctor; take a tracepoint";
        assert_eq!(said, expected);
    }

    #[test]
    fn klog_8_the_cause_of_a_refusal_is_said_behind_what_was_tried() {
        use libbpf_rs::ErrorExt;
        let refused = |number: i32| {
            libbpf_rs::Error::from(io::Error::from_raw_os_error(number)).context("failed to do it")
        };
        let target = Target::TpBtf("sched_switch".to_owned());
        let cause = "failed to do it: Too many open files (os error 24)";
        let attached = not_attached(&target, refused(libc::EMFILE)).to_string();
        assert_eq!(attached, format!("cannot record at tp_btf:sched_switch: {cause}"));
        let point = Program { name: "mete_at_3".to_owned(), target, events: Vec::new() };
        let error =
            KernelError::Refused { detail: "prog 'mete_at_3'".to_owned(), source: refused(libc::EMFILE) };
        let loaded = explain(error, &[point]).to_string();
        assert!(loaded.contains(&format!("for tp_btf:sched_switch: {cause}")), "{loaded}");
        let measured = KernelError::Benchmark { event: "a".to_owned(), source: refused(libc::EMFILE) };
        assert!(measured.to_string().ends_with(cause), "{measured}");
    }
}
