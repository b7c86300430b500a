//! The protocol between component and scheduler: packets of one fixed size over a `SOCK_SEQPACKET` socket
//! (design decision D7).
//!
//! ```text
//!   0   magic    "METE"
//!   4   version  16 bits
//!   6   kind     16 bits
//!   8   token    32 bits, chosen by the scheduler, repeated in the answer
//!   12  a        32 bits, its meaning depends on the kind
//!   16  b        32 bits, its meaning depends on the kind
//!   20  name     64 bytes of text, padded with NUL
//! ```
//!
//! All numbers are little-endian. Fields that a kind does not use are zero. A packet whose unused fields are
//! not zero is refused, so every packet has exactly one form.

use mete_base::letters;
use mete_log::{DomainId, EventId, Shape};

use crate::event::ProbeKind;

/// Bytes of every packet.
pub const PACKET_BYTES: usize = 84;
/// Bytes of a name. Shorter names are padded, longer ones are cut.
pub const NAME_BYTES: usize = 64;
/// The protocol's version. Both sides must have the same.
pub const VERSION: u16 = 1;
const MAGIC: [u8; 4] = *b"METE";

/// Why bytes are not a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WireError {
    /// Too short or too long.
    #[error("a packet of {found} bytes; all have {PACKET_BYTES}")]
    Length {
        /// Bytes received.
        found: usize,
    },
    /// The first word is not this protocol's.
    #[error("not a packet of this protocol")]
    Magic,
    /// The other end speaks another version of the protocol.
    #[error(
        "protocol version {found}; this side speaks {VERSION}: use the same version of mete on both sides"
    )]
    Version {
        /// The other side's version.
        found: u16,
    },
    /// The kind does not exist, or the fields do not fit the kind.
    #[error("garbled packet of kind {kind}")]
    Garbled {
        /// The kind's number.
        kind: u16,
    },
}

/// A name as packets have it: printable text of at most [`NAME_BYTES`] bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Name([u8; NAME_BYTES]);

impl Name {
    /// No name.
    pub const EMPTY: Name = Name([0; NAME_BYTES]);

    /// The name from the beginning of a text. Letters that are [hidden](letters::is_hidden) are replaced,
    /// because names are shown on terminals.
    pub fn new(text: &str) -> Name {
        let mut bytes = [0; NAME_BYTES];
        let mut used = 0;
        for letter in text.chars().map(letters::shown) {
            // Cut between letters: the first one that does not fit is the end.
            let Some(place) = bytes.get_mut(used..used + letter.len_utf8()) else { break };
            letter.encode_utf8(place);
            used += letter.len_utf8();
        }
        Name(bytes)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        let end = self.0.iter().position(|&byte| byte == 0).unwrap_or(NAME_BYTES);
        core::str::from_utf8(&self.0[..end]).unwrap_or_default()
    }

    /// The name from its bytes, if `new` makes such a name.
    fn decode(bytes: [u8; NAME_BYTES]) -> Option<Name> {
        let name = Name(bytes);
        (Name::new(name.as_str()) == name).then_some(name)
    }
}

impl core::fmt::Debug for Name {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.as_str().fmt(f)
    }
}

/// Why a component did not do what it was asked to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The packet was not understood.
    #[error("it did not understand the request")]
    NotUnderstood,
    /// No memory was provided yet, and no probe runs without a reader.
    #[error("no log memory was provided to it yet")]
    NoMemory,
    /// Memory came without its descriptor, is not sealed, or has the wrong size.
    #[error("it refused the offered log memory (it must be one memory file, sealed, of the right size)")]
    BadMemory,
    /// Memory was provided before.
    #[error("it has log memory already")]
    HasMemory,
    /// It has no such event, or the log area has no room for it.
    #[error("it has no such event, or its log area has no room for it")]
    NoSuchEvent,
    /// Code could not be patched.
    #[error("its code could not be patched (METE_DEBUG=1 in its environment shows why)")]
    NotPatched,
    /// It has no such thread.
    #[error("it has no such thread")]
    NoSuchThread,
    /// The log area has no such domain.
    #[error("its log area has no such domain")]
    NoSuchDomain,
}

