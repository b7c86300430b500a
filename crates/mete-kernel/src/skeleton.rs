//! What `build.rs` generates from the objects of `bpf/`. A map or a program is a field, so one that its object lacks
//! does not compile. Globals, and the keys and values of maps, have types. The numbers of `bpf/shared.h` are constants.

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

/// A map of a loaded skeleton, to be read and written by system calls. The types of its keys and values are those that
/// its declaration in C has.
macro_rules! table {
    ($object:ident, $skeleton:expr, $name:ident) => {
        $crate::map::Table::declared(
            $crate::skeleton::map!($skeleton, $name),
            |maps: &$crate::skeleton::$object::types::maps| (maps.$name.key, maps.$name.value),
        )
    };
}

/// A map of a loaded skeleton that holds globals: one element, whose type the generator names as it names the map.
macro_rules! globals {
    ($object:ident, $skeleton:expr, $name:ident) => {
        $crate::map::Table::<u32, $crate::skeleton::$object::types::$name>::of($crate::skeleton::map!(
            $skeleton, $name
        ))
    };
}

pub(crate) use {globals, map, program, table};
