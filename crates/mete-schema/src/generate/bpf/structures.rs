//! Structures of the kernel, with the members that a schema reads and no others.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use super::value::{Writer, head, whole};
use crate::kernel::{KernelTypes, Type, TypeId, record_of};
use crate::types::Int;
use crate::typing::{Checked, CheckedPoint, Node, Value};

/// The members that are read of each structure.
pub(super) struct Structures<'a> {
    kernel: &'a dyn KernelTypes,
    members: BTreeMap<TypeId, BTreeMap<String, Type>>,
}

impl<'a> Structures<'a> {
    /// The structures of a schema's expressions.
    pub(super) fn of(checked: &Checked, kernel: &'a dyn KernelTypes) -> Structures<'a> {
        let mut structures = Structures { kernel, members: BTreeMap::new() };
        for value in checked.points.iter().flat_map(CheckedPoint::values) {
            value.walk(&mut |value| structures.note(value));
        }
        structures
    }

    fn note(&mut self, value: &Value) {
        let Node::Member(base, name) = &value.node else { return };
        if let Some(id) = record_of(self.kernel, &base.kind) {
            self.members.entry(id).or_default().insert(name.clone(), value.kind.clone());
        }
    }

    /// The declarations of the structures.
    pub(super) fn text(&self) -> String {
        if self.members.is_empty() {
            // The compiler would warn of an attribute that applies to nothing.
            return String::new();
        }
        let mut text = String::new();
        let mut named: Vec<_> = self.members.keys().copied().filter(|id| !self.is_nameless(*id)).collect();
        named.extend(self.pointed_at());
        text.push_str(&self.enumerations());
        // A structure that is read may be pointed at, too: each name is declared once.
        let names: BTreeSet<_> = named.iter().map(|id| self.head(*id)).collect();
        for head in names {
            let _ = writeln!(text, "{head};");
        }
        text.push_str(
            "\n#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)\n\n",
        );
        let mut done = BTreeSet::new();
        for id in self.members.keys().filter(|id| !self.is_nameless(**id)) {
            self.declare(*id, &mut text, &mut done);
        }
        text.push_str("#pragma clang attribute pop\n\n");
        text
    }

    /// Types for the members that are enumerations, one for each size. The loader does not match a member
    /// that is a number in the program but an enumeration in the kernel. Of an enumeration without a name it
    /// compares nothing else.
    fn enumerations(&self) -> String {
        let mut used = BTreeMap::new();
        for (id, members) in &self.members {
            for (name, kind) in members {
                if let Type::Int(int) = kind
                    && self.kernel.is_enumeration(*id, name)
                {
                    used.insert(enumeration(*int), whole(*int));
                }
            }
        }
        used.into_iter().map(|(name, int)| enumeration_type(&name, int)).collect()
    }

    /// Structures that members point to.
    fn pointed_at(&self) -> Vec<TypeId> {
        let kinds = self.members.values().flat_map(BTreeMap::values);
        let ids = kinds
            .filter(|kind| matches!(kind, Type::Pointer(_)))
            .filter_map(|kind| record_of(self.kernel, kind));
        ids.filter(|id| !self.is_nameless(*id)).collect()
    }

    fn is_nameless(&self, id: TypeId) -> bool {
        self.kernel.structure_name(id).is_empty()
    }

    /// `struct task_struct`
    fn head(&self, id: TypeId) -> String {
        head(self.kernel, id)
    }

    /// Declares a structure, after the structures that it contains.
    fn declare(&self, id: TypeId, text: &mut String, done: &mut BTreeSet<TypeId>) {
        // Once, even if several structures contain it.
        let Some(members) = self.members.get(&id).filter(|_| done.insert(id)) else { return };
        for kind in members.values() {
            if let Type::Record(inner) = kind {
                self.declare_inner(*inner, text, done);
            }
        }
        let _ = writeln!(text, "{} {};\n", self.head(id), self.body(id, "\t"));
    }

    /// Declares what must be declared before a structure that contains this one. A nameless structure itself
    /// is declared where it is used, but named structures in it are not.
    fn declare_inner(&self, id: TypeId, text: &mut String, done: &mut BTreeSet<TypeId>) {
        if !self.is_nameless(id) {
            return self.declare(id, text, done);
        }
        for kind in self.members.get(&id).into_iter().flat_map(BTreeMap::values) {
            if let Type::Record(inner) = kind {
                self.declare_inner(*inner, text, done);
            }
        }
    }

    fn body(&self, id: TypeId, indent: &str) -> String {
        let mut text = "{\n".to_owned();
        for (name, kind) in self.members.get(&id).into_iter().flatten() {
            let bits = match kind {
                Type::Int(int) if self.kernel.is_bit_field(id, name) => format!(" : {}", int.bits),
                _ => String::new(),
            };
            let member = match kind {
                Type::Int(int) if self.kernel.is_enumeration(id, name) => {
                    format!("{} {name}", enumeration(*int))
                }
                kind => self.member(name, kind, indent),
            };
            let _ = writeln!(text, "{indent}{member}{bits};");
        }
        // The brace stands one tab before the members.
        text.push_str(&indent[1..]);
        text.push('}');
        text
    }

    fn member(&self, name: &str, kind: &Type, indent: &str) -> String {
        let writer = Writer { kernel: self.kernel, is_direct: true };
        match kind {
            Type::Text(letters) => format!("char {name}[{letters}]"),
            Type::Array(of, count) => {
                format!("{}[{count}]", self.member(name, &self.kernel.kind(*of), indent))
            }
            // No declaration elsewhere could be referred to.
            Type::Record(id) | Type::Pointer(Some(id)) if self.is_nameless_record(*id) => {
                let star = if matches!(kind, Type::Pointer(_)) { "*" } else { "" };
                let id = record_of(self.kernel, kind).unwrap_or(*id);
                let word = if self.kernel.is_union(id) { "union" } else { "struct" };
                format!("{word} {} {star}{name}", self.body(id, &format!("{indent}\t")))
            }
            Type::Pointer(_) => format!("{}{name}", writer.c_type(kind)),
            kind => format!("{} {name}", writer.c_type(kind)),
        }
    }

    fn is_nameless_record(&self, id: TypeId) -> bool {
        matches!(self.kernel.kind(id), Type::Record(id) if self.is_nameless(id))
    }
}

/// The name of the type for a member that is an enumeration.
fn enumeration(int: Int) -> String {
    format!("mete_enum_{}", whole(int))
}

fn enumeration_type(name: &str, int: Int) -> String {
    // A packed enumeration has the smallest size that its values fit, so this value has all bits of the type.
    let value = match (int.is_signed, int.bits) {
        (true, bits) => format!("(-0x{:x}ll - 1)", (1_u64 << (bits - 1)) - 1),
        (false, bits) => format!("0x{:x}ull", u64::MAX >> (64 - bits)),
    };
    format!("typedef enum {{ {name}_ = {value} }} __attribute__((packed)) {name};\n")
}
