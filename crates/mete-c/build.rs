//! Has the shared library stay loaded once it is loaded.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    // Otherwise its thread and its restartable sequences would continue in memory that is gone.
    println!("cargo::rustc-cdylib-link-arg=-Wl,-z,nodelete");
}
