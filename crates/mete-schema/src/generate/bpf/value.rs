//! Expressions as C.

use crate::ast::Binary;
use crate::kernel::{KernelTypes, Type, TypeId, record_of};
use crate::known::KnownValue;
use crate::types::{FieldType, Int};
use crate::typing::{Node, Value};

/// Texts up to this length are copied by loads, longer ones by a helper.
const COPIED_BY_LOADS: u32 = 32;

/// Writes the expressions of one program.
pub(super) struct Writer<'a> {
    pub kernel: &'a dyn KernelTypes,
    /// Whether the kernel lets this program follow the addresses that it gets by plain loads.
    pub is_direct: bool,
}

impl Writer<'_> {
    /// The type of a variable. A pointer's type ends with its star.
    pub(super) fn c_type(&self, kind: &Type) -> String {
        match kind {
            Type::Truth => "_Bool".to_owned(),
            Type::Int(int) => format!("mete_{}", whole(*int)),
            Type::Pointer(_) => match record_of(self.kernel, kind) {
                Some(id) if !self.kernel.structure_name(id).is_empty() => {
                    format!("{} *", head(self.kernel, id))
                }
                _ => "void *".to_owned(),
            },
            Type::Record(id) => head(self.kernel, *id),
            _ => "mete_u64".to_owned(),
        }
    }

    /// A value, in parentheses where it needs them.
    pub(super) fn value(&self, value: &Value) -> String {
        match &value.node {
            Node::Number(number) => self.number(*number, &value.kind),
            Node::Argument(name) => format!("a_{name}"),
            Node::KnownValue(known) => known_value(*known),
            Node::Member(base, name) => self.member(base, name),
            Node::Index(base, at) => self.element(base, *at),
            Node::Cast(FieldType::Bool, of) => format!("((_Bool)({}))", self.value(of)),
            Node::Cast(FieldType::Address, of) => format!("((void *)(unsigned long)({}))", self.value(of)),
            Node::Cast(_, of) => format!("(({})({}))", self.c_type(&value.kind), self.word(of)),
            Node::Unary(operator, of) => format!("({}{})", operator.sign(), self.value(of)),
            Node::Binary(operator, left, right) => self.binary(*operator, left, right),
            Node::Choice(condition, yes, no) => {
                format!("({} ? {} : {})", self.value(condition), self.value(yes), self.value(no))
            }
        }
    }

    fn binary(&self, operator: Binary, left: &Value, right: &Value) -> String {
        format!("({} {} {})", self.side(left, right), operator.sign(), self.side(right, left))
    }

    /// One side of an operator. Beside a pointer it becomes a pointer without a type, so that pointers to
    /// different types can be compared.
    fn side(&self, value: &Value, other: &Value) -> String {
        match (&other.kind, value.constant) {
            // 0 is C's own null pointer, whatever its type.
            (Type::Pointer(_), Some(0)) => "(void *)0".to_owned(),
            (Type::Pointer(_), _) => format!("(void *){}", self.value(value)),
            _ => self.value(value),
        }
    }

    /// A value as a record holds it: addresses are numbers there.
    pub(super) fn word(&self, value: &Value) -> String {
        match value.kind {
            Type::Pointer(_) => format!("(mete_u64)(unsigned long){}", self.value(value)),
            _ => self.value(value),
        }
    }

    fn number(&self, number: u64, kind: &Type) -> String {
        // With its suffix, a literal has the type in C that the check has given it.
        match kind {
            Type::Int(Int { bits: 32, .. }) => number.to_string(),
            Type::Int(Int { is_signed: true, .. }) => format!("{number}ll"),
            _ => format!("{number}ull"),
        }
    }

    fn element(&self, base: &Value, at: u64) -> String {
        match self.reads_directly(base) {
            true => format!("{}[{at}]", self.value(base)),
            false => {
                let (root, path) = self.path(base);
                format!("BPF_CORE_READ({root}, {path}[{at}])")
            }
        }
    }

    fn member(&self, base: &Value, name: &str) -> String {
        let is_bit_field =
            record_of(self.kernel, &base.kind).is_some_and(|id| self.kernel.is_bit_field(id, name));
        // The other macros take the address of a member, which a bit field does not have.
        if is_bit_field {
            return self.bit_field(base, name);
        }
        if self.reads_directly(base) {
            return format!("{}{}{name}", self.value(base), arrow(base));
        }
        let (root, path) = self.path(base);
        let path = if path.is_empty() { name.to_owned() } else { format!("{path}{}{name}", separator(base)) };
        format!("BPF_CORE_READ({root}, {path})")
    }

    /// A bit field, which a macro of its own reads. The macro takes the pointer and the path behind it.
    fn bit_field(&self, base: &Value, name: &str) -> String {
        let (pointer, inside) = split(base);
        let field = if inside.is_empty() { name.to_owned() } else { format!("{inside}.{name}") };
        let probed = if self.reads_directly(base) { "" } else { "_PROBED" };
        format!("BPF_CORE_READ_BITFIELD{probed}({}, {field})", self.value(pointer))
    }

    /// Whether plain loads can read a value. They can read the running thread everywhere, because the kernel
    /// knows its type.
    fn reads_directly(&self, value: &Value) -> bool {
        match &value.node {
            Node::Member(base, _) | Node::Index(base, _) => self.reads_directly(base),
            Node::KnownValue(_) => true,
            _ => self.is_direct,
        }
    }

    /// The number of pointers that a macro must follow to a value.
    pub(super) fn pointers_to(&self, value: &Value) -> usize {
        match &value.node {
            _ if self.reads_directly(value) => 0,
            Node::Member(base, _) | Node::Index(base, _) => {
                self.pointers_to(base) + usize::from(matches!(base.kind, Type::Pointer(_)))
            }
            _ => 0,
        }
    }

    /// For `BPF_CORE_READ(root, a.b, c)`, which reads `root->a.b->c`.
    fn path(&self, value: &Value) -> (String, String) {
        match &value.node {
            Node::Member(base, name) => {
                let (root, path) = self.path(base);
                let path =
                    if path.is_empty() { name.clone() } else { format!("{path}{}{name}", separator(base)) };
                (root, path)
            }
            _ => (self.value(value), String::new()),
        }
    }

    /// The statement that fills a text of a record.
    pub(super) fn text(&self, field: &str, letters: u16, value: &Value) -> String {
        let to = format!("record->f_{field}");
        match (&value.node, &value.kind) {
            (Node::KnownValue(KnownValue::Comm), _) => format!("bpf_get_current_comm({to}, {letters});"),
            (_, Type::Text(there)) => self.copy(&to, letters, (*there).min(u32::from(letters)), value),
            // Behind an address. Cleared before, because the helper writes nothing behind the end of the
            // text.
            _ => format!(
                "__builtin_memset({to}, 0, {letters});\n\t\t\t\tbpf_probe_read_kernel_str({to}, {letters}, {});",
                self.value(value)
            ),
        }
    }

    fn copy(&self, to: &str, letters: u16, there: u32, value: &Value) -> String {
        // The source may be shorter than the field, whose end is cleared then.
        let rest = u32::from(letters) - there;
        let clear = match rest {
            0 => String::new(),
            _ => format!("__builtin_memset({to} + {there}, 0, {rest});\n\t\t\t\t"),
        };
        if self.reads_directly(value) && there <= COPIED_BY_LOADS {
            return format!("{clear}__builtin_memcpy({to}, {}, {there});", self.value(value));
        }
        // A tracepoint's record is passed as an address that a program may not compute with.
        if self.reads_directly(value) || matches!(value.node, Node::Argument(_)) {
            return format!("{clear}bpf_probe_read_kernel({to}, {there}, {});", self.value(value));
        }
        let (root, path) = self.path(value);
        format!(
            "{clear}BPF_CORE_READ_INTO({to_pointer}, {root}, {path});",
            to_pointer = format_args!("(char (*)[{there}]){to}")
        )
    }
}

