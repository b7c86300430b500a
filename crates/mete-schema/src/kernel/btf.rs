//! Reads the kernel's own description of its types (BTF), as in `/sys/kernel/btf/vmlinux`.
//!
//! Only what a schema can ask for is read. The bytes are read in place and never trusted: each offset is
//! checked where it is used, and each walk along a chain of types has a limit.
//!
//! A module's description continues the kernel's: type numbers and offsets of names that are less than the
//! kernel's end mean types and names of the kernel.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::{Function, KernelTypes, Type, TypeId, Typed, record_format};
use crate::types::Int;
use mete_base::regular;

/// Why type information could not be read from a file.
#[derive(Debug, thiserror::Error)]
pub enum BtfError {
    /// The file cannot be read.
    #[error(
        "cannot read the kernel's type information in {path}: {source}; kernels have it if they were built with CONFIG_DEBUG_INFO_BTF"
    )]
    Read {
        /// The file.
        path: String,
        /// Why.
        source: io::Error,
    },
    /// The file holds something else, or is damaged.
    #[error("{name} is no type information of a kernel (BTF): {what}")]
    Format {
        /// The file.
        name: String,
        /// What is wrong with it.
        what: &'static str,
    },
}

const MAGIC: u16 = 0xeb9f;
const HEADER_BYTES: usize = 24;
/// The most bytes that are read. A kernel has some six million.
const MAX_BYTES: u64 = 256 << 20;
/// The most typedefs and qualifiers on the way to a type. Real types have four or five; damaged ones may form
/// a circle.
const MAX_CHAIN: usize = 32;
/// The deepest nesting of structures without a name.
const MAX_NESTING: usize = 16;
/// The most members of a structure, including those of nameless structures in it.
const MAX_MEMBERS: usize = 4096;

const INT: u32 = 1;
const POINTER: u32 = 2;
const ARRAY: u32 = 3;
const STRUCT: u32 = 4;
const UNION: u32 = 5;
const ENUM: u32 = 6;
const FORWARD: u32 = 7;
const TYPEDEF: u32 = 8;
const VOLATILE: u32 = 9;
const CONST: u32 = 10;
const RESTRICT: u32 = 11;
const FUNCTION: u32 = 12;
const PROTOTYPE: u32 = 13;
const VARIABLE: u32 = 14;
const SECTION: u32 = 15;
const FLOAT: u32 = 16;
const DECLARATION_TAG: u32 = 17;
const TYPE_TAG: u32 = 18;
const ENUM64: u32 = 19;

/// The types of a kernel.
#[derive(Clone)]
pub struct Btf {
    name: String,
    types: Vec<u8>,
    strings: Vec<u8>,
    /// The offset of each type: type n + 1 begins at `places[n]`. Type 0 is `void`.
    places: Vec<u32>,
    /// The first type of each kind and name, by the hash of both.
    names: HashMap<u64, TypeId>,
    /// The kernel's types, if these are a module's.
    base: Option<Arc<Btf>>,
}

/// The fixed part of a type's description, and where the rest begins.
#[derive(Clone, Copy)]
struct TypeHead {
    name: u32,
    kind: u32,
    count: usize,
    flag: bool,
    /// The type's size, or the type that it leads to.
    size_or_type: u32,
    rest: usize,
    /// Whether the type is the kernel's, found through a module's description.
    is_of_base: bool,
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_le_bytes(bytes.try_into().ok()?))
}

fn hash(kind: u32, name: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    (kind, name).hash(&mut hasher);
    hasher.finish()
}

impl Btf {
    /// Reads the types in a file.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, or holds something else.
    pub fn read(path: &Path) -> Result<Btf, BtfError> {
        Btf::read_on(None, path)
    }

    /// Reads the types of a module of this kernel.
    ///
    /// # Errors
    ///
    /// As [`Btf::read`].
    pub fn read_module(path: &Path, kernel: &Arc<Btf>) -> Result<Btf, BtfError> {
        Btf::read_on(Some(Arc::clone(kernel)), path)
    }

