//! Blocks: what trace files are made of. `docs/trace-format.md` describes every byte.
//!
//! A block has a fixed size and a fixed place in the file, and holds whole records. Its header says which
//! records these are. So a reader finds a block by its number, or by time through a binary search over the
//! headers, even if the blocks around it are damaged.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::record::{HEADER_BYTES as RECORD_HEADER, Head, MAX_BYTES, STAMP_OFFSET, is_sound_size, unfold};

/// The first bytes of every block.
pub const MAGIC: [u8; 8] = *b"METEBLK\0";
/// The version of the format.
pub const VERSION: u16 = 1;
/// Bytes of a block's header.
pub const HEADER_BYTES: usize = 128;
/// The unit of a block's size.
pub const UNIT: u32 = 4096;
/// The smallest block: it must hold any record.
pub const MIN_BYTES: u32 = 2 * UNIT;
/// The largest block.
pub const MAX_BLOCK_BYTES: u32 = 16 << 20;
/// The default size. For each processor, a killed recorder loses less than this, in addition to what was
/// still in the buffer. The header takes one five-hundredth of a block, and a search in a gigabyte needs
/// fourteen reads.
pub const DEFAULT_BLOCK_BYTES: u32 = 64 << 10;

/// Flag: the recording was stopped in order; no block follows.
pub const FLAG_LAST: u32 = 1;
/// Flag: in this file, up to the end of this block, a time stamp was earlier than one before it. So times do
/// not tell where to look.
pub const FLAG_DISORDER: u32 = 2;

/// Where the fields of a header lie.
pub mod offset {
    use core::mem::offset_of;

    use super::Header;

    /// [`MAGIC`](super::MAGIC).
    pub const MAGIC: usize = offset_of!(Header, magic);
    /// u16: [`VERSION`](super::VERSION).
    pub const VERSION: usize = offset_of!(Header, version);
    /// u16: bytes of the header.
    pub const HEADER_BYTES: usize = offset_of!(Header, header_bytes);
    /// u32: bytes of every block of the file.
    pub const BLOCK_BYTES: usize = offset_of!(Header, block_bytes);
    /// u32: the processor.
    pub const PROCESSOR: usize = offset_of!(Header, processor);
    /// u32: flags.
    pub const FLAGS: usize = offset_of!(Header, flags);
    /// u64: the block's number.
    pub const NUMBER: usize = offset_of!(Header, number);
    /// u64: serial number of the first record.
    pub const FIRST_SERIAL: usize = offset_of!(Header, first_serial);
    /// u64: one more than the serial number of the last event that this block accounts for.
    pub const END_SERIAL: usize = offset_of!(Header, end_serial);
    /// u64: events lost between the previous block and the first record.
    pub const LOST_BEFORE: usize = offset_of!(Header, lost_before);
    /// u64: events lost from the first record on, up to the end serial.
    pub const LOST_INSIDE: usize = offset_of!(Header, lost_inside);
    /// u64: the earliest time stamp in the block.
    pub const FIRST_TIME: usize = offset_of!(Header, first_time);
    /// u64: the latest time stamp of the file up to the end of this block.
    pub const LAST_TIME: usize = offset_of!(Header, last_time);
    /// u32: records.
    pub const RECORDS: usize = offset_of!(Header, records);
    /// u32: bytes of records.
    pub const USED: usize = offset_of!(Header, used);
    /// 16 bytes: the recording that the block belongs to.
    pub const RECORDING: usize = offset_of!(Header, recording);
    /// 20 bytes: zero.
    pub const RESERVED: usize = offset_of!(Header, reserved);
    /// u32: checksum.
    pub const CHECKSUM: usize = offset_of!(Header, checksum);
}

/// A recording's number, drawn at random, so that blocks of another recording are not taken for its own.
pub type RecordingId = [u8; 16];

