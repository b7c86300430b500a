//! The maps of objects that are made from schemata. Those are compiled after this crate, so their maps are
//! found by name; but the names and types are those of `bpf/record.bpf.h`, of which this crate has a
//! generated form.

use std::io;

use libbpf_rs::{Map, MapCore, Object};

use crate::KernelError;
use crate::map::{NamedMap, Table};
use crate::plain::Plain;
use crate::skeleton::shared::SharedMaps;

/// Constants with the names of maps. A map that `bpf/record.bpf.h` does not define does not compile.
macro_rules! map_names {
    ($($constant:ident: $name:literal is $field:ident),* $(,)?) => {
        $(pub(super) const $constant: &str = $name;)*

        /// Never called: it compiles only if the maps exist.
        const _: fn(&SharedMaps<'_>) = |maps| {
            let _ = ($(&maps.$field,)*);
        };
    };
}

map_names! {
    BUFFERS: "buffers" is buffers,
    COUNTERS: "counters" is counters,
    DOMAIN_OF_PID: "domain_of_pid" is domain_of_pid,
    RECORDING: ".rodata.recording" is rodata_recording,
    SWITCHES: ".bss.switches" is bss_switches,
}

/// Uses a map of an object.
pub(super) fn with_map<T>(
    object: &Object,
    name: &'static str,
    use_map: impl FnOnce(NamedMap<'_>) -> Result<T, KernelError>,
) -> Result<T, KernelError> {
    let found: Option<Map<'_>> = object.maps().find(|map| map.name() == name);
    let map = found.ok_or(KernelError::Map { map: name, source: io::ErrorKind::NotFound.into() })?;
    use_map(NamedMap { name, map: &map })
}

/// Writes one element of a map of an object.
pub(super) fn write<V: Plain>(
    object: &Object,
    name: &'static str,
    key: u32,
    value: &V,
) -> Result<(), KernelError> {
    with_map(object, name, |map| Table::of(map).write(key, value))
}
