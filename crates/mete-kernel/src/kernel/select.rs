//! Rules by which the kernel puts processes into their domain, at fork, at exec and when they change their
//! name (LOG-6). The programs of `bpf/rule.bpf.h` and `bpf/select.bpf.h` apply them.

use mete_log::DomainId;

use super::Kernel;
use super::bind::check_domain;
use crate::KernelError;
use crate::glob::{Glob, Token};
use crate::skeleton::mete::types::{bss_selecting, by_key, class, pattern_tokens, rule, selecting, token};
use crate::skeleton::numbers::{by_kind, mete_limit, rule_kind, token_kind};
use crate::skeleton::{globals, program, table};

const MAX_RULES: usize = mete_limit::MAX_RULES.0 as usize;
const MAX_TOKENS: usize = mete_limit::MAX_TOKENS.0 as usize;
const MAX_CLASSES: usize = mete_limit::MAX_CLASSES.0 as usize;
const COMM_BYTES: usize = mete_limit::COMM_BYTES.0 as usize;
// The message of `KernelError::TooManyRules` has these numbers.
const _: () = assert!(MAX_RULES == 1_024 && MAX_TOKENS == 32_768);

/// What a rule selects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selects {
    /// The process of this number.
    Process(u32),
    /// The children of the process of this number.
    Children(u32),
    /// Processes of this user, by the effective number.
    User(u32),
    /// Processes whose first thread has a name that matches.
    Comm(Glob),
    /// Processes whose program has a path that matches, as `/proc/PID/exe` shows it.
    Program(Glob),
}

/// Processes that a rule selects belong to its domain, no matter which domain they were in before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// Which processes it selects.
    pub selects: Selects,
    /// Their domain.
    pub domain: DomainId,
}

/// By which property processes that no rule selects are divided into kinds. Each kind has a domain of its
/// own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DividedBy {
    /// The name of their first thread.
    Program,
    /// Their user.
    User,
}

/// One kind of processes, by the property that [`DividedBy`] names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProcessKind {
    /// The processes whose first thread has this name.
    Program(ThreadName),
    /// The processes of this user, by the effective number.
    User(u32),
}

/// The name of a thread, with zeroes behind it, as the kernel keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ThreadName([u8; COMM_BYTES]);

impl ThreadName {
    /// The name, cut off where the kernel cuts it off.
    pub fn new(name: &[u8]) -> ThreadName {
        let mut bytes = [0; COMM_BYTES];
        // The kernel keeps a zero at the end of a name.
        bytes[..COMM_BYTES - 1].iter_mut().zip(name).for_each(|(to, from)| *to = *from);
        ThreadName(bytes)
    }

    /// The name without the zeroes behind it.
    pub fn as_bytes(&self) -> &[u8] {
        self.0.split(|&byte| byte == 0).next().unwrap_or_default()
    }
}

impl ProcessKind {
    /// The kind of the processes whose first thread has this name.
    pub fn program(name: &[u8]) -> ProcessKind {
        ProcessKind::Program(ThreadName::new(name))
    }

    /// The kind that the programs mean by a key.
    fn of_key(by: DividedBy, key: by_key) -> ProcessKind {
        let bytes = key.byte.map(i8::cast_unsigned);
        match by {
            DividedBy::Program => ProcessKind::program(&bytes),
            DividedBy::User => {
                ProcessKind::User(u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
            }
        }
    }

    /// The key by which the programs know the kind.
    fn key(self) -> by_key {
        let bytes = match self {
            ProcessKind::Program(ThreadName(bytes)) => bytes,
            ProcessKind::User(id) => {
                let mut bytes = [0; COMM_BYTES];
                bytes[..4].copy_from_slice(&id.to_ne_bytes());
                bytes
            }
        };
        by_key { byte: bytes.map(u8::cast_signed) }
    }
}

/// Domains that the kernel gives out to kinds of processes: to each kind the next one, when its first process
/// appears.
#[derive(Clone, Debug)]
pub struct Division {
    /// By which property processes are divided.
    pub by: DividedBy,
    /// Kinds that have a domain already.
    pub known: Vec<(ProcessKind, DomainId)>,
    /// Domains for the other kinds.
    pub free: std::ops::Range<DomainId>,
}

/// The rules as the programs read them.
#[derive(Default)]
struct RuleTable {
    rules: Vec<rule>,
    tokens: Vec<token>,
    classes: Vec<[u8; 32]>,
    has_program: bool,
}

impl RuleTable {
    fn new(rules: &[Rule]) -> Result<RuleTable, KernelError> {
        let mut table = RuleTable::default();
        for rule in rules {
            table.add(rule);
        }
        let is_too_much = table.rules.len() > MAX_RULES
            || table.tokens.len() > MAX_TOKENS
            || table.classes.len() > MAX_CLASSES;
        if is_too_much { Err(KernelError::TooManyRules) } else { Ok(table) }
    }

    fn add(&mut self, added: &Rule) {
        let (kind, number) = match &added.selects {
            Selects::Process(pid) => (rule_kind::RULE_PROCESS, *pid),
            Selects::Children(pid) => (rule_kind::RULE_CHILDREN, *pid),
            Selects::User(id) => (rule_kind::RULE_USER, *id),
            Selects::Comm(glob) => (rule_kind::RULE_COMM, self.add_pattern(glob)),
            Selects::Program(glob) => (rule_kind::RULE_PROGRAM, self.add_pattern(glob)),
        };
        self.has_program |= kind == rule_kind::RULE_PROGRAM;
        let end = self.tokens.len() as u32;
        self.rules.push(rule { kind: kind.0 as u16, domain: added.domain.get(), number, end });
    }