/// What a block says about itself: these bytes stand at its front, in this order.
///
/// The numbers are little endian and need no alignment, so that the fields are the bytes of the file. A
/// header that was read has any values until [`Header::decode`] has checked them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Header {
    magic: [u8; 8],
    version: U16,
    header_bytes: U16,
    /// Bytes of every block of the file.
    pub block_bytes: U32,
    /// The processor.
    pub processor: U32,
    /// [`FLAG_LAST`], [`FLAG_DISORDER`].
    pub flags: U32,
    /// The block's number: one more than that of the previous block.
    pub number: U64,
    /// Serial number of the first record. In a block without records, it equals `end_serial`.
    pub first_serial: U64,
    /// One more than the serial number of the last event that this block accounts for. That is the last
    /// record, except in the last block of a recording, where losses after the last record count, too.
    pub end_serial: U64,
    /// Events lost between the previous block and the first record.
    pub lost_before: U64,
    /// Events lost from the first record on, up to `end_serial`.
    pub lost_inside: U64,
    /// The earliest time stamp in the block, in ticks.
    pub first_time: U64,
    /// The latest time stamp of the file up to the end of this block, in ticks.
    pub last_time: U64,
    /// The number of records.
    pub records: U32,
    /// Bytes of records after the header.
    pub used: U32,
    /// The recording.
    pub recording: RecordingId,
    reserved: [u8; 20],
    /// The checksum of header and records.
    pub checksum: U32,
}

const _: () = assert!(size_of::<Header>() == HEADER_BYTES);

impl Default for Header {
    /// What is the same in all headers. All other numbers are zero.
    fn default() -> Header {
        Header {
            magic: MAGIC,
            version: VERSION.into(),
            header_bytes: (HEADER_BYTES as u16).into(),
            ..Header::new_zeroed()
        }
    }
}

/// What is wrong with a block, and at which byte of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("at byte {at} of the block: {what}")]
pub struct Damage {
    /// Bytes from the beginning of the block.
    pub at: usize,
    /// What is wrong.
    pub what: DamageKind,
}

/// The kinds of damage.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DamageKind {
    /// All bytes are zero: the block was never written, as after a power failure.
    #[error("nothing was written here")]
    Unwritten,
    /// The bytes are no block.
    #[error("this does not begin like a block")]
    Magic,
    /// The block has a later format.
    #[error("format version {0}; this program reads version {VERSION}")]
    Version(u16),
    /// A number does not fit the file or the other numbers.
    #[error("the {0} in the header cannot be right")]
    Field(&'static str),
    /// The bytes are not the ones that were written.
    #[error("the checksum is {found:#010x}, but the content's is {computed:#010x}")]
    Checksum {
        /// The checksum in the header.
        found: u32,
        /// The checksum of the bytes.
        computed: u32,
    },
    /// A record has a size that no record has, or reaches beyond the block.
    #[error("there cannot be a record of {0} bytes here")]
    RecordSize(u16),
    /// A record is out of order.
    #[error("serial number {found} follows {before}")]
    RecordSerial {
        /// The record's serial number.
        found: u64,
        /// The serial number before it.
        before: u64,
    },
}

impl Header {
    /// Reads a header. Its numbers are checked against each other, but the checksum is not checked.
    ///
    /// # Errors
    ///
    /// [`Damage`] if these bytes are not the header of a block in a file whose blocks have `block_bytes`
    /// bytes.
    pub fn decode(bytes: &[u8; HEADER_BYTES], block_bytes: u32) -> Result<Header, Damage> {
        let header: Header = zerocopy::transmute!(*bytes);
        header.check_kind()?;
        match header.fault(block_bytes) {
            None => Ok(header),
            Some((at, name)) => Err(Damage { at, what: DamageKind::Field(name) }),
        }
    }

    fn check_kind(&self) -> Result<(), Damage> {
        if self.as_bytes().iter().all(|byte| *byte == 0) {
            return Err(Damage { at: 0, what: DamageKind::Unwritten });
        }
        if self.magic != MAGIC {
            return Err(Damage { at: offset::MAGIC, what: DamageKind::Magic });
        }
        match self.version.get() {
            VERSION => Ok(()),
            other => Err(Damage { at: offset::VERSION, what: DamageKind::Version(other) }),
        }
    }

