//! The shared library stays loaded once it is.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Its thread and its restartable sequences would run on in memory that is gone.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
