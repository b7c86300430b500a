//! What a trace says about the events of a schema.

use mete_schema::schema::{Event, Field};
use mete_schema::types::{FieldType, Int};
use mete_schema::{Schema, Source};

use crate::description::{Description, EventLayout, FieldKind, FieldLayout};

impl Description {
    /// The events of a schema, and its text. With the text a trace can be understood without the schema's
    /// files.
    pub fn of_schema(schema: &Schema, sources: &[Source]) -> Description {
        let text = sources.iter().map(|source| format!("{}\n", source.text.trim_end()));
        Description { schema: text.collect(), events: schema.events.iter().map(event).collect() }
    }
}

fn event(event: &Event) -> EventLayout {
    let places = event.fields.iter().zip(&event.layout.offsets);
    EventLayout {
        id: event.id,
        name: event.name.clone(),
        doc: event.docs.clone(),
        fields: places.map(|(field, offset)| self::field(field, *offset)).collect(),
    }
}

/// No number is cut: records of a schema have at most 256 bytes.
fn field(field: &Field, offset: usize) -> FieldLayout {
    FieldLayout {
        name: field.name.clone(),
        kind: kind(field.kind),
        offset: offset as u16,
        bytes: field.kind.size() as u16,
        doc: field.docs.clone(),
    }
}

fn kind(kind: FieldType) -> FieldKind {
    match kind {
        FieldType::Int(Int { is_signed: true, .. }) => FieldKind::Signed,
        FieldType::Int(_) => FieldKind::Unsigned,
        FieldType::Bool => FieldKind::Bool,
        FieldType::Address => FieldKind::Address,
        FieldType::Text(_) => FieldKind::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn klog_1_description_of_a_schema_has_each_field_where_its_record_has_it() {
        let text = "/// Doc.\nevent A { u8 a  int b  address c  char d[5]  bool e  ulong f }\nevent B { }";
        let source = Source::new("test", text);
        let schema = Schema::read(std::slice::from_ref(&source)).unwrap_or_else(|_| panic!("it is right"));
        let description = Description::of_schema(&schema, &[source]);
        assert_eq!(description.check(), Ok(()));
        assert_eq!(description.schema, format!("{text}\n"));
        let [a, b] = &description.events[..] else { panic!("two events") };
        assert_eq!((a.id, b.id, a.doc.as_str(), b.fields.len()), (16, 17, "Doc.", 0));
        let fields: Vec<_> =
            a.fields.iter().map(|it| (it.name.as_str(), it.kind, it.offset, it.bytes)).collect();
        use FieldKind::{Address, Bool, Signed, Text, Unsigned};
        let expected = [
            ("a", Unsigned, 36, 1),
            ("b", Signed, 32, 4),
            ("c", Address, 16, 8),
            ("d", Text, 37, 5),
            ("e", Bool, 42, 1),
            ("f", Unsigned, 24, 8),
        ];
        assert_eq!(fields, expected);
        assert_eq!(a.least_bytes().next_multiple_of(8), schema.events[0].layout.size);
    }
}
