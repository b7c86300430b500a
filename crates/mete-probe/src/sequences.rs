//! Whether this thread can use restartable sequences, and the processor on which it runs.

use std::sync::OnceLock;

/// The offset of a thread's rseq structure from its thread pointer, if the C library has registered one.
/// glibc gives it from 2.35 on, unless the tunable `glibc.pthread.rseq=0` or the kernel forbids sequences.
/// Other libraries register nothing.
fn offset() -> Option<isize> {
    static OFFSET: OnceLock<Option<isize>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        let size = symbol::<u32>(c"__rseq_size")?;
        let offset = symbol::<isize>(c"__rseq_offset")?;
        (size != 0).then_some(offset)
    })
}

fn symbol<T: Copy>(name: &core::ffi::CStr) -> Option<T> {
    // SAFETY: this looks up a name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: glibc documents the two symbols with these types. They are constant once the program runs.
    (!address.is_null()).then(|| unsafe { address.cast::<T>().read() })
}

/// Whether the threads that the C library has made use sequences. The first call finds out.
pub(crate) fn are_in_use() -> bool {
    cfg!(target_arch = "x86_64") && offset().is_some()
}

/// The calling thread's rseq structure, if it is registered.
#[cfg(target_arch = "x86_64")]
pub(crate) fn abi() -> Option<*mut mete_log::rseq::Abi> {
    let offset = offset()?;
    let thread: *mut u8;
    // SAFETY: the first word of a thread's control block is its own address (System V TLS ABI).
    unsafe {
        core::arch::asm!("mov {}, fs:[0]", out(reg) thread, options(nostack, pure, readonly, preserves_flags));
    }
    let abi = thread.wrapping_offset(offset);
    // SAFETY: this is glibc's structure. Its second word is the processor; it is negative in a thread that
    // was never registered (one made by a bare clone, for example).
    let processor = unsafe { abi.cast::<i32>().add(1).read_volatile() };
    (processor >= 0).then_some(abi.cast())
}

/// The processor on which the thread runs for now.
pub(crate) fn processor() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

/// Restarts every sequence that is under way in this process, so that none goes on with words that it has
/// read from memory that is gone.
pub(crate) fn restart_all() {
    // A kernel without these commands has no sequences either, or none to restart.
    for command in
        [libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ]
    {
        // SAFETY: the call passes no memory.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    }
}
