//! The scenarios that come with the program.

/// A scenario that can be asked for by its name.
#[derive(Clone, Copy, Debug)]
pub struct Shipped {
    /// Its name: the file's, without the extension.
    pub name: &'static str,
    /// The text of the file.
    pub text: &'static str,
}

macro_rules! shipped {
    ($($name:literal)*) => {
        /// All of them, by name.
        pub const SHIPPED: &[Shipped] = &[$(Shipped {
            name: $name,
            text: include_str!(concat!("../../../../scenarios/", $name, ".toml")),
        }),*];
    };
}

shipped! {
    "groups" "guests" "mix" "processors" "shares-3-2-1"
    "tavs-disk" "tavs-host" "tavs-keep" "tavs-mixed" "tavs-ports" "tavs-ratio" "tavs-stream" "tavs-web"
    "vcpus"
}
