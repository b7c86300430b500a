//! Fills blocks with records and writes them.

use std::io;
use std::slice;
use std::sync::Arc;
use std::time::Instant;

use super::LONGEST_WAIT;
use super::link::{FlushLink, Report};
use crate::block::{Block, Builder};
use crate::sink::Sink;

/// Blocks that are written by one system call.
const BATCH: usize = 16;

/// Fills blocks with records and writes them.
pub(crate) struct BlockWriter {
    builder: Builder,
    sink: Box<dyn Sink>,
    /// Closed blocks that are not written yet.
    pending: Vec<Arc<Block>>,
    link: Arc<FlushLink>,
    /// When the first record came into the open block.
    opened: Option<Instant>,
    /// Whether a block is closed when it has waited long, full or not. What is in a file survives the
    /// recorder. What is in memory does not, and there small blocks would displace large ones.
    closes_early: bool,
}

impl BlockWriter {
    pub fn new(
        builder: Builder,
        sink: Box<dyn Sink>,
        link: Arc<FlushLink>,
        closes_early: bool,
    ) -> BlockWriter {
        BlockWriter { builder, sink, pending: Vec::new(), link, opened: None, closes_early }
    }

    /// Takes a record; false once a batch is full.
    pub fn push(&mut self, serial: u64, record: &[u64]) -> bool {
        if self.builder.push(serial, record) {
            return true;
        }
        // The open block is closed with the batch, so it counts.
        if self.pending.len() + 1 >= BATCH {
            return false;
        }
        self.seal();
        self.builder.push(serial, record)
    }

    /// Closes the open block, if it has records.
    pub fn seal(&mut self) {
        if !self.builder.is_empty() {
            self.pending.push(Arc::new(self.builder.seal()));
            self.opened = None;
        }
    }

    /// Closes the last block, with records or without: it says that the recording ends after `occurred`
    /// events.
    pub fn seal_last(&mut self, occurred: u64) {
        self.pending.push(Arc::new(self.builder.seal_last(occurred)));
    }

    /// Writes the closed blocks; false if that fails. The blocks are kept then, and the next call tries
    /// again.
    pub fn write(&mut self) -> bool {
        if self.builder.is_full() {
            self.seal();
        }
        if self.opened.is_none() && !self.builder.is_empty() {
            self.opened = Some(Instant::now());
        }
        let taken = match self.sink.take(&self.pending) {
            Ok(()) => self.pending.len(),
            Err(error) => self.write_singly(&error),
        };
        self.note(taken);
        self.pending.drain(..taken);
        self.pending.is_empty()
    }

    /// Writes as many blocks as there is room for, after `error` has shown that there is no room for all of
    /// them.
    fn write_singly(&mut self, error: &io::Error) -> usize {
        let refused = self.pending.iter().position(|block| self.sink.take(slice::from_ref(block)).is_err());
        refused
            .inspect(|_| self.link.report().write_error = Some(error.to_string()))
            .unwrap_or(self.pending.len())
    }

    /// Notes in the report that the first `taken` of the closed blocks are written.
    fn note(&self, taken: usize) {
        let mut report = self.link.report();
        if taken == self.pending.len() {
            report.write_error = None;
        }
        self.pending[..taken].iter().for_each(|block| report.note(block));
    }

    /// Tells the sink that a watched event has come: what is kept now, and what follows, must not be let go
    /// soon.
    pub fn hold(&mut self) {
        self.sink.hold();
    }

    /// Whether nothing has to be written before further records come.
    pub fn is_idle(&self) -> bool {
        self.pending.is_empty() && (self.builder.is_empty() || !self.closes_early)
    }

    /// Whether the open block has waited as long as it may.
    pub fn has_waited(&self) -> bool {
        self.closes_early && self.opened.is_some_and(|opened| opened.elapsed() >= LONGEST_WAIT)
    }

    /// Whether an open block that has waited as long as it may is closed.
    pub fn closes_early(&self) -> bool {
        self.closes_early
    }

    /// Records that were pushed, written or not.
    pub fn pushed(&self) -> u64 {
        self.link.report().account.records + self.unwritten() + u64::from(self.builder.records())
    }

    /// Records in closed blocks that are not written.
    fn unwritten(&self) -> u64 {
        self.pending.iter().map(|block| u64::from(block.header.records)).sum()
    }

    /// Completes the account after the last block: what could not be written is lost.
    pub fn close(&self, occurred: u64) {
        let account = &mut self.link.report().account;
        account.end_serial = occurred;
        account.unwritten = self.unwritten();
        account.lost = occurred - account.records;
    }
}

impl Report {
    /// Adds a block that is written.
    fn note(&mut self, block: &Block) {
        self.account.note(&block.header);
        self.bytes += block.bytes.len() as u64;
        self.blocks += 1;
    }
}