impl Refusal {
    const ALL: [Refusal; 8] = [
        Refusal::NotUnderstood,
        Refusal::NoMemory,
        Refusal::BadMemory,
        Refusal::HasMemory,
        Refusal::NoSuchEvent,
        Refusal::NotPatched,
        Refusal::NoSuchThread,
        Refusal::NoSuchDomain,
    ];
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message {
    /// Component: its name and process, and the number of [`Message::Event`]s that follow.
    Hello {
        /// Its process, as it numbers itself.
        pid: u32,
        /// Its events.
        events: u32,
        /// The program.
        name: Name,
    },
    /// Component: one of its events.
    Event {
        /// Its number in rows.
        id: EventId,
        /// Its kind.
        kind: ProbeKind,
        /// Its name.
        name: Name,
    },
    /// Scheduler: memory for the logs. The memory file's descriptor is sent with the packet.
    Provide {
        /// The areas' shape.
        shape: Shape,
        /// Number of areas.
        processors: u32,
    },
    /// Scheduler: log this event from now on.
    Enable {
        /// Which.
        event: EventId,
    },
    /// Scheduler: do not log this event any more.
    Disable {
        /// Which.
        event: EventId,
    },
    /// Scheduler: a thread, or with `tid` 0 the process, belongs to a domain.
    Bind {
        /// The thread.
        tid: u32,
        /// Its domain.
        domain: DomainId,
    },
    /// Component: it has done what it was asked to do.
    Ack,
    /// Component: it has refused.
    Error(Refusal),
    /// Component: another scheduler has taken it.
    Busy {
        /// That scheduler's process.
        pid: u32,
    },
}

/// A message, and the token that connects an answer with its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Chosen by the scheduler. 0 if the message answers no request.
    pub token: u32,
    /// The content.
    pub message: Message,
}

impl Packet {
    /// The packet's bytes.
    pub fn encode(&self) -> [u8; PACKET_BYTES] {
        let (kind, a, b, name) = self.message.to_fields();
        let mut bytes = [0; PACKET_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&VERSION.to_le_bytes());
        bytes[6..8].copy_from_slice(&kind.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.token.to_le_bytes());
        bytes[12..16].copy_from_slice(&a.to_le_bytes());
        bytes[16..20].copy_from_slice(&b.to_le_bytes());
        bytes[20..].copy_from_slice(&name.0);
        bytes
    }

    /// The packet from its bytes.
    ///
    /// # Errors
    ///
    /// [`WireError`] for all bytes that `encode` does not make.
    pub fn decode(bytes: &[u8]) -> Result<Packet, WireError> {
        let bytes: &[u8; PACKET_BYTES] =
            bytes.try_into().map_err(|_| WireError::Length { found: bytes.len() })?;
        let half = |at: usize| u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let word = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        if bytes[..4] != MAGIC {
            return Err(WireError::Magic);
        }
        if half(4) != VERSION {
            return Err(WireError::Version { found: half(4) });
        }
        let mut name = [0; NAME_BYTES];
        name.copy_from_slice(&bytes[20..]);
        let message =
            Name::decode(name).and_then(|name| Message::from_fields(half(6), word(12), word(16), name));
        // Decoding drops bits that a kind does not use. Comparing the bytes finds them.
        let packet = message.map(|message| Packet { token: word(8), message });
        packet.filter(|packet| packet.encode() == *bytes).ok_or(WireError::Garbled { kind: half(6) })
    }
}

impl Message {
    fn to_fields(self) -> (u16, u32, u32, Name) {
        match self {
            Message::Hello { pid, events, name } => (1, pid, events, name),
            Message::Event { id, kind, name } => (2, id.get().into(), kind as u32, name),
            Message::Provide { shape, processors } => {
                (3, u32::from_le_bytes(shape.to_bytes()), processors, Name::EMPTY)
            }
            Message::Enable { event } => (4, event.get().into(), 0, Name::EMPTY),
            Message::Disable { event } => (5, event.get().into(), 0, Name::EMPTY),
            Message::Bind { tid, domain } => (6, tid, domain.get().into(), Name::EMPTY),
            Message::Ack => (7, 0, 0, Name::EMPTY),
            Message::Error(refusal) => (8, refusal as u32, 0, Name::EMPTY),
            Message::Busy { pid } => (9, pid, 0, Name::EMPTY),
        }
    }

