//! Whether this thread may use restartable sequences, and which processor it runs on.

use std::sync::OnceLock;

/// Where a thread's rseq structure lies, from its thread pointer, if the C library has registered
/// one. glibc says so from 2.35 on, unless the tunable `glibc.pthread.rseq=0` or the kernel forbids
/// it; other libraries register nothing.
fn offset() -> Option<isize> {
    static OFFSET: OnceLock<Option<isize>> = OnceLock::new();
    *OFFSET.get_or_init(|| {
        let size = symbol::<u32>(c"__rseq_size")?;
        let offset = symbol::<isize>(c"__rseq_offset")?;
        (size != 0).then_some(offset)
    })
}

fn symbol<T: Copy>(name: &core::ffi::CStr) -> Option<T> {
    // SAFETY: a look-up by name.
    let address = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    // SAFETY: glibc documents these two symbols with these types, constant once the program runs.
    (!address.is_null()).then(|| unsafe { address.cast::<T>().read() })
}

/// Whether threads that the C library has made use sequences. Finds out at the first call.
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
    // SAFETY: glibc's structure; its second word is the processor, negative in a thread that
    // nobody registered (one made by a bare clone, say).
    let processor = unsafe { abi.cast::<i32>().add(1).read_volatile() };
    (processor >= 0).then_some(abi.cast())
}

/// The processor that the thread runs on, for the moment.
pub(crate) fn processor() -> u32 {
    rustix::thread::sched_getcpu() as u32
}

/// Restarts every sequence that is under way in this process, so that none goes on with what it
/// found in memory that is gone.
pub(crate) fn restart_all() {
    // Where the kernel knows neither command it knows no sequences either, or has none to restart.
    for command in
        [libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ]
    {
        // SAFETY: no memory is passed.
        unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
    }
}