    fn read_on(base: Option<Arc<Btf>>, path: &Path) -> Result<Btf, BtfError> {
        let name = path.display().to_string();
        let bytes = match regular::read(path, MAX_BYTES) {
            Ok(bytes) => bytes,
            Err(source) => return Err(BtfError::Read { path: name, source }),
        };
        if bytes.len() as u64 > MAX_BYTES {
            return Err(BtfError::Format { name, what: "it is far too large" });
        }
        Btf::parse_on(base, &name, &bytes)
    }

    /// The same types under another name for messages.
    pub(super) fn called(self, name: &str) -> Btf {
        Btf { name: name.to_owned(), ..self }
    }

    /// Reads the types in these bytes. Messages call them `name`.
    ///
    /// # Errors
    ///
    /// If the bytes are something else.
    pub fn parse(name: &str, bytes: &[u8]) -> Result<Btf, BtfError> {
        Btf::parse_on(None, name, bytes)
    }

    fn parse_on(base: Option<Arc<Btf>>, name: &str, bytes: &[u8]) -> Result<Btf, BtfError> {
        let failed = |what| BtfError::Format { name: name.to_owned(), what };
        let magic = bytes.first_chunk().map(|magic| u16::from_le_bytes(*magic));
        match magic {
            Some(MAGIC) => {}
            Some(magic) if magic.swap_bytes() == MAGIC => {
                return Err(failed("it comes from a big-endian machine"));
            }
            _ => return Err(failed("it does not begin with its magic number")),
        }
        // The words behind magic number, version and flags. Word 0 is the end of the header, where the
        // sections begin.
        let word = |nth: usize| u32_at(bytes, 4 + 4 * nth).map(|word| word as usize);
        let section = |offset: usize, length: usize| {
            let begin = word(0)?.checked_add(word(offset)?)?;
            bytes.get(begin..begin.checked_add(word(length)?)?)
        };
        if bytes.len() < HEADER_BYTES {
            return Err(failed("it ends within its header"));
        }
        let types = section(1, 2).ok_or_else(|| failed("its types lie outside of it"))?.to_vec();
        let strings = section(3, 4).ok_or_else(|| failed("its names lie outside of it"))?.to_vec();
        let mut btf =
            Btf { name: name.to_owned(), types, strings, places: Vec::new(), names: HashMap::new(), base };
        btf.find_types().ok_or_else(|| failed("a type is cut off or of an unknown kind"))?;
        btf.index();
        Ok(btf)
    }

    /// Finds where each type begins. `None` if one is cut off or of an unknown kind.
    fn find_types(&mut self) -> Option<()> {
        let mut at = 0;
        while at < self.types.len() {
            let head = self.head_at(at)?;
            // Types have no length of their own: it follows from the kind and the count.
            let rest = match head.kind {
                INT | VARIABLE | DECLARATION_TAG => 4,
                ARRAY => 12,
                STRUCT | UNION | SECTION | ENUM64 => 12 * head.count,
                ENUM | PROTOTYPE => 8 * head.count,
                POINTER | FORWARD | TYPEDEF | VOLATILE | CONST | RESTRICT | FUNCTION | FLOAT | TYPE_TAG => 0,
                _ => return None,
            };
            self.places.push(u32::try_from(at).ok()?);
            at = head.rest + rest;
        }
        (at == self.types.len()).then_some(())
    }

    fn head_at(&self, at: usize) -> Option<TypeHead> {
        let info = u32_at(&self.types, at + 4)?;
        // Bits 0 to 15 are the count, 24 to 28 the kind, and 31 the flag.
        Some(TypeHead {
            name: u32_at(&self.types, at)?,
            kind: info >> 24 & 31,
            count: info as usize & 0xffff,
            flag: info >> 31 == 1,
            size_or_type: u32_at(&self.types, at + 8)?,
            rest: at + 12,
            is_of_base: false,
        })
    }

    /// How many types and bytes of names the kernel has, which stand before a module's own.
    fn before(&self) -> (usize, usize) {
        self.base.as_ref().map_or((0, 0), |base| (base.places.len(), base.strings.len()))
    }

    /// The number of types, including the kernel's, which stand before a module's own.
    pub fn types(&self) -> u32 {
        (self.before().0 + self.places.len()) as u32
    }

    /// Whether there is a type of this number.
    pub(super) fn has(&self, id: TypeId) -> bool {
        self.head(id).is_some()
    }

