//! What the kernel refuses, in the words of whoever wrote the schema.

use mete_schema::schema::Target;

use super::Point;
use crate::KernelError;

/// Why nothing is recorded by `kprobe:`.
pub(super) const NO_BREAKPOINTS: &str =
    "this kernel has no breakpoints (kprobes) for programs, see mete doctor";
/// Why nothing is recorded by `fentry:` and `fexit:`.
pub(super) const NO_FUNCTIONS: &str =
    "this kernel lets no program run where its functions begin or end, see mete doctor";

/// Why the programs are refused, by the point whose program it is.
pub(super) fn explain(error: KernelError, points: &[Point]) -> KernelError {
    let KernelError::Refused { detail, source } = error else { return error };
    let of_point = points.iter().find(|point| detail.contains(&format!("prog '{}'", point.program)));
    match of_point {
        Some(point) => {
            let point_name = point.target.to_string();
            match known(&point.target, &detail) {
                // The loader guesses at other reasons.
                Some(why) => KernelError::RefusedPoint { point: point_name, why, detail: String::new() },
                None => {
                    let why = verdict(&detail).map(by_verifier).unwrap_or_else(|| source.to_string());
                    KernelError::RefusedPoint { point: point_name, why, detail }
                }
            }
        }
        None => KernelError::Refused { detail, source },
    }
}

/// Why a program cannot be attached to its point.
pub(super) fn not_attached(target: &Target, source: libbpf_rs::Error) -> KernelError {
    let why = match target {
        Target::Kprobe(_) if source.kind() == libbpf_rs::ErrorKind::NotFound => {
            format!("{NO_BREAKPOINTS}; take a tracepoint")
        }
        _ => source.to_string(),
    };
    KernelError::Point { point: target.to_string(), why }
}

/// What can be the matter with a schema, or a kernel.
fn known(target: &Target, said: &str) -> Option<String> {
    let has = |text: &&str| said.contains(text);
    let is_of_function = matches!(target, Target::Fentry(_) | Target::Fexit(_));
    let is_typed = is_of_function || matches!(target, Target::TpBtf(_));
    if is_of_function && ["-EPERM", "-ENOTSUPP", "-EOPNOTSUPP"].iter().any(has) {
        return Some(format!("{NO_FUNCTIONS}; take a tracepoint, or `kprobe:`"));
    }
    of_programs(is_typed, has).map(str::to_owned)
}

/// What can be the matter with a program, at whatever place.
fn of_programs(is_typed: bool, has: impl Fn(&&str) -> bool) -> Option<&'static str> {
    if ["BPF program is too large", "-E2BIG", "is too complex"].iter().any(&has) {
        return Some(
            "what is logged there is too much for one program; log fewer events or simpler values, or some of them at another point",
        );
    }
    if is_typed && has(&"_or_null_") {
        return Some(
            "this kernel may hand over 0 there instead of an address that is looked through; ask first, as in `when NAME != 0`, or take `raw_tp:` of the same tracepoint, which finds 0 behind it then",
        );
    }
    if is_typed && ["cannot access ptr member", "access beyond the end of member"].iter().any(&has) {
        return Some(
            "it lets a program look into the first member of a union only; take `raw_tp:` or `kprobe:` of the same place, which read any",
        );
    }
    let is_stack = ["combined stack size", "stack limit"].iter().any(&has);
    is_stack.then_some("its texts and values do not fit the 512 bytes of a program's stack; log fewer")
}

fn by_verifier(verdict: &str) -> String {
    format!("its verifier says \"{verdict}\"; this is a fault of mete if the schema is right")
}

/// The last thing that the verifier says, its statistics aside.
fn verdict(said: &str) -> Option<&str> {
    let (_, log) = said.split_once("BEGIN PROG LOAD LOG")?;
    let log = log.split("END PROG LOAD LOG").next()?;
    let is_verdict = |line: &&str| !line.is_empty() && !line.starts_with(['-', ';']) && !is_statistic(line);
    log.lines().map(str::trim).rfind(is_verdict)
}

fn is_statistic(line: &str) -> bool {
    ["processed ", "verification time", "stack depth", "max_states"].iter().any(|word| line.starts_with(word))
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    fn said(target: Target, detail: &str) -> String {
        let point = Point { program: "mete_at_3".to_owned(), target, events: Vec::new() };
        let source = libbpf_rs::Error::from(io::Error::from_raw_os_error(libc::EPERM));
        let error = KernelError::Refused { detail: format!("\nlibbpf: {detail}"), source };
        let text = explain(error, &[point]).to_string();
        text.lines().next().unwrap_or_default().to_owned()
    }

    #[test]
    fn klog_8_what_the_kernel_refuses_is_told_in_the_words_of_the_schema() {
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
    fn klog_8_point_that_the_kernel_has_no_means_for_is_told_so() {
        let absent = || libbpf_rs::Error::from(io::Error::from(io::ErrorKind::NotFound));
        let said = not_attached(&Target::Kprobe("vfs_read".to_owned()), absent()).to_string();
        let expected = "cannot record at kprobe:vfs_read: this kernel has no breakpoints (kprobes) for programs, see mete \
            doctor; take a tracepoint";
        assert_eq!(said, expected);
    }
}
