//! From the steps of a program as they are written to its instructions.

use std::sync::Arc;

use mete_policy::ClientId;
use toml::Spanned;

use super::check::{NS_PER_MS, NS_PER_US, Names};
use super::error::Fault;
use super::table::StepTable;
use super::value::Varying;
use crate::scene::{Op, Program};

const BYTES_PER_KB: f64 = 1024.0;

/// The program of a task; names that it uses must exist, except those of locks.
pub(super) fn program(
    task: &Spanned<String>,
    times: Option<u64>,
    steps: &[Spanned<StepTable>],
    names: &mut Names,
) -> Result<Arc<Program>, Fault> {
    if times == Some(0) {
        return Err(Fault::new(task.span(), "times: 1 or more, not 0; without it, for ever"));
    }
    let mut program = Program::new(times);
    push(&mut program, steps, names)?;
    if program.takes_time() {
        Ok(Arc::new(program))
    } else {
        let what = format!(
            "program: that of {:?} takes no time, so it would never end; it has to compute, sleep, read or receive",
            task.get_ref()
        );
        Err(Fault::new(task.span(), what))
    }
}

fn push(program: &mut Program, steps: &[Spanned<StepTable>], names: &mut Names) -> Result<(), Fault> {
    steps.iter().try_for_each(|step| push_one(program, step, names))
}

fn push_one(program: &mut Program, step: &Spanned<StepTable>, names: &mut Names) -> Result<(), Fault> {
    let varying = |key: &str, value: &Varying, per_unit| {
        value.distribution(per_unit).map_err(|what| Fault::new(step.span(), format!("{key}: {what}")))
    };
    let bytes = |value| varying("bytes", value, 1.0);
    let kb = |value| varying("kb", value, BYTES_PER_KB);
    let op = match step.get_ref() {
        StepTable::ComputeMs(length) => Op::Compute(varying("compute_ms", length, NS_PER_MS)?),
        StepTable::ComputeUs(length) => Op::Compute(varying("compute_us", length, NS_PER_US)?),
        StepTable::SleepMs(length) => Op::Sleep(varying("sleep_ms", length, NS_PER_MS)?),
        StepTable::SleepUs(length) => Op::Sleep(varying("sleep_us", length, NS_PER_US)?),
        StepTable::Read { disk, kb: length } => {
            Op::Read { disk: names.disks.find("disk", disk)?, bytes: kb(length)? }
        }
        StepTable::ReadOn { disk, kb: length } => {
            Op::ReadOn { disk: names.disks.find("disk", disk)?, bytes: kb(length)? }
        }
        &StepTable::Receive { port } => {
            names.ports.receive(port, step.span());
            Op::Receive { port }
        }
        &StepTable::ReceiveAll { port, each_us } => {
            names.ports.receive(port, step.span());
            Op::ReceiveAll { port, each: varying("each_us", &each_us, NS_PER_US)? }
        }
        StepTable::Request { remote, port, bytes: length } => {
            let remote = names.remotes.find("remote", remote)? as u16;
            names.ports.ask_from(*port, step.span());
            Op::Request { remote, port: *port, bytes: bytes(length)? }
        }
        StepTable::Reply { bytes: length } => Op::Reply { bytes: bytes(length)? },
        StepTable::Send { to, port, bytes: length } => {
            let to = names.clients.find("to", to)? as ClientId;
            names.ports.send(to, *port, step.span());
            // Whoever replies replies to the port that it came from.
            names.ports.ask_from(*port, step.span());
            Op::Send { to, port: *port, bytes: bytes(length)? }
        }
        StepTable::Lock(lock) => Op::Lock(names.take(lock, step.span())),
        StepTable::Unlock(lock) => Op::Unlock(names.hand_on(lock, step.span())),
        StepTable::Yield => Op::Yield,
        StepTable::Done => Op::Done,
        StepTable::Repeat { times, program: steps } => {
            return program.repeat(*times, |program| push(program, steps, names));
        }
    };
    program.push(op);
    Ok(())
}