    /// The head of a type; `None` for `void`, and for a number without a type.
    fn head(&self, id: TypeId) -> Option<TypeHead> {
        let nth = (id as usize).checked_sub(1)?;
        match nth.checked_sub(self.before().0) {
            Some(own) => self.head_at(*self.places.get(own)? as usize),
            None => Some(TypeHead { is_of_base: true, ..self.base.as_ref()?.head(id)? }),
        }
    }

    /// A word behind the fixed part of a type.
    fn word(&self, head: TypeHead, at: usize) -> Option<u32> {
        // The offset counts in the bytes that the head was found in.
        let base = self.base.as_ref().filter(|_| head.is_of_base);
        u32_at(base.map_or(&self.types, |base| &base.types), head.rest + at)
    }

    /// The type behind typedefs and qualifiers.
    fn bare(&self, mut id: TypeId) -> Option<(TypeId, TypeHead)> {
        for _ in 0..MAX_CHAIN {
            let head = self.head(id)?;
            if !matches!(head.kind, TYPEDEF | VOLATILE | CONST | RESTRICT | TYPE_TAG) {
                return Some((id, head));
            }
            id = head.size_or_type;
        }
        None
    }

    fn string(&self, at: u32) -> &[u8] {
        let text = match ((at as usize).checked_sub(self.before().1), &self.base) {
            // An offset behind the end names nothing.
            (Some(own), _) => self.strings.get(own..).unwrap_or_default(),
            (None, Some(base)) => return base.string(at),
            (None, None) => &[],
        };
        text.split(|byte| *byte == 0).next().unwrap_or_default()
    }

    fn text(&self, at: u32) -> String {
        String::from_utf8_lossy(self.string(at)).into_owned()
    }

    /// The numbers of its own types.
    fn own(&self) -> impl Iterator<Item = TypeId> + use<> {
        let before = self.before().0;
        (before + 1..=before + self.places.len()).map(|id| id as TypeId)
    }

    /// All its own types of this kind.
    fn all(&self, kind: u32) -> impl Iterator<Item = (TypeId, TypeHead)> {
        let heads = self.own().filter_map(|id| Some((id, self.head(id)?)));
        heads.filter(move |(_, head)| head.kind == kind)
    }

    /// Indexes the names, because a schema may ask for a name a hundred thousand times.
    fn index(&mut self) {
        for id in self.own() {
            let Some(head) = self.head(id) else { continue };
            if matches!(head.kind, STRUCT | UNION | TYPEDEF | FUNCTION) {
                let hash = hash(head.kind, self.string(head.name));
                // The first one, as a search from the beginning would find it.
                self.names.entry(hash).or_insert(id);
            }
        }
    }

    fn named(&self, kind: u32, name: &str) -> Option<(TypeId, TypeHead)> {
        let is_it = |head: &TypeHead| head.kind == kind && self.string(head.name) == name.as_bytes();
        let id = *self.names.get(&hash(kind, name.as_bytes()))?;
        let head = self.head(id).filter(is_it);
        // Another name may have the same hash.
        head.map(|head| (id, head)).or_else(|| self.all(kind).find(|(_, head)| is_it(head)))
    }

    /// Names and types of a prototype's arguments.
    fn arguments(&self, prototype: TypeHead) -> Vec<(String, TypeId)> {
        (0..prototype.count).filter_map(|nth| self.argument(prototype, nth)).collect()
    }

    fn argument(&self, prototype: TypeHead, nth: usize) -> Option<(String, TypeId)> {
        Some((self.text(self.word(prototype, 8 * nth)?), self.word(prototype, 8 * nth + 4)?))
    }

    /// The prototype of a function that is compiled into the kernel.
    fn prototype(&self, function: &str) -> Option<TypeHead> {
        let (_, head) = self.named(FUNCTION, function)?;
        self.head(head.size_or_type).filter(|head| head.kind == PROTOTYPE)
    }

    /// The names of a tracepoint's arguments. The prototype of its programs has no names, but the function
    /// that calls the programs has.
    fn argument_names(&self, tracepoint: &str) -> Vec<String> {
        // Which of these functions a kernel describes depends on its version.
        let callers = ["__traceiter_", "__probestub_", "__bpf_trace_"];
        let caller = callers.iter().find_map(|prefix| self.prototype(&format!("{prefix}{tracepoint}")));
        caller
            .map(|head| self.arguments(head).into_iter().map(|(name, _)| name).collect())
            .unwrap_or_default()
    }