    /// The first field that cannot be right: its offset and its name.
    fn fault(&self, block_bytes: u32) -> Option<(usize, &'static str)> {
        // Any number may be wrong here, so nothing is computed that could overflow.
        let accounted = u64::from(self.records).checked_add(self.lost_inside.get());
        let least = u64::from(self.records) * RECORD_HEADER as u64;
        let used = self.used.get();
        let checks = [
            (usize::from(self.header_bytes) == HEADER_BYTES, offset::HEADER_BYTES, "header size"),
            (self.block_bytes == block_bytes, offset::BLOCK_BYTES, "block size"),
            (self.flags.get() & !(FLAG_LAST | FLAG_DISORDER) == 0, offset::FLAGS, "set of flags"),
            (
                used <= block_bytes - HEADER_BYTES as u32 && used.is_multiple_of(8),
                offset::USED,
                "number of used bytes",
            ),
            (u64::from(used) >= least, offset::RECORDS, "number of records"),
            (
                self.end_serial.get().checked_sub(self.first_serial.get()) == accounted
                    && accounted.is_some(),
                offset::END_SERIAL,
                "end serial number",
            ),
            (self.lost_before <= self.first_serial, offset::LOST_BEFORE, "number of events lost before"),
            (self.first_time <= self.last_time, offset::LAST_TIME, "last time"),
            (self.reserved == [0; 20], offset::RESERVED, "reserved part"),
        ];
        checks.into_iter().find(|(holds, ..)| !holds).map(|(_, at, name)| (at, name))
    }

    /// Writes the header to the front of a block.
    pub fn encode(&self, block: &mut [u8]) {
        block[..HEADER_BYTES].copy_from_slice(self.as_bytes());
    }

    /// Bytes of the block that are written: the header and the records.
    pub fn written_bytes(&self) -> usize {
        HEADER_BYTES + self.used.get() as usize
    }

    /// Whether the recording was stopped in order after this block.
    pub fn is_last(&self) -> bool {
        self.flags.get() & FLAG_LAST != 0
    }
}

/// The checksum of a block, of which `block` has all bytes that are written. It is the CRC-32 of zlib over
/// header and records, with zeroes in the place of the checksum itself.
pub fn checksum(block: &[u8]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    sum.update(&block[..offset::CHECKSUM]);
    sum.update(&[0; 4]);
    sum.update(&block[HEADER_BYTES..]);
    sum.finalize()
}

/// Checks a block's records against its header: sizes, serial numbers, counts. `block` has all bytes that are
/// written of the block.
///
/// # Errors
///
/// [`Damage`] with the byte at which something is wrong.
pub fn check(header: &Header, block: &[u8]) -> Result<(), Damage> {
    let computed = checksum(block);
    if header.checksum != computed {
        let what = DamageKind::Checksum { found: header.checksum.get(), computed };
        return Err(Damage { at: offset::CHECKSUM, what });
    }
    // The used bytes and every record's bytes are multiples of 8, so a whole word can be read at each `at`.
    let (mut at, mut records, mut expected) = (HEADER_BYTES, 0, header.first_serial.get());
    while at < block.len() {
        let (bytes, serial) = check_record(header, block, at, expected)?;
        expected = serial + 1;
        records += 1;
        at += bytes;
    }
    if header.records == records && header.end_serial >= expected {
        Ok(())
    } else {
        Err(Damage { at: offset::RECORDS, what: DamageKind::Field("number of records") })
    }
}

fn check_record(header: &Header, block: &[u8], at: usize, expected: u64) -> Result<(usize, u64), Damage> {
    let head = Head::from_word(u64_at(block, at));
    if !head.is_sound() || usize::from(head.bytes) > block.len() - at {
        return Err(Damage { at, what: DamageKind::RecordSize(head.bytes) });
    }
    let serial = unfold(expected, head.serial);
    // The first record must have the header's first serial number; each later one may follow a gap.
    let starts_right = at > HEADER_BYTES || header.first_serial == serial;
    if !starts_right || !(expected..header.end_serial.get()).contains(&serial) {
        let what = DamageKind::RecordSerial { found: serial, before: expected.wrapping_sub(1) };
        return Err(Damage { at, what });
    }
    Ok((usize::from(head.bytes), serial))
}

pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[at..at + 8]);
    u64::from_le_bytes(word)
}

/// Whether blocks may have this size.
pub fn is_sound_block_size(bytes: u32) -> bool {
    (MIN_BYTES..=MAX_BLOCK_BYTES).contains(&bytes) && bytes.is_multiple_of(UNIT)
}

/// Builds the blocks of one processor, one after the other.
#[derive(Debug)]
pub struct Builder {
    header: Header,
    bytes: Vec<u8>,
    /// The serial number after the last event that the blocks so far account for.
    next_serial: u64,
}

