//! The scenarios that come with the program.

/// A scenario that can be asked for by its name.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name: the file's, without the extension.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

/// All of them, by name.
pub const SHIPPED: &[Shipped] = &[
    Shipped { name: "groups", text: include_str!("../../../../scenarios/groups.toml") },
    Shipped { name: "guests", text: include_str!("../../../../scenarios/guests.toml") },
    Shipped { name: "mix", text: include_str!("../../../../scenarios/mix.toml") },
    Shipped { name: "processors", text: include_str!("../../../../scenarios/processors.toml") },
    Shipped { name: "shares-3-2-1", text: include_str!("../../../../scenarios/shares-3-2-1.toml") },
    Shipped { name: "tavs-disk", text: include_str!("../../../../scenarios/tavs-disk.toml") },
    Shipped { name: "tavs-host", text: include_str!("../../../../scenarios/tavs-host.toml") },
    Shipped { name: "tavs-keep", text: include_str!("../../../../scenarios/tavs-keep.toml") },
    Shipped { name: "tavs-mixed", text: include_str!("../../../../scenarios/tavs-mixed.toml") },
    Shipped { name: "tavs-ports", text: include_str!("../../../../scenarios/tavs-ports.toml") },
    Shipped { name: "tavs-ratio", text: include_str!("../../../../scenarios/tavs-ratio.toml") },
    Shipped { name: "tavs-stream", text: include_str!("../../../../scenarios/tavs-stream.toml") },
    Shipped { name: "tavs-web", text: include_str!("../../../../scenarios/tavs-web.toml") },
    Shipped { name: "vcpus", text: include_str!("../../../../scenarios/vcpus.toml") },
];
