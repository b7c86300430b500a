//! Evaluates the expressions of `probe:` points, where the rows of programs are read.
//!
//! At all other points, an expression becomes C and runs in the kernel. Here it gives the same result as in
//! C: each value is held in 64 bits, extended by the sign of its type, and is cut down to that type after
//! each step. A test compares the results with those of a C compiler.

use crate::ast::{Binary, Unary};
use crate::kernel::Type;
use crate::known::KnownValue;
use crate::layout::HEADER_BYTES;
use crate::limits::MAX_RECORD_BYTES;
use crate::schema::Event;
use crate::types::{FieldType, Int};
use crate::typing::{CheckedLog, Node, Value, common};

/// The name of a row's correspondent in expressions. The other argument is the row's value.
const CORRESPONDENT: &str = "correspondent";

/// What is known of one row of the log facility.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Row {
    /// The value that the program gave: a number, the length of a phase, a sample.
    pub value: u64,
    /// The domain at the other end.
    pub correspondent: u16,
    /// The processor.
    pub cpu: u32,
    /// The program's process.
    pub tgid: i32,
    /// The time by the trace's clock.
    pub time: u64,
    /// The domain that is charged.
    pub domain: u16,
}

/// The most words that the fields of a record take.
pub const WORDS: usize = (MAX_RECORD_BYTES - HEADER_BYTES) / 8;
/// The fields of a record, as they lie behind its header.
pub type Words = [u64; WORDS];

impl Row {
    /// Whether a condition holds. A missing condition always holds.
    pub fn fulfils(&self, condition: Option<&Value>) -> bool {
        condition.is_none_or(|condition| self.is_true(condition))
    }

    /// Writes the fields of a record to their places in `words`, and returns the number of words that they
    /// take. The caller need not clear `words`.
    pub fn encode(&self, event: &Event, log: &CheckedLog, words: &mut Words) -> usize {
        let count = ((event.layout.size - HEADER_BYTES) / 8).min(words.len());
        words[..count].fill(0);
        let fields = event.fields.iter().zip(&event.layout.offsets).zip(&log.values);
        for ((field, offset), value) in fields {
            let bits = cut(self.bits(value), Int::unsigned((field.kind.size().min(8) * 8) as u8));
            let place = offset - HEADER_BYTES;
            // Fields lie at multiples of their size, so that none crosses the end of a word.
            words[place / 8] |= bits << (place % 8 * 8);
        }
        count
    }

    fn is_true(&self, value: &Value) -> bool {
        self.bits(value) != 0
    }

    /// A value of its type, extended to 64 bits by its sign.
    fn bits(&self, value: &Value) -> u64 {
        let int = int(value);
        match &value.node {
            Node::Number(number) => *number,
            Node::Argument(name) if name == CORRESPONDENT => self.correspondent.into(),
            Node::Argument(_) => self.value,
            Node::KnownValue(known) => self.known(*known),
            Node::Cast(FieldType::Bool, of) => u64::from(self.is_true(of)),
            Node::Cast(_, of) => cut(self.bits(of), int),
            Node::Unary(operator, of) => unary(*operator, self.bits(of), int),
            Node::Binary(operator, left, right) => self.binary(*operator, left, right, int),
            Node::Choice(condition, yes, no) => {
                cut(self.bits(if self.is_true(condition) { yes } else { no }), int)
            }
            // No value at a probe point has members or elements.
            Node::Member(..) | Node::Index(..) => 0,
        }
    }

    fn known(&self, known: KnownValue) -> u64 {
        match known {
            KnownValue::Cpu => self.cpu.into(),
            // Extended by its sign, as `bits` promises.
            KnownValue::Tgid => i64::from(self.tgid) as u64,
            KnownValue::Time => self.time,
            KnownValue::Domain => self.domain.into(),
            // No row has these: the check of the schema refuses them.
            KnownValue::Pid | KnownValue::Comm | KnownValue::Current | KnownValue::Counter(_) => 0,
        }
    }

    fn binary(&self, operator: Binary, left: &Value, right: &Value, result: Int) -> u64 {
        match operator {
            Binary::Or => u64::from(self.is_true(left) || self.is_true(right)),
            Binary::And => u64::from(self.is_true(left) && self.is_true(right)),
            _ if operator.compares() => {
                // C converts both sides to one type first.
                let both = common(int(left), int(right));
                let (left, right) = (cut(self.bits(left), both), cut(self.bits(right), both));
                u64::from(compare(operator, left, right, both))
            }
            // The right side needs no cut: as a distance or a divisor it is a constant that fits, and the
            // other operators use only those of its bits that are left in the result.
            _ => cut(compute(operator, cut(self.bits(left), result), self.bits(right), result), result),
        }
    }
}