impl Builder {
    /// Begins block 0.
    pub fn new(recording: RecordingId, processor: u32, block_bytes: u32) -> Builder {
        assert!(is_sound_block_size(block_bytes), "blocks of {block_bytes} bytes");
        let header = Header {
            block_bytes: block_bytes.into(),
            processor: processor.into(),
            recording,
            ..Header::default()
        };
        Builder { header, bytes: Vec::new(), next_serial: 0 }
    }

    /// Whether the open block has no record yet.
    pub fn is_empty(&self) -> bool {
        self.header.records == 0
    }

    /// Records in the open block.
    pub fn records(&self) -> u32 {
        self.header.records.get()
    }

    fn block_bytes(&self) -> usize {
        self.header.block_bytes.get() as usize
    }

    /// Whether not even the smallest record fits into the open block any more.
    pub fn is_full(&self) -> bool {
        self.bytes.len() + RECORD_HEADER > self.block_bytes()
    }

    /// Adds a record; false if it does not fit into this block. Serial numbers must rise.
    #[inline]
    pub fn push(&mut self, serial: u64, record: &[u64]) -> bool {
        let bytes = record.len() * 8;
        debug_assert!(is_sound_size(bytes) && bytes <= MAX_BYTES && serial >= self.next_serial);
        if self.bytes.is_empty() {
            // Room for the whole block at once, so that no later record of it allocates.
            self.bytes.reserve_exact(self.block_bytes());
            self.bytes.resize(HEADER_BYTES, 0);
        }
        if self.bytes.len() + bytes > self.block_bytes() {
            return false;
        }
        self.account(serial, record[STAMP_OFFSET / 8]);
        let at = self.bytes.len();
        self.bytes.resize(at + bytes, 0);
        let places = self.bytes[at..].chunks_exact_mut(8);
        places.zip(record).for_each(|(to, word)| to.copy_from_slice(&word.to_le_bytes()));
        true
    }

    #[inline]
    fn account(&mut self, serial: u64, time: u64) {
        let header = &mut self.header;
        let lost = serial - self.next_serial;
        if header.records == 0 {
            header.first_serial = serial.into();
            header.lost_before = lost.into();
            header.first_time = time.into();
        } else {
            header.lost_inside += lost;
            header.first_time = header.first_time.min(time.into());
        }
        // The flag and the latest time go on from block to block: a search needs them for the file up to
        // here.
        if header.last_time > time {
            header.flags |= FLAG_DISORDER;
        }
        header.last_time = header.last_time.max(time.into());
        header.records += 1;
        self.next_serial = serial + 1;
    }

    /// Closes the block and begins the next one.
    pub fn seal(&mut self) -> Block {
        self.seal_at(self.next_serial)
    }

    /// Closes the last block of a recording, in which `occurred` events occurred in all. The events that were
    /// lost after the last record are among them.
    pub fn seal_last(&mut self, occurred: u64) -> Block {
        self.header.flags |= FLAG_LAST;
        self.seal_at(occurred.max(self.next_serial))
    }

    fn seal_at(&mut self, end_serial: u64) -> Block {
        let behind = end_serial - self.next_serial;
        let mut header = self.header;
        if header.records == 0 {
            (header.first_serial, header.lost_before, header.first_time) =
                (end_serial.into(), behind.into(), header.last_time);
        } else {
            header.lost_inside += behind;
        }
        header.end_serial = end_serial.into();
        let mut bytes = core::mem::take(&mut self.bytes);
        bytes.resize(bytes.len().max(HEADER_BYTES), 0);
        header.used = ((bytes.len() - HEADER_BYTES) as u32).into();
        header.encode(&mut bytes);
        // The checksum takes its own bytes as zero, so the header is encoded first without it and then with
        // it.
        header.checksum = checksum(&bytes).into();
        header.encode(&mut bytes);
        self.next_serial = end_serial;
        self.begin_next();
        Block { header, bytes }
    }

    fn begin_next(&mut self) {
        let old = self.header;
        self.header = Header {
            block_bytes: old.block_bytes,
            processor: old.processor,
            recording: old.recording,
            number: old.number + 1,
            flags: old.flags & FLAG_DISORDER,
            last_time: old.last_time,
            ..Header::default()
        };
    }
}

/// A closed block.
#[derive(Clone, Debug)]
pub struct Block {
    /// The header.
    pub header: Header,
    /// Header and records. The bytes from here to the block's size are not written.
    pub bytes: Vec<u8>,
}
