// Made from a schema by mete. Changes here are lost.

/// Logs an event: `mete_log!(emit, SCHEDIN(pid, misses))`, where `emit` takes the bytes of a record.
#[allow(unused_macros)]
macro_rules! mete_log {
    ($emit:expr, $event:ident($($value:expr),* $(,)?)) => {{
        #[allow(unexpected_cfgs)]
        if cfg!(mete_disable) {
            let _ = || $event::new($($value),*);
        } else {
            $emit(&$event::new($($value),*).encode());
        }
    }};
}

/// Numbers and fingerprints of all events.
#[allow(dead_code)]
pub const EVENTS: [(::core::primitive::u16, ::core::primitive::u64); 2] = [
    (START::ID, START::FINGERPRINT),
    (STOP::ID, STOP::FINGERPRINT),
];

#[doc = "The measured action begins."]
#[allow(non_camel_case_types, non_snake_case)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct START {
    #[doc = "The number of the stopwatch, where several things are measured."]
    pub watch: ::core::primitive::u32,
    #[doc = "The running thread; an action may end in another one."]
    pub pid: ::core::primitive::i32,
    #[doc = "A value of the program's choice: what the action is about."]
    pub value: ::core::primitive::u64,
}

#[allow(dead_code, non_snake_case, clippy::too_many_arguments)]
impl START {
    /// Its name.
    pub const NAME: &'static ::core::primitive::str = "START";
    /// Its number in this schema.
    pub const ID: ::core::primitive::u16 = 16;
    /// Bytes of a record.
    pub const BYTES: ::core::primitive::usize = 32;
    /// Changes with its name and fields.
    pub const FINGERPRINT: ::core::primitive::u64 = 0xdf615071014e4147;

    /// An event of these values.
    #[inline(always)]
    pub const fn new(v_watch: ::core::primitive::u32, v_pid: ::core::primitive::i32, v_value: ::core::primitive::u64) -> Self {
        Self { watch: v_watch, pid: v_pid, value: v_value }
    }

    /// Its record. The recorder fills in the serial number and the time stamp, bytes 4 to 15.
    #[inline(always)]
    pub fn encode(&self) -> [::core::primitive::u8; 32] {
        let mut record = [0; 32];
        record[0..2].copy_from_slice(&Self::ID.to_le_bytes());
        record[2..4].copy_from_slice(&32_u16.to_le_bytes());
        record[16..24].copy_from_slice(&self.value.to_le_bytes());
        record[24..28].copy_from_slice(&self.watch.to_le_bytes());
        record[28..32].copy_from_slice(&self.pid.to_le_bytes());
        record
    }

    /// The event in a record of this size. The number is not checked: only the trace says what it means.
    pub fn decode(record: &[::core::primitive::u8]) -> ::core::option::Option<Self> {
        let record: &[::core::primitive::u8; 32] = record.first_chunk()?;
        if [record[2], record[3]] != 32_u16.to_le_bytes() {
            return ::core::option::Option::None;
        }
        ::core::option::Option::Some(Self {
            watch: ::core::primitive::u32::from_le_bytes([record[24], record[25], record[26], record[27]]),
            pid: ::core::primitive::i32::from_le_bytes([record[28], record[29], record[30], record[31]]),
            value: ::core::primitive::u64::from_le_bytes([record[16], record[17], record[18], record[19], record[20], record[21], record[22], record[23]]),
        })
    }
}

#[doc = "The measured action is over."]
#[allow(non_camel_case_types, non_snake_case)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct STOP {
    #[doc = "As in START."]
    pub watch: ::core::primitive::u32,
    #[doc = "The running thread."]
    pub pid: ::core::primitive::i32,
    #[doc = "A value of the program's choice: a result, or as in START."]
    pub value: ::core::primitive::u64,
}

#[allow(dead_code, non_snake_case, clippy::too_many_arguments)]
impl STOP {
    /// Its name.
    pub const NAME: &'static ::core::primitive::str = "STOP";
    /// Its number in this schema.
    pub const ID: ::core::primitive::u16 = 17;
    /// Bytes of a record.
    pub const BYTES: ::core::primitive::usize = 32;
    /// Changes with its name and fields.
    pub const FINGERPRINT: ::core::primitive::u64 = 0x7fd193b1b76457b1;

    /// An event of these values.
    #[inline(always)]
    pub const fn new(v_watch: ::core::primitive::u32, v_pid: ::core::primitive::i32, v_value: ::core::primitive::u64) -> Self {
        Self { watch: v_watch, pid: v_pid, value: v_value }
    }

    /// Its record. The recorder fills in the serial number and the time stamp, bytes 4 to 15.
    #[inline(always)]
    pub fn encode(&self) -> [::core::primitive::u8; 32] {
        let mut record = [0; 32];
        record[0..2].copy_from_slice(&Self::ID.to_le_bytes());
        record[2..4].copy_from_slice(&32_u16.to_le_bytes());
        record[16..24].copy_from_slice(&self.value.to_le_bytes());
        record[24..28].copy_from_slice(&self.watch.to_le_bytes());
        record[28..32].copy_from_slice(&self.pid.to_le_bytes());
        record
    }

    /// The event in a record of this size. The number is not checked: only the trace says what it means.
    pub fn decode(record: &[::core::primitive::u8]) -> ::core::option::Option<Self> {
        let record: &[::core::primitive::u8; 32] = record.first_chunk()?;
        if [record[2], record[3]] != 32_u16.to_le_bytes() {
            return ::core::option::Option::None;
        }
        ::core::option::Option::Some(Self {
            watch: ::core::primitive::u32::from_le_bytes([record[24], record[25], record[26], record[27]]),
            pid: ::core::primitive::i32::from_le_bytes([record[28], record[29], record[30], record[31]]),
            value: ::core::primitive::u64::from_le_bytes([record[16], record[17], record[18], record[19], record[20], record[21], record[22], record[23]]),
        })
    }
}
