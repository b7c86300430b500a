//! The layout of a log area: where everything lies, in bytes. This file is the one definition.
//! `include/mete_layout.h` says the same in C, and a test compares the two.
//!
//! ```text
//!   0        header             one page
//!   4096     control registers  64 bytes each, one per log file
//!            domain table       16 bytes per (domain, event), domain-major
//!            (page boundary)
//!            data               the log files' rows
//!            slack              64 bytes that a row may run into if its control word is garbled
//!            (page boundary)
//! ```

/// First word of every area: "METELOG" and the layout's version.
pub const MAGIC: u64 = u64::from_le_bytes(*b"METELOG\x01");

/// Bytes of the header. Everything that is mapped is a multiple of this.
pub const PAGE: usize = 4096;
/// Bytes of one control register: a cache line, so that two files never share one.
pub const REGISTER_BYTES: usize = 64;
/// Bytes of one domain-table entry.
pub const PAIR_BYTES: usize = 16;
/// Bytes behind the data that a row may run into if its control word is garbled (thesis §4.3.6).
pub const SLACK_BYTES: usize = 64;

/// Header: [`MAGIC`].
pub const HEADER_MAGIC: usize = 0;
/// Header: the four logarithms of [`Shape`], one byte each: files, domains, events, data.
pub const HEADER_SHAPE: usize = 8;
/// Header: the processor that the area belongs to, 32 bits.
pub const HEADER_PROCESSOR: usize = 12;
/// Header: the virtual clock, 64 bits, on a cache line of its own because the producer writes it.
pub const HEADER_VIRTUAL_CLOCK: usize = 64;

/// Register: the number of rows ever written. The producer commits a row by storing it.
pub const REGISTER_INDEX: usize = 0;
/// Register: the [`Control`](crate::Control) word. The scheduler writes it.
pub const REGISTER_CONTROL: usize = 8;
/// Register: the number of rows that the producer had to refuse, because the file was frozen or in use.
pub const REGISTER_LOST: usize = 16;
/// Register: non-zero while a producer writes a row that another producer can interrupt, 32 bits.
pub const REGISTER_BUSY: usize = 24;

/// Pair: the log file that this (event, domain) pair goes to, 16 bits.
pub const PAIR_SELECTOR: usize = 0;
/// Pair: flags, 16 bits: [`PAIR_KEEP_INTERNAL`].
pub const PAIR_FLAGS: usize = 2;
/// Pair: how many occurrences make one row, 32 bits. Both 0 and 1 mean that each occurrence does.
pub const PAIR_THRESHOLD: usize = 4;
/// Pair: occurrences since the last row, 32 bits. The producer writes it.
pub const PAIR_COUNT: usize = 8;

/// Flag of a pair: also log occurrences that stay inside the domain, which thesis §3.6.2 drops.
pub const PAIR_KEEP_INTERNAL: u16 = 1;

/// The number of files, domains and events that an area has room for, and the size of its data.
///
/// Both sides keep their own copy and never read it back from shared memory. The offsets are computed once,
/// because the handler needs them for every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    logarithms: [u8; 4],
    data_bytes: usize,
    data_offset: usize,
    area_bytes: usize,
}

impl Shape {
    /// The shape of user-level components: 256 files, 256 domains, 64 events, 1 MiB of rows. It is fixed, so
    /// that the compiler folds the handler's address arithmetic into constants.
    pub const COMPONENT: Shape = Shape::from_logarithms([8, 8, 6, 20]);
    /// The shape of the kernel component, a compile-time constant of its eBPF programs: 1024 files, so that
    /// each domain can have totals of several events; 256 domains, 32 events, 1 MiB of rows.
    pub const KERNEL: Shape = Shape::from_logarithms([10, 8, 5, 20]);

    /// A shape from the binary logarithms of its numbers. `None` if one is out of range: files 1–12, domains
    /// 1–15, events 0–10, bytes of data 12–27.
    pub const fn new(files: u8, domains: u8, events: u8, data: u8) -> Option<Shape> {
        let ok = files >= 1
            && files <= 12
            && domains >= 1
            && domains <= 15
            && events <= 10
            && data >= 12
            && data <= 27;
        if ok { Some(Shape::from_logarithms([files, domains, events, data])) } else { None }
    }

    const fn from_logarithms(logarithms: [u8; 4]) -> Shape {
        let [files, domains, events, data] = logarithms;
        let table_offset = PAGE + (REGISTER_BYTES << files);
        let data_offset = page_up(table_offset + (PAIR_BYTES << (domains + events)));
        let data_bytes = 1 << data;
        let area_bytes = page_up(data_offset + data_bytes + SLACK_BYTES);
        Shape { logarithms, data_bytes, data_offset, area_bytes }
    }

    /// The shape as the header has it: four logarithms.
    pub const fn to_bytes(self) -> [u8; 4] {
        self.logarithms
    }

    /// The shape from the header's four logarithms; `None` if one is out of range.
    pub const fn from_bytes(bytes: [u8; 4]) -> Option<Shape> {
        Shape::new(bytes[0], bytes[1], bytes[2], bytes[3])
    }

    /// Number of log files, the null file included.
    pub const fn files(self) -> usize {
        1 << self.logarithms[0]
    }

    /// Number of accounting domains.
    pub const fn domains(self) -> usize {
        1 << self.logarithms[1]
    }

    /// Number of events.
    pub const fn events(self) -> usize {
        1 << self.logarithms[2]
    }

    /// Binary logarithm of [`Shape::events`].
    pub const fn events_log2(self) -> u8 {
        self.logarithms[2]
    }

    /// Bytes for rows.
    pub const fn data_bytes(self) -> usize {
        self.data_bytes
    }

    /// The offset of the domain table.
    pub const fn table_offset(self) -> usize {
        PAGE + (REGISTER_BYTES << self.logarithms[0])
    }

    /// The offset of the rows.
    pub const fn data_offset(self) -> usize {
        self.data_offset
    }

    /// Bytes of the whole area, a multiple of [`PAGE`].
    pub const fn area_bytes(self) -> usize {
        self.area_bytes
    }
}

/// `bytes` rounded up to a whole page.
pub const fn page_up(bytes: usize) -> usize {
    (bytes + PAGE - 1) & !(PAGE - 1)
}
