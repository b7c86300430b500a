//! Compiles the policies of `kernel/` natively: they are written in C, because they also run inside the
//! kernel (D12).

fn main() {
    println!("cargo:rerun-if-changed=kernel");
    cc::Build::new()
        .file("kernel/dvtrr_native.c")
        .flag("-Wall")
        .flag("-Wextra")
        .compile("mete_policy_kernel");
}
