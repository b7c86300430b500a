//! What `build.rs` generates from the objects of `bpf/`. A map or a program is a field, so one that its
//! object lacks does not compile. Globals, and the keys and values of maps, have types. The numbers of
//! `bpf/shared.h` are constants.

use crate::plain::Plain;

/// A generated module.
macro_rules! skeleton {
    ($object:ident) => {
        #[allow(
            clippy::all,
            clippy::undocumented_unsafe_blocks,
            clippy::unwrap_used,
            reason = "the generator keeps other rules than this workspace"
        )]
        pub(crate) mod $object {
            include!(concat!(env!("OUT_DIR"), "/", stringify!($object), ".skel.rs"));
        }
    };
}

skeleton!(bench);
skeleton!(capability);
skeleton!(mete);
skeleton!(shared);

pub(crate) use shared::types as numbers;

macro_rules! plain {
    ($($generated:ty),* $(,)?) => { $(
        // SAFETY: the generator writes padding as fields, so there is no other; and all fields are integers,
        // or arrays and structures of them.
        unsafe impl Plain for $generated {}
    )* };
}

plain!(
    mete::types::bss_counted,
    mete::types::bss_memory,
    mete::types::bss_missed,
    mete::types::bss_regrouped,
    mete::types::bss_selecting,
    mete::types::bss_switching,
    mete::types::by_key,
    mete::types::cgroup_key,
    mete::types::class,
    mete::types::pattern_tokens,
    mete::types::phase,
    mete::types::rule,
    mete::types::space,
    numbers::mete_recording,
    numbers::mete_switches,
);

/// A program of a loaded skeleton.
macro_rules! program {
    ($skeleton:expr, $name:ident) => {
        $crate::program::NamedProgram { name: stringify!($name), program: &$skeleton.progs.$name }
    };
}

/// A map of a loaded skeleton, to be mapped into this process.
macro_rules! map {
    ($skeleton:expr, $name:ident) => {
        $crate::map::NamedMap { name: stringify!($name), map: &$skeleton.maps.$name }
    };
}

/// A map of a loaded skeleton, to be read and written by system calls. The types of its keys and values are
/// those that its declaration in C has.
macro_rules! table {
    ($object:ident, $skeleton:expr, $name:ident) => {
        $crate::map::Table::declared(
            $crate::skeleton::map!($skeleton, $name),
            |maps: &$crate::skeleton::$object::types::maps| (maps.$name.key, maps.$name.value),
        )
    };
}

/// A map of a loaded skeleton that holds globals: one element, whose type the generator names as it names the
/// map.
macro_rules! globals {
    ($object:ident, $skeleton:expr, $name:ident) => {
        $crate::map::Table::<u32, $crate::skeleton::$object::types::$name>::of($crate::skeleton::map!(
            $skeleton, $name
        ))
    };
}

pub(crate) use {globals, map, program, table};
