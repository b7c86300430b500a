//! Rules by which processes come to their domain in the kernel, at fork, at exec and when they take another name
//! (LOG-6): `bpf/rule.h` and `bpf/select.h` follow them.

use libbpf_rs::{MapCore, MapFlags};
use mete_log::{DomainId, Shape};

use crate::attach::run_once;
use crate::glob::{Glob, Token};
use crate::{Kernel, KernelError, map};

/// As in `bpf/rule.h`.
const MAX_RULES: usize = 1024;
const MAX_TOKENS: usize = 32_768;
const MAX_CLASSES: usize = 256;
const KINDS: &str = "domain_by";

/// What a rule selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selects {
    /// The process of this number.
    Process(u32),
    /// The children of the process of this number.
    Children(u32),
    /// Processes of this user, by the effective number.
    User(u32),
    /// Processes whose first thread has such a name.
    Comm(Glob),
    /// Processes that run such a program: its path as `/proc/PID/exe` shows it.
    Program(Glob),
}

/// Processes that a rule selects belong to its domain, whatever domain they were in before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Who is selected.
    pub selects: Selects,
    /// Where they belong.
    pub domain: DomainId,
}

/// What processes that no rule selects have a domain of their own by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindOf {
    /// The name of their first thread.
    Program,
    /// Their user.
    User,
}

impl KindOf {
    /// Of a program of this name.
    pub fn program(name: &[u8]) -> ProcessKind {
        let mut kind = [0; 16];
        // The kernel keeps 15 bytes, and a zero.
        kind[..15].iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        kind
    }

    /// Of a user.
    pub fn user(id: u32) -> ProcessKind {
        let mut kind = [0; 16];
        kind[..4].copy_from_slice(&id.to_ne_bytes());
        kind
    }
}

/// One kind of processes: what [`KindOf`] says.
pub type ProcessKind = [u8; 16];

/// Domains that the kernel gives out to kinds of processes, each to the first that appears.
#[derive(Clone, Debug)]
pub struct Division {
    /// By what.
    pub by: KindOf,
    /// Kinds that have a domain already.
    pub known: Vec<(ProcessKind, DomainId)>,
    /// Domains for others.
    pub free: std::ops::Range<DomainId>,
}

/// The rules in the programs' form.
#[derive(Default)]
struct Table {
    rules: Vec<[u8; 12]>,
    tokens: Vec<u8>,
    classes: Vec<[u8; 32]>,
    has_program: bool,
}

impl Table {
    fn new(rules: &[Rule]) -> Result<Table, KernelError> {
        let mut table = Table::default();
        for rule in rules {
            table.add(rule);
        }
        let is_too_much = table.rules.len() > MAX_RULES
            || table.tokens.len() > 2 * MAX_TOKENS
            || table.classes.len() > MAX_CLASSES;
        if is_too_much { Err(KernelError::TooManyRules) } else { Ok(table) }
    }

    fn add(&mut self, rule: &Rule) {
        let begin = (self.tokens.len() / 2) as u32;
        let (kind, number) = match &rule.selects {
            Selects::Process(pid) => (1u16, *pid),
            Selects::Children(pid) => (2, *pid),
            Selects::User(id) => (3, *id),
            Selects::Comm(glob) => (4, self.add_pattern(glob, begin)),
            Selects::Program(glob) => (5, self.add_pattern(glob, begin)),
        };
        self.has_program |= kind == 5;
        let end = (self.tokens.len() / 2) as u32;
        let mut bytes = [0; 12];
        bytes[..2].copy_from_slice(&kind.to_ne_bytes());
        bytes[2..4].copy_from_slice(&rule.domain.to_ne_bytes());
        bytes[4..8].copy_from_slice(&number.to_ne_bytes());
        bytes[8..].copy_from_slice(&end.to_ne_bytes());
        self.rules.push(bytes);
    }

    fn add_pattern(&mut self, glob: &Glob, begin: u32) -> u32 {
        for token in glob.tokens() {
            let token = match token {
                Token::Byte(byte) => [0, *byte],
                Token::Any => [1, 0],
                Token::Class(bits) => [2, self.class(bits)],
                Token::Star => [3, 0],
                Token::Deep => [4, 0],
            };
            self.tokens.extend(token);
        }
        begin
    }

    fn class(&mut self, bits: &[u8; 32]) -> u8 {
        let known = self.classes.iter().position(|class| class == bits);
        let number = known.unwrap_or_else(|| {
            self.classes.push(*bits);
            self.classes.len() - 1
        });
        number as u8
    }
}

impl Kernel {
    /// Has the kernel itself bind processes that these rules select, from now on: when they are forked, at exec, and
    /// when their first thread is renamed. The first rule that selects a process counts. It goes before what the
    /// process inherited and before its cgroup's domain; a process that no rule selects keeps its domain. The calling
    /// process is selected by its number alone.
    ///
    /// By a division, processes that no rule selects are in the domain of their kind.
    ///
    /// Processes that exist already are for [`Kernel::bind`], until they change.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooManyRules`] if there is no room for them, [`KernelError::NoSuchDomain`], and
    /// [`KernelError::NoHook`] or [`KernelError::Attach`] if the kernel does not run the programs.
    pub fn select(&mut self, rules: &[Rule], division: Option<&Division>) -> Result<(), KernelError> {
        let max = Shape::KERNEL.domains() as u16 - 1;
        if let Some(rule) = rules.iter().find(|rule| rule.domain > max) {
            return Err(KernelError::NoSuchDomain { domain: rule.domain, max });
        }
        let table = Table::new(rules)?;
        self.tell_selecting(0, false, None)?;
        run_once(&self.object, "note_root", "selection of processes")?;
        for (nth, rule) in table.rules.iter().enumerate() {
            map::write(&self.object, "rules", &(nth as u32).to_ne_bytes(), rule)?;
        }
        for (nth, class) in table.classes.iter().enumerate() {
            map::write(&self.object, "classes", &(nth as u32).to_ne_bytes(), class)?;
        }
        let mut tokens = table.tokens;
        tokens.resize(2 * MAX_TOKENS, 0);
        map::write_global(&self.object, "tokens", &tokens)?;
        self.tell_selecting(rules.len(), table.has_program, division)?;
        if rules.is_empty() && division.is_none() { Ok(()) } else { self.follow_selections() }
    }

    /// The domain of each kind of processes, as far as they have been given out.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`].
    pub fn kinds(&self) -> Result<Vec<(ProcessKind, DomainId)>, KernelError> {
        let kinds = map::find(&self.object, KINDS)?;
        let read = |key: Vec<u8>| {
            let value = kinds.lookup(&key, MapFlags::ANY).ok().flatten()?;
            Some((key.try_into().ok()?, DomainId::from_ne_bytes(value.try_into().ok()?)))
        };
        Ok(kinds.keys().filter_map(read).collect())
    }

    /// `struct selecting` of `bpf/rule.h`.
    fn tell_selecting(
        &self,
        rules: usize,
        has_program: bool,
        division: Option<&Division>,
    ) -> Result<(), KernelError> {
        let mut words = [rules as u32, u32::from(has_program), std::process::id(), 0, 0, 0, 0];
        if let Some(Division { by, known, free }) = division {
            for (kind, domain) in known {
                map::write(&self.object, KINDS, kind, &domain.to_ne_bytes())?;
            }
            let by = match by {
                KindOf::Program => 1,
                KindOf::User => 2,
            };
            words[3..6].copy_from_slice(&[by, free.start.into(), free.end.into()]);
        }
        map::write_global(&self.object, ".bss.selecting", &words.map(u32::to_ne_bytes).concat())
    }
}
