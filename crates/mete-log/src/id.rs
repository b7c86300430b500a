//! The numbers of log files, events and domains. Each kind has a type of its own, so that mixing them up does
//! not compile:
//!
//! ```compile_fail,E0308
//! use mete_log::{DomainId, EventId};
//! let event: EventId = DomainId::new(1);
//! ```
//!
//! In the log area and on the wire, a number is a plain 16-bit word. It gets its type where the word is read.
//! That says what the number means, and not that there is such a file, event or domain: [`Area`](crate::Area)
//! masks every number that it is given.

use core::fmt;
use core::num::TryFromIntError;

/// Defines a kind of number. It has 16 bits and the layout of a `u16`. It has no arithmetic, because sums of
/// such numbers mean nothing.
macro_rules! number {
    ($(#[$meta:meta])* $name:ident) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u16);

        impl $name {
            /// The number from its 16 bits. Every value is one.
            #[inline(always)]
            pub const fn new(number: u16) -> $name {
                $name(number)
            }

            /// The number of the entry at this place, counted from 0, in a table with one entry for each
            /// number.
            ///
            /// # Panics
            ///
            /// If the place is above 65535.
            #[inline]
            pub const fn from_index(index: usize) -> $name {
                assert!(index <= u16::MAX as usize, "a table of more than 65536 entries");
                $name(index as u16)
            }

            /// All numbers below `count`, in order.
            ///
            /// # Panics
            ///
            /// The iterator panics at the first number above 65535.
            #[inline]
            pub fn all_below(count: usize) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (0..count).map($name::from_index)
            }

            /// The bare number, as it is in memory and on the wire.
            #[inline(always)]
            pub const fn get(self) -> u16 {
                self.0
            }

            /// Its place, counted from 0, in a table with one entry for each number.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl TryFrom<u32> for $name {
            type Error = TryFromIntError;

            #[inline]
            fn try_from(number: u32) -> Result<$name, TryFromIntError> {
                number.try_into().map($name)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number! {
    /// A log file's number within its area. The default is 0, the null file: a pair that is routed to it is
    /// off.
    #[derive(Default)]
    FileId
}

number! {
    /// An event's number within its component.
    EventId
}

number! {
    /// An accounting domain's number (thesis §3.5). The default is 0, the default domain, to which every
    /// process belongs that is bound to no other.
    #[derive(Default)]
    DomainId
}

/// The correspondent of an event that has none.
pub const NO_DOMAIN: DomainId = DomainId::new(u16::MAX);

// Structures in shared memory and the functions of `mete.h` have these numbers as 16-bit words.
const _: () = {
    assert!(size_of::<FileId>() == 2 && align_of::<FileId>() == 2);
    assert!(size_of::<EventId>() == 2 && align_of::<EventId>() == 2);
    assert!(size_of::<DomainId>() == 2 && align_of::<DomainId>() == 2);
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_shown_bare_and_padded_like_any_number() {
        assert_eq!(
            format!("{}|{:>4}|{:03}", DomainId::new(7), FileId::new(12), EventId::new(5)),
            "7|  12|005"
        );
    }

    #[test]
    fn log_11_a_word_that_has_more_than_16_bits_is_no_number() {
        assert_eq!(DomainId::try_from(0xffff), Ok(NO_DOMAIN));
        assert!(DomainId::try_from(0x1_0000).is_err());
    }

    #[test]
    fn places_and_numbers_are_the_same_up_to_the_last_one() {
        assert_eq!(EventId::from_index(65_535).index(), 65_535);
        assert!(FileId::all_below(3).eq([0, 1, 2].map(FileId::new)));
        assert_eq!(FileId::all_below(0).len(), 0);
    }

    #[test]
    #[should_panic(expected = "more than 65536 entries")]
    fn a_place_without_a_number_is_a_panic() {
        DomainId::from_index(65_536);
    }
}
