//! How the programs of the tests compute. Other crates include this file.

/// Some thousand instructions that do nothing, in a row. Where time goes by instructions, as in an emulated machine, they take as
/// long as others do, and cost the host next to nothing: emulating a loop of a few instructions costs it as much as a machine does
/// that works.
pub fn compute() {
    // SAFETY: neither memory nor registers are touched.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        std::arch::asm!(".rept 4096", "nop", ".endr", options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(target_arch = "x86_64"))]
    std::hint::spin_loop();
}
