//! Metadata of CTF 2: a JSON text sequence (RFC 7464) of fragments.

use serde_json::{Value, json};

use super::CtfEnvironment;
use super::classes::{ClassField, CtfKind, EventClass, EventClasses};

/// The namespace of our attributes in the metadata.
const OWN: &str = "mete";

/// The metadata.
pub fn metadata(classes: &EventClasses, about: &CtfEnvironment) -> String {
    let mut fragments = vec![
        json!({ "type": "preamble", "version": 2, "uuid": about.uuid }),
        trace_class(about),
        clock_class(about),
        stream_class(),
    ];
    fragments.extend(classes.0.iter().map(event_class));
    fragments.iter().map(|fragment| format!("\u{1e}{fragment}\n")).collect()
}

fn trace_class(about: &CtfEnvironment) -> Value {
    let environment: serde_json::Map<_, _> =
        about.environment.iter().map(|(name, value)| (name.clone(), value.as_str().into())).collect();
    let uuid = json!({ "type": "static-length-blob", "length": 16, "roles": ["metadata-stream-uuid"] });
    json!({
        "type": "trace-class",
        "environment": environment,
        "packet-header-field-class": structure([
            ("magic", unsigned(32, &["packet-magic-number"])),
            ("uuid", uuid),
            ("stream_id", unsigned(32, &["data-stream-class-id"])),
        ]),
    })
}

fn clock_class(about: &CtfEnvironment) -> Value {
    let mut clock = json!({
        "type": "clock-class", "id": "monotonic", "name": "monotonic", "frequency": 1_000_000_000,
        "description": "ticks of the recording processors' counters; how long one lasts is not known",
    });
    if let Some(offset) = about.offset_ns {
        clock["description"] = "CLOCK_MONOTONIC in nanoseconds".into();
        clock["origin"] = "unix-epoch".into();
        // Rounded down, so that the cycles are never negative.
        let (seconds, cycles) = (offset.div_euclid(1_000_000_000), offset.rem_euclid(1_000_000_000));
        clock["offset-from-origin"] = json!({ "seconds": seconds, "cycles": cycles });
    }
    clock
}

fn stream_class() -> Value {
    json!({
        "type": "data-stream-class",
        "id": 0,
        "default-clock-class-id": "monotonic",
        "packet-context-field-class": structure([
            ("timestamp_begin", unsigned(64, &["default-clock-timestamp"])),
            ("timestamp_end", unsigned(64, &["packet-end-default-clock-timestamp"])),
            ("content_size", unsigned(64, &["packet-content-length"])),
            ("packet_size", unsigned(64, &["packet-total-length"])),
            ("events_discarded", unsigned(64, &["discarded-event-record-counter-snapshot"])),
            ("cpu_id", unsigned(32, &[])),
        ]),
        "event-record-header-field-class": structure([
            ("id", unsigned(16, &["event-record-class-id"])),
            ("timestamp", unsigned(64, &["default-clock-timestamp"])),
        ]),
        "event-record-common-context-field-class":
            structure([("serial", unsigned(64, &[])), ("time", unsigned(64, &[]))]),
    })
}

fn event_class(class: &EventClass) -> Value {
    let members: Vec<_> = class.fields.iter().map(member).collect();
    let mut event = json!({
        "type": "event-record-class", "id": class.id, "data-stream-class-id": 0, "name": class.name,
        "payload-field-class": { "type": "structure", "member-classes": members },
    });
    if !class.doc.is_empty() {
        event["attributes"] = json!({ OWN: { "doc": class.doc } });
    }
    event
}

fn member(field: &ClassField) -> Value {
    let mut member = json!({ "name": field.name, "field-class": field_class(field.kind) });
    if !field.doc.is_empty() {
        member["attributes"] = json!({ OWN: { "doc": field.doc } });
    }
    member
}

fn structure<const N: usize>(members: [(&str, Value); N]) -> Value {
    let members = members.map(|(name, class)| json!({ "name": name, "field-class": class }));
    json!({ "type": "structure", "member-classes": members.to_vec() })
}

fn unsigned(bits: u16, roles: &[&str]) -> Value {
    let mut class = fixed("fixed-length-unsigned-integer", bits);
    if !roles.is_empty() {
        class["roles"] = roles.into();
    }
    class
}

fn fixed(kind: &str, bits: u16) -> Value {
    json!({ "type": kind, "length": bits, "byte-order": "little-endian", "alignment": 8 })
}

fn field_class(kind: CtfKind) -> Value {
    match kind {
        CtfKind::Unsigned(bits) => unsigned(bits, &[]),
        CtfKind::Signed(bits) => fixed("fixed-length-signed-integer", bits),
        CtfKind::Float(bits) => fixed("fixed-length-floating-point-number", bits),
        CtfKind::Bool => fixed("fixed-length-boolean", 8),
        CtfKind::Address => {
            let mut class = unsigned(64, &[]);
            class["preferred-display-base"] = 16.into();
            class
        }
        CtfKind::Text => json!({ "type": "null-terminated-string" }),
        CtfKind::Bytes(bytes) => json!({ "type": "static-length-blob", "length": bytes }),
        CtfKind::Rest => json!({
            "type": "dynamic-length-blob",
            "length-field-location": { "origin": "event-record-payload", "path": ["length"] },
        }),
    }
}
