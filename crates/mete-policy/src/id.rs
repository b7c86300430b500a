//! Identifiers: numbers that are dense from 0, each kind with a type of its own, so that one cannot be passed
//! for another. They name and index; they do not add or subtract, and a *count* of clients or processors is a
//! plain number.

/// Defines an identifier that is stored as `$number`.
macro_rules! identifier {
    ($(#[$about:meta])* $visibility:vis $name:ident($number:ty)) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        $visibility struct $name($number);

        #[allow(dead_code, reason = "an identifier inside the crate may not need all of its kind's functions")]
        impl $name {
            /// The largest identifier.
            pub const MAX: $name = $name(<$number>::MAX);

            /// The identifier of that number.
            #[inline]
            pub const fn new(number: $number) -> $name {
                $name(number)
            }

            /// The identifier of the entry at an index; [`MAX`](Self::MAX) for an index beyond the largest
            /// number.
            #[inline]
            pub const fn at(index: usize) -> $name {
                // Compared as the wider of the two types, so that nothing is cut off before the comparison.
                if index as u128 > <$number>::MAX as u128 { $name::MAX } else { $name(index as $number) }
            }

            /// The identifiers of `count` entries, from 0 on.
            #[inline]
            pub fn first(count: $number) -> impl DoubleEndedIterator<Item = $name> + ExactSizeIterator + Clone {
                (0..count).map($name)
            }

            /// The identifier as a number.
            #[inline]
            pub const fn get(self) -> $number {
                self.0
            }

            /// The index of the entry for this identifier in an array of all of them.
            #[inline]
            pub const fn index(self) -> usize {
                self.0 as usize
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

pub(crate) use identifier;

identifier! {
    /// A client's number, dense from 0: the entity that is scheduled (a task, a virtual processor).
    pub ClientId(u32)
}

identifier! {
    /// A processor's number, dense from 0.
    pub ProcessorId(u16)
}

identifier! {
    /// A domain's number, dense from 0.
    pub DomainIndex(u16)
}

identifier! {
    /// A guest task, as the host distinguishes tasks: a number for its address space, dense from 0 within
    /// one virtual processor.
    pub TaskId(u16)
}

identifier! {
    /// A block request's number, dense from 0 within one virtual processor: the entry of the table through
    /// which guest and driver share the request's memory.
    pub RequestId(u16)
}

impl DomainIndex {
    /// The root of all domains.
    pub const ROOT: DomainIndex = DomainIndex(0);
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::string::ToString;

    #[test]
    fn new_1_an_identifier_is_its_number() {
        let client = ClientId::new(7);
        assert_eq!((client.get(), client.index(), client.to_string().as_str()), (7, 7, "7"));
        assert_eq!(std::format!("{client:>3}"), "  7", "widths are the number's");
        assert_eq!(size_of::<Option<ProcessorId>>(), size_of::<Option<u16>>());
    }

    #[test]
    fn new_1_an_index_beyond_the_largest_number_is_the_largest_identifier() {
        assert_eq!(TaskId::at(300), TaskId::new(300));
        assert_eq!(TaskId::at(usize::from(u16::MAX) + 1), TaskId::MAX);
        assert_eq!(ClientId::at(usize::MAX), ClientId::MAX);
    }

    #[test]
    fn new_1_the_first_identifiers_are_those_below_a_count() {
        let all: std::vec::Vec<_> = ProcessorId::first(3).map(ProcessorId::get).collect();
        assert_eq!(all, [0, 1, 2]);
        assert_eq!(DomainIndex::first(0).len(), 0);
    }
}