/// The type of a value as a number: addresses and truth values are numbers, too.
fn int(value: &Value) -> Int {
    match value.kind {
        Type::Int(int) => int,
        Type::Truth => Int::unsigned(1),
        _ => Int::unsigned(64),
    }
}

/// The part of a number that fits a type, extended to 64 bits by its sign.
fn cut(bits: u64, int: Int) -> u64 {
    let unused = 64 - u32::from(int.bits.clamp(1, 64));
    // The type's sign comes to lie at the top, from where the arithmetic shift copies it.
    let upper = bits << unused;
    if int.is_signed { (upper.cast_signed() >> unused).cast_unsigned() } else { upper >> unused }
}

fn unary(operator: Unary, bits: u64, result: Int) -> u64 {
    match operator {
        Unary::Negate => cut(bits.wrapping_neg(), result),
        Unary::Invert => cut(!bits, result),
        Unary::Not => u64::from(bits == 0),
    }
}

fn compare(operator: Binary, left: u64, right: u64, int: Int) -> bool {
    let order = if int.is_signed { left.cast_signed().cmp(&right.cast_signed()) } else { left.cmp(&right) };
    match operator {
        Binary::Equal => order.is_eq(),
        Binary::Unequal => order.is_ne(),
        Binary::Less => order.is_lt(),
        Binary::LessEqual => order.is_le(),
        Binary::Greater => order.is_gt(),
        _ => order.is_ge(),
    }
}

/// The result of an operation on signed numbers; 0 if there is none, which the check of the schema excludes.
fn signed(left: u64, right: u64, operation: fn(i64, i64) -> Option<i64>) -> u64 {
    operation(left.cast_signed(), right.cast_signed()).unwrap_or(0).cast_unsigned()
}

