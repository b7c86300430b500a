//! Names for addresses of the kernel's own data, such as its locks (KLogger §8). The flush threads collect
//! the addresses that occur in records. The running kernel gives the names, while it is still the kernel that
//! was recorded.

use std::collections::BTreeSet;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};

pub use crate::description::machine::AddressName;
use crate::description::{Description, EventLayout, FieldKind};
use crate::record::Head;

/// An address belongs to the symbol before it if it is less than this number of bytes after the symbol's
/// beginning. That is the size of the largest of the kernel's static structures with locks.
const FARTHEST: u64 = 64 << 10;
/// A kernel that keeps the names of its data has tens of thousands of them. A kernel with fewer names than
/// this does not keep them all, so the data after a symbol may belong to another one.
const FEW: usize = 1_000;
/// The most addresses that are collected: a recording may see any number. The kernel has less than half as
/// many static locks.
const MOST: usize = 1 << 14;
/// The number of recent addresses that are remembered: most addresses soon come again.
const RECENT: usize = 64;

/// The symbols of the kernel's data, by their addresses.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// The symbols of the running kernel. There are none if the kernel does not show them.
    pub fn of_kernel() -> Symbols {
        Symbols::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Reads the symbols of data: no lock lies in a function. Without privilege all addresses are zero, and
    /// there are none.
    fn parse(text: &str) -> Symbols {
        let mut all: Vec<_> = text.lines().filter_map(datum).collect();
        all.sort();
        Symbols(all)
    }

    /// The symbol in which an address lies.
    pub fn of(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= address);
        let (begin, name) = self.0.get(after.checked_sub(1)?)?;
        let farthest = if self.0.len() < FEW { 1 } else { FARTHEST };
        (address - begin < farthest).then_some(name.as_str())
    }

    fn named(&self, address: u64) -> Option<AddressName> {
        Some(AddressName { address, name: self.of(address)?.to_owned() })
    }

    fn names(&self, addresses: &BTreeSet<u64>) -> Vec<AddressName> {
        addresses.iter().filter_map(|address| self.named(*address)).collect()
    }
}

/// The address and name in a line of `/proc/kallsyms`, if it is a datum's line.
fn datum(line: &str) -> Option<(u64, String)> {
    let mut words = line.split_whitespace();
    let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
    let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0)?;
    "bBdDrRvV".contains(kind).then(|| (address, name.to_owned()))
}

/// The addresses that all flush threads have collected.
#[derive(Debug, Default)]
pub(crate) struct Addresses(Mutex<BTreeSet<u64>>);

impl Addresses {
    /// The addresses for which the running kernel has names.
    pub fn names(&self) -> Vec<AddressName> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.is_empty() { Vec::new() } else { Symbols::of_kernel().names(&all) }
    }

    fn add(&self, address: u64) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() < MOST {
            all.insert(address);
        }
    }
}

/// Collects the addresses in the records that one flush thread moves.
pub(crate) struct AddressCollector {
    /// Events with addresses, and the words of their records in which these are.
    fields: Vec<(u16, Vec<usize>)>,
    addresses: Arc<Addresses>,
    recent: [u64; RECENT],
}

impl AddressCollector {
    pub fn new(description: &Description, addresses: Arc<Addresses>) -> AddressCollector {
        let events = description.events.iter().map(|event| (event.id, address_words(event)));
        let fields = events.filter(|(_, words)| !words.is_empty()).collect();
        AddressCollector { fields, addresses, recent: [0; RECENT] }
    }

    /// Keeps a record's addresses, if they are the kernel's. Each program has addresses of its own, which are
    /// of no use.
    pub fn look(&mut self, record: &[u64]) {
        if self.fields.is_empty() {
            return;
        }
        let event = Head::from_word(record[0]).event;
        let Some((_, words)) = self.fields.iter().find(|(id, _)| *id == event) else { return };
        for word in words {
            let address = record.get(*word).copied().filter(|address| address >> 63 == 1);
            let Some(address) = address else { continue };
            // The place is chosen by the address's cache line, of 64 bytes.
            let recent = &mut self.recent[(address >> 6) as usize % RECENT];
            if *recent != address {
                *recent = address;
                self.addresses.add(address);
            }
        }
    }
}

/// The words of an event's record that are addresses.
fn address_words(event: &EventLayout) -> Vec<usize> {
    let addresses = event.fields.iter().filter(|field| field.kind == FieldKind::Address);
    addresses.map(|field| usize::from(field.offset) / 8).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FieldLayout;

    #[test]
    fn klog_9_an_address_has_the_name_of_the_datum_that_it_lies_in() {
        let some = "1000 D tasklist_lock\n1100 T schedule\n00 D zero\n20000 b last [module]\nx\n";
        let many: String = (0..FEW).map(|nth| format!("{:x} d datum_{nth}\n", (1 << 40) + nth)).collect();
        let names = |symbols: &Symbols| {
            [0x0fff, 0x1000, 0x1200, 0x1_f000, 0x2_0004]
                .map(|address| symbols.of(address).unwrap_or("-").to_owned())
                .join(" ")
        };
        let all = Symbols::parse(&format!("{some}{many}"));
        assert_eq!(names(&all), "- tasklist_lock tasklist_lock - last");
        let few = Symbols::parse(some);
        assert_eq!(names(&few), "- tasklist_lock - - -", "the data after a symbol may have no name");
        let named = few.names(&BTreeSet::from([0x1000, 0x1200]));
        assert_eq!(named, [AddressName { address: 0x1000, name: "tasklist_lock".to_owned() }]);
    }

    #[test]
    fn klog_8_addresses_of_the_kernel_in_records_are_collected_once() {
        let field = |name: &str, kind, offset| FieldLayout {
            name: name.to_owned(),
            kind,
            offset,
            bytes: 8,
            doc: String::new(),
        };
        let fields = vec![field("value", FieldKind::Unsigned, 16), field("lock", FieldKind::Address, 24)];
        let event = EventLayout { id: 20, name: "SPIN".to_owned(), doc: String::new(), fields };
        let description = Description { schema: String::new(), events: vec![event] };
        let addresses = Arc::new(Addresses::default());
        let mut collector = AddressCollector::new(&description, Arc::clone(&addresses));
        let (kernel, program) = (1 << 63 | 0x40, 0x7fff_0000);
        for (event, lock) in [(20, kernel), (20, kernel), (20, program), (21, kernel + 64)] {
            collector.look(&[event, 0, u64::MAX, lock]);
        }
        collector.look(&[20, 0, 1]);
        assert_eq!(*addresses.0.lock().unwrap(), BTreeSet::from([kernel]));
    }
}