    /// Adds the tokens of a pattern. Returns the index of the first one.
    fn add_pattern(&mut self, glob: &Glob) -> u32 {
        let begin = self.tokens.len() as u32;
        for added in glob.tokens() {
            let (kind, value) = match added {
                Token::Byte(byte) => (token_kind::TOKEN_BYTE, *byte),
                Token::Any => (token_kind::TOKEN_ANY, 0),
                Token::Class(bits) => (token_kind::TOKEN_CLASS, self.class(bits)),
                Token::Star => (token_kind::TOKEN_STAR, 0),
                Token::Deep => (token_kind::TOKEN_DEEP, 0),
            };
            self.tokens.push(token { kind: kind.0 as u8, value });
        }
        begin
    }

    /// The number of a class, which is the same for all its uses.
    fn class(&mut self, bits: &[u8; 32]) -> u8 {
        let known = self.classes.iter().position(|class| class == bits);
        let number = known.unwrap_or_else(|| {
            self.classes.push(*bits);
            self.classes.len() - 1
        });
        // Where there are more than MAX_CLASSES, which a byte can number, the whole table is refused.
        number as u8
    }
}

impl Kernel {
    /// From now on, the kernel itself binds processes that these rules select: when they are forked, at exec,
    /// and when their first thread is renamed. The first rule that selects a process counts. It takes
    /// precedence over the domain that the process inherited and over that of its cgroup. A process that no
    /// rule selects keeps its domain. The calling process is selected only by its number.
    ///
    /// With a division, processes that no rule selects are in the domain of their kind.
    ///
    /// Processes that exist already have to be bound by [`Kernel::bind`], until they change.
    ///
    /// # Errors
    ///
    /// [`KernelError::TooManyRules`] if there is no room for them, [`KernelError::NoSuchDomain`], and
    /// [`KernelError::NoHook`] or [`KernelError::Attach`] if the kernel does not run the programs.
    pub fn select(&mut self, rules: &[Rule], division: Option<&Division>) -> Result<(), KernelError> {
        rules.iter().try_for_each(|rule| check_domain(rule.domain))?;
        let table = RuleTable::new(rules)?;
        // Kinds that have a domain keep it if a later call has no division.
        self.divided_by = division.map(|division| division.by).or(self.divided_by);
        // Off while they are written: no program must apply a part of them.
        self.write_selecting(0, false, None)?;
        program!(self.skeleton, note_root).run_once()?;
        self.write_rules(&table)?;
        self.write_selecting(rules.len(), table.has_program, division)?;
        if rules.is_empty() && division.is_none() { Ok(()) } else { self.follow_selections() }
    }

    /// The domain of each kind of processes that has one by now.
    ///
    /// # Errors
    ///
    /// [`KernelError::Map`].
    pub fn kinds(&self) -> Result<Vec<(ProcessKind, DomainId)>, KernelError> {
        // Without a division, no kind has a domain.
        let Some(by) = self.divided_by else { return Ok(Vec::new()) };
        let kinds = table!(mete, self.skeleton, domain_by);
        // Elements are never removed, so each key has its value.
        kinds
            .keys()
            .map(|key| {
                let domain = kinds.read(key)?.unwrap_or_default();
                Ok((ProcessKind::of_key(by, key), DomainId::new(domain)))
            })
            .collect()
    }

    fn write_rules(&self, table: &RuleTable) -> Result<(), KernelError> {
        let (rules, classes) = (table!(mete, self.skeleton, rules), table!(mete, self.skeleton, classes));
        for (nth, rule) in (0..).zip(&table.rules) {
            rules.write(nth, rule)?;
        }
        for (nth, bits) in (0..).zip(&table.classes) {
            classes.write(nth, &class { has: *bits })?;
        }
        let mut tokens = Box::new(pattern_tokens { token: [token::default(); MAX_TOKENS] });
        // There are no more: `RuleTable::new` has counted them.
        tokens.token[..table.tokens.len()].copy_from_slice(&table.tokens);
        table!(mete, self.skeleton, tokens).write(0, &tokens)
    }

    /// Tells the programs how many rules there are, and how to divide the other processes.
    fn write_selecting(
        &self,
        rules: usize,
        has_program: bool,
        division: Option<&Division>,
    ) -> Result<(), KernelError> {
        let mut selecting = selecting {
            rules: rules as u32,
            has_program: has_program.into(),
            own: std::process::id(),
            ..selecting::default()
        };
        if let Some(Division { by, known, free }) = division {
            for (kind, domain) in known {
                table!(mete, self.skeleton, domain_by).write(kind.key(), &domain.get())?;
            }
            selecting.by = match by {
                DividedBy::Program => by_kind::BY_PROGRAM.0,
                DividedBy::User => by_kind::BY_USER.0,
            };
            (selecting.next, selecting.end) = (free.start.get().into(), free.end.get().into());
        }
        globals!(mete, self.skeleton, bss_selecting).write_all(&bss_selecting { selecting })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_6_the_key_of_a_kind_of_processes_is_read_as_the_same_kind() {
        for name in [&b""[..], b"sh", b"a name of 15 by", b"a name that is longer than 15 bytes"] {
            let kind = ProcessKind::program(name);
            assert_eq!(ProcessKind::of_key(DividedBy::Program, kind.key()), kind);
            let ProcessKind::Program(kept) = kind else { panic!("it is of a program") };
            assert_eq!(kept.as_bytes(), &name[..name.len().min(15)]);
        }
        for id in [0, 1_000, u32::MAX] {
            let kind = ProcessKind::User(id);
            assert_eq!(ProcessKind::of_key(DividedBy::User, kind.key()), kind);
        }
    }
}
