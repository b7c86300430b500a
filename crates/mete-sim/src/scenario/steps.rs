//! From the steps of a program as they are written to its instructions.

use std::ops::Range;
use std::sync::Arc;

use mete_policy::ClientId;
use toml::Spanned;

use super::error::Fault;
use super::names::{LockStep, Names};
use super::table::StepTable;
use super::value::{NS_PER_MS, NS_PER_US, Varying};
use crate::random::Distribution;
use crate::scene::{Op, Program};

const BYTES_PER_KB: f64 = 1024.0;

/// The program of a task. Every name that it uses must exist, except the names of locks.
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
    let fault = |what: String| Err(Fault::new(task.span(), what));
    let name = task.get_ref();
    if !program.takes_time() {
        return fault(format!(
            "program: that of {name:?} takes no time, so it would never end; it has to compute, sleep, read or \
             receive"
        ));
    }
    if !program.keeps_spin_locks_briefly() {
        return fault(format!(
            "program: between spin_lock and its unlock, that of {name:?} may compute, repeat and be done, and \
             nothing else: a task that spins for the lock uses up processor time meanwhile"
        ));
    }
    Ok(Arc::new(program))
}

fn push(program: &mut Program, steps: &[Spanned<StepTable>], names: &mut Names) -> Result<(), Fault> {
    steps.iter().try_for_each(|step| push_one(program, step, names))
}

fn push_one(program: &mut Program, step: &Spanned<StepTable>, names: &mut Names) -> Result<(), Fault> {
    let (at, span) = (StepPlace(step.span()), step.span());
    let op = match step.get_ref() {
        StepTable::ComputeMs(length) => Op::Compute(at.number("compute_ms", length, NS_PER_MS)?),
        StepTable::ComputeUs(length) => Op::Compute(at.number("compute_us", length, NS_PER_US)?),
        StepTable::SleepMs(length) => Op::Sleep(at.number("sleep_ms", length, NS_PER_MS)?),
        StepTable::SleepUs(length) => Op::Sleep(at.number("sleep_us", length, NS_PER_US)?),
        StepTable::Read { disk, kb } | StepTable::ReadOn { disk, kb } => Op::Read {
            disk: names.disks.find("disk", disk)?,
            bytes: at.number("kb", kb, BYTES_PER_KB)?,
            goes_on: matches!(step.get_ref(), StepTable::ReadOn { .. }),
        },
        &StepTable::Receive { port } => Op::Receive { port: names.ports.receive(port, span) },
        StepTable::ReceiveAll { port, each_us } => {
            let each = at.number("each_us", each_us, NS_PER_US)?;
            Op::ReceiveAll { port: names.ports.receive(*port, span), each }
        }
        StepTable::Request { remote, port, bytes } => at.request(remote, *port, bytes, names)?,
        StepTable::Reply { bytes } => Op::Reply { bytes: at.number("bytes", bytes, 1.0)? },
        StepTable::Send { to, port, bytes } => at.send(to, *port, bytes, names)?,
        StepTable::Lock(lock) => Op::Lock(names.lock(lock, span, LockStep::Take)),
        StepTable::SpinLock(lock) => Op::SpinLock(names.lock(lock, span, LockStep::SpinFor)),
        StepTable::Unlock(lock) => Op::Unlock(names.lock(lock, span, LockStep::HandOn)),
        StepTable::Yield => Op::Yield,
        StepTable::Done => Op::Done,
        StepTable::Repeat { times, program: steps } => {
            return program.repeat(*times, |program| push(program, steps, names));
        }
    };
    program.push(op);
    Ok(())
}

/// The place of a step in the text.
struct StepPlace(Range<usize>);

impl StepPlace {
    fn number(&self, key: &str, value: &Varying, per_unit: f64) -> Result<Distribution, Fault> {
        value.distribution(per_unit).map_err(|what| Fault::new(self.0.clone(), format!("{key}: {what}")))
    }

    fn request(
        &self,
        remote: &Spanned<String>,
        port: u16,
        bytes: &Varying,
        names: &mut Names,
    ) -> Result<Op, Fault> {
        let remote = names.remotes.find("remote", remote)? as u16;
        names.ports.ask_from(port, self.0.clone());
        Ok(Op::Request { remote, port, bytes: self.number("bytes", bytes, 1.0)? })
    }

    fn send(&self, to: &Spanned<String>, port: u16, bytes: &Varying, names: &mut Names) -> Result<Op, Fault> {
        let to = ClientId::at(names.clients.find("to", to)?);
        names.ports.send(to, port, self.0.clone());
        // A reply comes to the port that the message came from.
        names.ports.ask_from(port, self.0.clone());
        Ok(Op::Send { to, port, bytes: self.number("bytes", bytes, 1.0)? })
    }
}