/// The type of the next whole size, which holds the value of a bit field.
pub(super) fn whole(int: Int) -> Int {
    Int { bits: int.bits.next_power_of_two().max(8), ..int }
}

fn known_value(known: KnownValue) -> String {
    match known {
        KnownValue::Cpu => "bpf_get_smp_processor_id()".to_owned(),
        KnownValue::Pid => "((mete_s32)bpf_get_current_pid_tgid())".to_owned(),
        KnownValue::Tgid => "((mete_s32)(bpf_get_current_pid_tgid() >> 32))".to_owned(),
        KnownValue::Time => "METE_TIME()".to_owned(),
        KnownValue::Domain => "METE_DOMAIN()".to_owned(),
        KnownValue::Current => "((struct task_struct *)bpf_get_current_task_btf())".to_owned(),
        KnownValue::Counter(number) => format!("METE_COUNTER({number})"),
        // Never used as a value: `text` copies the name.
        KnownValue::Comm => "\"\"".to_owned(),
    }
}

fn arrow(base: &Value) -> &'static str {
    if matches!(base.kind, Type::Pointer(_)) { "->" } else { "." }
}

fn separator(base: &Value) -> &'static str {
    if matches!(base.kind, Type::Pointer(_)) { ", " } else { "." }
}

/// The pointer that leads to a value, and the path behind that pointer.
fn split(value: &Value) -> (&Value, String) {
    match (&value.kind, &value.node) {
        (Type::Record(_), Node::Member(base, name)) => {
            let (pointer, inside) = split(base);
            (pointer, if inside.is_empty() { name.clone() } else { format!("{inside}.{name}") })
        }
        _ => (value, String::new()),
    }
}

/// `struct task_struct`
pub(super) fn head(kernel: &dyn KernelTypes, id: TypeId) -> String {
    format!("{} {}", if kernel.is_union(id) { "union" } else { "struct" }, kernel.structure_name(id))
}
