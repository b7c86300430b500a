//! What the layouts in a description must satisfy: names, numbers, and places in the record.

use std::collections::HashSet;

use mete_schema::format::is_name;

use super::layout::{Description, EventLayout, FieldLayout};
use super::marks;
use crate::record::{FIRST_RESERVED, HEADER_BYTES, MAX_BYTES};

/// The rule for names. It keeps them from steering a terminal, and from being code or markup in any format
/// that a trace is converted to.
const NO_NAME: &str = "names are C identifiers of at most 64 letters";

/// Why a description is refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DescriptionError {
    /// Another event has the number or the name, the number is reserved, or the name breaks the rule for
    /// names.
    #[error("event {name:?} (number {id}): {what}")]
    Event {
        /// The event's name.
        name: String,
        /// The event's number.
        id: u16,
        /// What is wrong.
        what: &'static str,
    },
    /// A field has a bad name, a bad size, or lies outside of the record.
    #[error("field {field:?} of event {event:?}: {what}")]
    Field {
        /// The event.
        event: String,
        /// The field.
        field: String,
        /// What is wrong.
        what: &'static str,
    },
}

impl Description {
    /// Checks the numbers, names, and places of all events and fields.
    ///
    /// # Errors
    ///
    /// [`DescriptionError`] for the first event or field that is refused.
    pub fn check(&self) -> Result<(), DescriptionError> {
        let (mut ids, mut names) = (HashSet::new(), HashSet::new());
        for event in &self.events {
            let what = if !is_name(&event.name) {
                NO_NAME
            } else if event.id >= FIRST_RESERVED && !marks::is_mark(event) {
                // A reserved number is accepted only with exactly the mark's layout: programs that read marks
                // rely on it.
                "numbers from 65520 on are reserved"
            } else if !ids.insert(event.id) {
                "another event has this number"
            } else if !names.insert(event.name.as_str()) {
                "another event has this name"
            } else {
                event.check()?;
                continue;
            };
            return Err(DescriptionError::Event { name: event.name.clone(), id: event.id, what });
        }
        Ok(())
    }
}

impl EventLayout {
    fn check(&self) -> Result<(), DescriptionError> {
        let wrong = self.fields.iter().find_map(|field| Some((field, field.fault()?)));
        wrong.map_or(Ok(()), |(field, what)| {
            let (event, field) = (self.name.clone(), field.name.clone());
            Err(DescriptionError::Field { event, field, what })
        })
    }
}

impl FieldLayout {
    /// What is wrong with the field, if anything is.
    fn fault(&self) -> Option<&'static str> {
        if !is_name(&self.name) {
            Some(NO_NAME)
        } else if usize::from(self.offset) < HEADER_BYTES || self.end() > MAX_BYTES {
            Some("it must lie between byte 16 and byte 4096 of the record")
        } else if !self.kind.may_have(self.bytes) {
            Some("its kind has no such size")
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::description::FieldKind;

    #[test]
    fn new_6_what_cannot_be_a_name_in_a_schema_is_none_in_a_description() {
        let field = |name: &str| FieldLayout {
            name: name.to_owned(),
            kind: FieldKind::Bool,
            offset: 16,
            bytes: 1,
            doc: String::new(),
        };
        let check = |event: &str, of: &str| {
            let (name, doc, fields) = (event.to_owned(), String::new(), vec![field(of)]);
            Description { schema: String::new(), events: vec![EventLayout { id: 20, name, doc, fields }] }
                .check()
        };
        assert_eq!(check("SCHEDIN", "_pid2"), Ok(()));
        for name in ["", "A\u{1b}[2J", "a b", "2a", "é", "a,b", &"x".repeat(65)] {
            for refused in [check(name, "pid"), check("SCHEDIN", name)] {
                let said = refused.unwrap_err().to_string();
                assert!(said.ends_with(NO_NAME) && !said.contains('\u{1b}'), "{said}");
            }
        }
    }
}
