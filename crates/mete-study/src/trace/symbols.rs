//! Names of the kernel's own addresses, where it gives them.

use std::fs;

/// A lock is the symbol that it lies in, if it begins not farther behind the symbol's beginning: the largest of the
/// kernel's static structures with locks.
const FARTHEST: u64 = 64 << 10;
/// A kernel that keeps the names of its data has tens of thousands of them. One that does not has a few, and what lies
/// behind one of these may be anything.
const FEW: usize = 1_000;

/// The kernel's symbols by their addresses.
#[derive(Debug, Default)]
pub struct Symbols(Vec<(u64, String)>);

impl Symbols {
    /// Those of the running kernel; none where it shows none.
    pub fn of_kernel() -> Symbols {
        Symbols::parse(&fs::read_to_string("/proc/kallsyms").unwrap_or_default())
    }

    /// Data alone: no lock lies in a function. Without privilege all addresses are zero.
    fn parse(text: &str) -> Symbols {
        let symbol = |line: &str| {
            let mut words = line.split_whitespace();
            let (address, kind, name) = (words.next()?, words.next()?, words.next()?);
            let address = u64::from_str_radix(address, 16).ok().filter(|address| *address != 0)?;
            "bBdDrRvV".contains(kind).then(|| (address, name.to_owned()))
        };
        let mut all: Vec<_> = text.lines().filter_map(symbol).collect();
        all.sort();
        Symbols(all)
    }

    /// The symbol that an address lies in.
    pub fn of(&self, address: u64) -> Option<&str> {
        let after = self.0.partition_point(|(begin, _)| *begin <= address);
        let (begin, name) = self.0.get(after.checked_sub(1)?)?;
        let farthest = if self.0.len() < FEW { 1 } else { FARTHEST };
        (address - begin < farthest).then_some(name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(names(&few), "- tasklist_lock - - -", "what follows may have no name");
    }
}