/// The result of an operator, not yet cut down to its type. The check of the schema has allowed only
/// constants as divisors and distances of shifts, and only those that C defines a result for.
fn compute(operator: Binary, left: u64, right: u64, int: Int) -> u64 {
    match operator {
        Binary::BitOr => left | right,
        Binary::BitXor => left ^ right,
        Binary::BitAnd => left & right,
        Binary::ShiftLeft => left.wrapping_shl(right as u32),
        Binary::ShiftRight if int.is_signed => left.cast_signed().wrapping_shr(right as u32).cast_unsigned(),
        Binary::ShiftRight => left.wrapping_shr(right as u32),
        Binary::Subtract => left.wrapping_sub(right),
        Binary::Multiply => left.wrapping_mul(right),
        Binary::Divide if int.is_signed => signed(left, right, i64::checked_div),
        Binary::Remainder if int.is_signed => signed(left, right, i64::checked_rem),
        Binary::Divide => left.checked_div(right).unwrap_or(0),
        Binary::Remainder => left.checked_rem(right).unwrap_or(0),
        _ => left.wrapping_add(right),
    }
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::{Schema, Source, check};

    const ROWS: [(u64, u16); 8] = [
        (0, 0),
        (1, 65535),
        (7, 3),
        (255, 40000),
        (0x8000_0000, 1),
        (0xffff_ffff, 2),
        (1 << 63, 32768),
        (u64::MAX, 65534),
    ];

    /// The value of an expression for each of the rows, as a number of 64 bits; `None` if the expression is
    /// refused.
    fn evaluated(expression: &str) -> Option<Vec<u64>> {
        let text = format!("event A {{ u64 x }}\nat probe:p when ({expression}) == ({expression}) log A(0)");
        let schema = Schema::read(&[Source::new("a.mete", text)]).ok()?;
        let checked = check(&schema, None).ok()?;
        let Some(Value { node: Node::Binary(_, value, _), .. }) = &checked.points[0].when else {
            return None;
        };
        let row = |(value, correspondent)| Row { value, correspondent, ..Row::default() };
        Some(ROWS.into_iter().map(|given| row(given).bits(value)).collect())
    }

    /// Expressions with all operators over all types. Larger ones are built from smaller ones.
    fn expressions() -> Vec<String> {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut below = |limit: usize| {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) as usize % limit
        };
        let leaves = "value correspondent 0 1 3 200 4000000000 0x7fffffff 0x123456789abcdef";
        let mut all: Vec<String> = leaves.split(' ').map(str::to_owned).collect();
        let types = ["u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64", "bool"];
        for kind in types {
            all.push(format!("{kind}(value)"));
            all.push(format!("{kind}(value + correspondent)"));
        }
        let signs = Binary::ALL.map(Binary::sign);
        while all.len() < 1500 {
            let (one, two) = (all[below(all.len())].clone(), all[below(all.len())].clone());
            let made = match below(12) {
                0 => format!("({one} ? {two} : {})", all[below(all.len())]),
                1 => format!("({}{one})", Unary::ALL[below(3)].sign()),
                2 => format!("{}({one})", types[below(types.len())]),
                3 => format!("({one} {} {})", ["/", "%"][below(2)], 1 + below(300)),
                4 => format!("({one} {} {})", ["<<", ">>"][below(2)], below(32)),
                _ => format!("({one} {} {two})", signs[below(signs.len())]),
            };
            if made.len() < 200 && evaluated(&made).is_some() {
                all.push(made);
            }
        }
        all
    }

    /// A C program that prints the value of each expression. Expressions are nearly C: only the casts must be
    /// defined.
    fn program(expressions: &[String]) -> String {
        let mut text = "#include <stdio.h>\n".to_owned();
        let types = [
            ("u8", "unsigned char"),
            ("u16", "unsigned short"),
            ("u32", "unsigned"),
            ("u64", "unsigned long"),
        ];
        let signed =
            [("s8", "signed char"), ("s16", "short"), ("s32", "int"), ("s64", "long"), ("bool", "_Bool")];
        for (word, kind) in types.into_iter().chain(signed) {
            text += &format!("#define {word}(x) (({kind})(x))\n");
        }
        text += "static void all(unsigned long value, unsigned short correspondent)\n{\n";
        for expression in expressions {
            text += &format!("\tprintf(\"%lu\\n\", (unsigned long)({expression}));\n");
        }
        text += "}\nint main(void)\n{\n";
        for (value, correspondent) in ROWS {
            text += &format!("\tall({value}ul, {correspondent});\n");
        }
        text + "}\n"
    }

    #[test]
    fn klog_8_expressions_at_a_probe_point_are_what_a_c_compiler_makes_of_them() {
        let expressions = expressions();
        let place = tempfile::tempdir().unwrap();
        let (source, binary) = (place.path().join("all.c"), place.path().join("all"));
        std::fs::write(&source, program(&expressions)).unwrap();
        // Signed numbers wrap, as they do in programs of the kernel.
        let built =
            Command::new("cc").args(["-w", "-O0", "-fwrapv", "-o"]).arg(&binary).arg(&source).status();
        let said = built.map(|status| {
            assert!(status.success());
            Command::new(&binary).output().unwrap().stdout
        });
        let Ok(said) = said else { return println!("SKIPPED: expressions at a probe point: no C compiler") };
        let said = String::from_utf8(said).unwrap();
        let mut said = said.lines().map(|line| line.parse::<u64>().unwrap());
        let ours: Vec<_> = expressions.iter().map(|text| evaluated(text).unwrap()).collect();
        for (row, given) in ROWS.iter().enumerate() {
            for (text, ours) in expressions.iter().zip(&ours) {
                assert_eq!(ours[row], said.next().unwrap(), "{text} of {given:?}");
            }
        }
        assert_eq!(said.next(), None);
    }

    #[test]
    fn klog_8_record_of_a_row_has_each_field_in_its_place_and_nothing_else() {
        let text = "event A { u8 small  u64 value  bool is_far  s16 less  u32 who }\n\
                    at probe:p log A(1, value, correspondent != 0xffff, -2, correspondent)";
        let schema = Schema::read(&[Source::new("a.mete", text)]).unwrap();
        let checked = check(&schema, None).unwrap();
        let row = Row { value: u64::MAX - 1, correspondent: 7, ..Row::default() };
        let mut words = [u64::MAX; WORDS];
        let count = row.encode(&schema.events[0], &checked.points[0].logs[0], &mut words);
        // u64, then u32, s16, u8 and bool.
        let expected = [u64::MAX - 1, 7 | 0xfffe << 32 | 1 << 48 | 1 << 56];
        assert_eq!(words[..count], expected);
        assert_eq!(count * 8 + HEADER_BYTES, schema.events[0].layout.size);
    }
}