    fn int(&self, head: TypeHead) -> Option<Type> {
        const SIGNED: u32 = 1;
        const TRUTH: u32 = 4;
        // Bits 0 to 7 are the width, 24 to 27 the encoding.
        let encoding = self.word(head, 0)?;
        if encoding >> 24 & TRUTH != 0 {
            return Some(Type::Truth);
        }
        let is_signed = encoding >> 24 & SIGNED != 0;
        Some(match u8::try_from(encoding & 0xff) {
            Ok(bits @ 1..=64) => Type::Int(Int { bits, is_signed }),
            _ => Type::Other("a number of more than 64 bits"),
        })
    }

    fn array(&self, head: TypeHead) -> Option<Type> {
        // Word 4 is the type of the index, which says nothing.
        let (element, count) = (self.word(head, 0)?, self.word(head, 8)?);
        let (_, letter) = self.bare(element)?;
        // An array of `unsigned char` is no text, but bytes.
        let is_text = letter.kind == INT && self.string(letter.name) == b"char";
        Some(if is_text { Type::Text(count) } else { Type::Array(element, count) })
    }

    fn enumeration(head: TypeHead) -> Type {
        match u8::try_from(head.size_or_type) {
            // The flag of an enumeration says that its values have a sign.
            Ok(bytes @ (1 | 2 | 4 | 8)) => Type::Int(Int { bits: 8 * bytes, is_signed: head.flag }),
            _ => Type::Other("an enumeration of unknown size"),
        }
    }

    fn try_kind(&self, id: TypeId) -> Option<Type> {
        if id == 0 {
            return Some(Type::Other("nothing (`void`)"));
        }
        let (id, head) = self.bare(id)?;
        Some(match head.kind {
            INT => self.int(head)?,
            // A pointer to `void` leads to no type; nor does one into a circle.
            POINTER => Type::Pointer(Some(head.size_or_type).filter(|to| self.bare(*to).is_some())),
            ARRAY => self.array(head)?,
            STRUCT | UNION => Type::Record(id),
            ENUM | ENUM64 => Btf::enumeration(head),
            FORWARD => Type::Other("a structure that this kernel does not describe"),
            FLOAT => Type::Other("a floating-point number"),
            _ => Type::Other("a function"),
        })
    }

    /// Collects the members of a structure, including those of nameless structures in it. `looks` is the
    /// number of members that may still be looked at. Without that limit, nameless structures that hold each
    /// other twice would not end, because they add no name to `found`.
    fn collect(&self, id: TypeId, nesting: usize, looks: &mut usize, found: &mut Vec<BtfMember>) {
        let record = self.bare(id).filter(|(_, head)| matches!(head.kind, STRUCT | UNION));
        let Some((_, record)) = record else { return };
        for nth in 0..record.count {
            let [name, kind, offset] = [0, 4, 8].map(|at| self.word(record, 12 * nth + at));
            let words = (name, kind, offset);
            let (Some(name), Some(kind), Some(offset)) = words else { return };
            *looks = match looks.checked_sub(1) {
                Some(left) => left,
                None => return,
            };
            let name = self.text(name);
            if !name.is_empty() {
                // With the flag, the upper eight bits of the offset are the width of a bit field.
                let (bits, offset) =
                    if record.flag { (offset >> 24, offset & 0xff_ffff) } else { (0, offset) };
                // Offsets are in bits, and those in a nameless structure count from its own beginning.
                let place = (nesting == 0).then_some(offset / 8);
                let is_enumeration =
                    self.bare(kind).is_some_and(|(_, head)| matches!(head.kind, ENUM | ENUM64));
                let typed = Typed { name, kind: narrowed(self.kind(kind), bits), place };
                found.push(BtfMember { bits, is_enumeration, typed });
            } else if nesting < MAX_NESTING {
                self.collect(kind, nesting + 1, looks, found);
            }
        }
    }

    fn all_members(&self, id: TypeId) -> Vec<BtfMember> {
        let (mut found, mut looks) = (Vec::new(), MAX_MEMBERS);
        self.collect(id, 0, &mut looks, &mut found);
        found
    }
}