    fn from_fields(kind: u16, a: u32, b: u32, name: Name) -> Option<Message> {
        Some(match kind {
            1 => Message::Hello { pid: a, events: b, name },
            2 => Message::Event { id: a.try_into().ok()?, kind: ProbeKind::from_number(b as u16)?, name },
            3 => Message::Provide { shape: Shape::from_bytes(a.to_le_bytes())?, processors: b },
            4 => Message::Enable { event: a.try_into().ok()? },
            5 => Message::Disable { event: a.try_into().ok()? },
            6 => Message::Bind { tid: a, domain: b.try_into().ok()? },
            7 => Message::Ack,
            8 => Message::Error(*Refusal::ALL.get(a as usize)?),
            9 => Message::Busy { pid: a },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn messages() -> Vec<Message> {
        let name = Name::new("a name");
        let mut messages = vec![
            Message::Hello { pid: 1, events: 2, name },
            Message::Provide { shape: Shape::COMPONENT, processors: 3 },
            Message::Enable { event: EventId::new(4) },
            Message::Disable { event: EventId::new(5) },
            Message::Bind { tid: 6, domain: DomainId::new(7) },
            Message::Ack,
            Message::Busy { pid: 8 },
        ];
        messages.extend(
            [ProbeKind::Access, ProbeKind::Phase, ProbeKind::Sample].map(|kind| Message::Event {
                id: EventId::new(9),
                kind,
                name,
            }),
        );
        messages.extend(Refusal::ALL.map(Message::Error));
        messages
    }

    #[test]
    fn log_11_every_message_comes_out_as_it_went_in() {
        for (token, message) in (1..).zip(messages()) {
            let packet = Packet { token, message };
            assert_eq!(Packet::decode(&packet.encode()), Ok(packet));
        }
    }

    #[test]
    fn log_11_a_packet_of_another_length_magic_or_version_is_refused() {
        let bytes = Packet { token: 0, message: Message::Ack }.encode();
        for length in (0..PACKET_BYTES).chain([PACKET_BYTES + 1]) {
            let mut other = bytes.to_vec();
            other.resize(length, 0);
            assert_eq!(Packet::decode(&other), Err(WireError::Length { found: length }));
        }
        let with = |at: usize, byte: u8| {
            let mut other = bytes;
            other[at] = byte;
            Packet::decode(&other)
        };
        assert_eq!(with(0, b'm'), Err(WireError::Magic));
        assert_eq!(with(4, 9), Err(WireError::Version { found: 9 }));
        assert_eq!(with(6, 77), Err(WireError::Garbled { kind: 77 }));
        assert_eq!(with(12, 1), Err(WireError::Garbled { kind: 7 }), "a field that an Ack has not");
    }

    #[test]
    fn log_11_names_are_cut_between_letters_and_hold_no_control_characters() {
        assert_eq!(Name::new("\x1b[31mred\n\0end").as_str(), "?[31mred??end");
        let long = Name::new(&"ä".repeat(40));
        assert_eq!(long.as_str(), "ä".repeat(32));
        assert_eq!(Name::new(&format!("x{}", "ä".repeat(40))).as_str().len(), 63);
    }

    proptest! {
        #[test]
        fn log_11_whatever_bytes_decode_to_encodes_to_the_same_bytes(
            message in 0..17_usize,
            changes in proptest::collection::vec((0..PACKET_BYTES, any::<u8>()), 0..4),
        ) {
            let messages = messages();
            let mut bytes = Packet { token: 5, message: messages[message % messages.len()] }.encode();
            for (at, byte) in changes {
                bytes[at] = byte;
            }
            if let Ok(packet) = Packet::decode(&bytes) {
                prop_assert_eq!(packet.encode(), bytes);
            }
        }
    }
}
