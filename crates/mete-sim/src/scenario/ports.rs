//! Which ports programs send to and receive on. A packet to a port on which no task receives is thrown away,
//! and a task that receives what is never sent waits for ever: both are mistakes.

use std::ops::Range;

use mete_policy::ClientId;

use super::error::Fault;

/// What the programs of these clients do with a port.
struct PortUse {
    whose: Range<ClientId>,
    port: u16,
    span: Range<usize>,
}

/// A message to a client's port.
struct PortMessage {
    to: ClientId,
    port: u16,
    span: Range<usize>,
}

/// All uses of ports in a scenario.
#[derive(Default)]
pub(super) struct Ports {
    whose: Range<ClientId>,
    received: Vec<PortUse>,
    /// Ports to which answers come.
    asked_from: Vec<PortUse>,
    sent: Vec<PortMessage>,
}

impl Ports {
    /// The programs that are read from now on are those of `count` clients from `first` on.
    pub(super) fn of(&mut self, first: usize, count: u32) {
        self.whose = ClientId::at(first)..ClientId::at(first.saturating_add(count as usize));
    }

    /// A program receives on this port, which is also the result.
    pub(super) fn receive(&mut self, port: u16, span: Range<usize>) -> u16 {
        self.received.push(PortUse { whose: self.whose.clone(), port, span });
        port
    }

    pub(super) fn ask_from(&mut self, port: u16, span: Range<usize>) {
        self.asked_from.push(PortUse { whose: self.whose.clone(), port, span });
    }

    pub(super) fn send(&mut self, to: ClientId, port: u16, span: Range<usize>) {
        self.sent.push(PortMessage { to, port, span });
    }

    /// Checks that every message has a receiver and every receiver a sender.
    pub(super) fn check(&self) -> Result<(), Fault> {
        self.sent.iter().try_for_each(|sent| self.is_heard(sent))?;
        self.received.iter().try_for_each(|received| self.is_served(received))
    }

    fn is_heard(&self, sent: &PortMessage) -> Result<(), Fault> {
        let heard = self.received.iter().filter(|received| received.whose.contains(&sent.to));
        let mut ports: Vec<u16> = heard.map(|received| received.port).collect();
        if ports.contains(&sent.port) {
            return Ok(());
        }
        ports.sort_unstable();
        ports.dedup();
        let ports: Vec<String> = ports.iter().map(u16::to_string).collect();
        let allowed = if ports.is_empty() { "it receives on none".into() } else { ports.join(", ") };
        let what = format!("port: no task of its receiver receives on {}; allowed: {allowed}", sent.port);
        Err(Fault::new(sent.span.clone(), what))
    }

    fn is_served(&self, received: &PortUse) -> Result<(), Fault> {
        let PortUse { whose, port, span } = received;
        let is_sent = self.sent.iter().any(|sent| sent.port == *port && whose.contains(&sent.to));
        // An answer comes to the client that asked, so its own programs have to receive it.
        let is_answered = self.asked_from.iter().any(|asked| asked.port == *port && asked.whose == *whose);
        if is_sent || is_answered {
            return Ok(());
        }
        let what = format!(
            "port: no packet comes to {port}: no task and no [[remote]] sends there, and no task asks from it"
        );
        Err(Fault::new(span.clone(), what))
    }
}