/// A member of a structure or union.
struct BtfMember {
    /// Its width in bits, if it is a bit field, or else 0.
    bits: u32,
    is_enumeration: bool,
    typed: Typed,
}

/// The type of a member whose width as a bit field is `bits`; 0 means that it is none.
fn narrowed(kind: Type, bits: u32) -> Type {
    match (kind, u8::try_from(bits)) {
        (Type::Int(int), Ok(bits)) if bits != 0 && bits < int.bits => Type::Int(Int { bits, ..int }),
        (Type::Truth, Ok(1..)) => Type::Int(Int::unsigned(1)),
        (kind, _) => kind,
    }
}

impl KernelTypes for Btf {
    fn name(&self) -> &str {
        &self.name
    }

    fn tracepoint(&self, name: &str) -> Option<Vec<Typed>> {
        // `typedef void (*btf_trace_NAME)(void *, …)`
        let (_, head) = self.named(TYPEDEF, &format!("btf_trace_{name}"))?;
        let (_, pointer) = self.bare(head.size_or_type).filter(|(_, head)| head.kind == POINTER)?;
        let prototype = self.head(pointer.size_or_type).filter(|head| head.kind == PROTOTYPE)?;
        let names = self.argument_names(name);
        // The first argument is the kernel's own.
        let arguments = self.arguments(prototype).into_iter().enumerate().skip(1);
        let typed = arguments.map(|(nth, (_, id))| {
            let name = names.get(nth).filter(|name| !name.is_empty()).cloned();
            Typed::new(name.unwrap_or_else(|| format!("arg{}", nth - 1)), self.kind(id))
        });
        Some(typed.collect())
    }

    /// The record's structure is named after the class of the event, which often has the event's own name.
    /// Otherwise only the tracing file system describes the record.
    fn record(&self, group: &str, name: &str) -> Result<Option<Vec<Typed>>, String> {
        const HEAD: &str = "ent";
        let Some(id) = self.structure(&format!("trace_event_raw_{name}")) else {
            return Err(format!(
                "the record of {group}:{name} is described in the tracing file system only, which this process may not look at"
            ));
        };
        let mut members = self.members(id);
        // The head that all records share, and the place where fields of varying length begin.
        members.retain(|member| member.name != HEAD && member.name != "__data");
        Ok(Some(members.into_iter().map(record_format::varying).collect()))
    }

    fn function(&self, name: &str) -> Option<Function> {
        let prototype = self.prototype(name)?;
        let arguments = self.arguments(prototype).into_iter();
        let arguments = arguments.map(|(name, id)| Typed::new(name, self.kind(id))).collect();
        Some(Function { arguments, result: self.kind(prototype.size_or_type) })
    }

    fn structure(&self, name: &str) -> Option<TypeId> {
        self.named(STRUCT, name).or_else(|| self.named(UNION, name)).map(|(id, _)| id)
    }

    fn structure_name(&self, id: TypeId) -> String {
        self.head(id).map(|head| self.text(head.name)).unwrap_or_default()
    }

    fn members(&self, id: TypeId) -> Vec<Typed> {
        self.all_members(id).into_iter().map(|member| member.typed).collect()
    }

    fn is_union(&self, id: TypeId) -> bool {
        self.head(id).is_some_and(|head| head.kind == UNION)
    }

    fn is_bit_field(&self, id: TypeId, member: &str) -> bool {
        self.all_members(id).iter().any(|it| it.bits != 0 && it.typed.name == member)
    }

    fn is_enumeration(&self, id: TypeId, member: &str) -> bool {
        self.all_members(id).iter().any(|it| it.is_enumeration && it.typed.name == member)
    }

    fn kind(&self, id: TypeId) -> Type {
        self.try_kind(id).unwrap_or(Type::Other("of a kind that this kernel does not describe"))
    }

    fn tracepoints(&self) -> Vec<String> {
        let names = self.all(TYPEDEF).map(|(_, head)| self.text(head.name));
        names.filter_map(|name| name.strip_prefix("btf_trace_").map(str::to_owned)).collect()
    }

    fn functions(&self) -> Vec<String> {
        self.all(FUNCTION).map(|(_, head)| self.text(head.name)).collect()
    }
}
