//! Switching sites on and off while all threads run through them (LOG-2, LOG-3; thesis §4.3.2).
//!
//! A thread must never execute half of an old and half of a new instruction, and a processor that has fetched
//! the old instruction must drop it at some known time. The second is the same everywhere: after the change,
//! `membarrier` makes every thread of the process pass a serialising instruction. For the first the vendors
//! ask for different things, so there are two ways:
//!
//! * **By a store**, on AMD (and Hygon). AMD's manual (volume 2, "Cross-Modifying Code") allows changing code
//!   under execution by one store within a naturally aligned quadword: other processors execute the old or
//!   the new instruction. The five bytes of a site never cross such a word.
//! * **By the page**, on all others. Intel promises nothing for a store to code that another processor may be
//!   executing ("unsynchronized cross-modifying code" in its specification updates), except for one-byte
//!   breakpoints; and a breakpoint kills a user-level thread that has blocked its signal. So no code that is
//!   executed is ever stored to. A copy of the page is changed while no address leads to it as code, and then
//!   replaces the page by one `mmap` of a memory file. The kernel unmaps the old page and flushes every
//!   processor's translation before the call returns, and no instruction of a site crosses a page boundary.
//!   The price: the page no longer belongs to the program's file, so profilers that look up code by file lose
//!   that one page.
//!
//! The second way has limits. The copy contains whatever another program has put into the page, and a store
//! to the page during the copying is lost. A debugger tolerates that. A uprobe of the kernel does not: its
//! breakpoint is in the copy, but the kernel knows the breakpoint by the file that the page no longer belongs
//! to, and the program dies of it. So on such processors no uprobe may be set in a page of code with sites
//! while these are switched.
//!
//! The second way is also used where the kernel refuses to make code writable. Writing through
//! `/proc/self/mem` is no alternative: the kernel may copy the word byte by byte.

use std::io;

use crate::site::Site;

/// Why code could not be patched.
#[derive(Debug, thiserror::Error)]
#[cfg_attr(
    any(not(target_arch = "x86_64"), feature = "flag-check"),
    expect(dead_code, reason = "where nothing is patched, nothing can fail")
)]
pub(crate) enum PatchError {
    /// The kernel cannot make the threads notice the change.
    #[error(
        "probes cannot be switched: membarrier(PRIVATE_EXPEDITED_SYNC_CORE) failed ({0}); Linux 4.16 or later has it"
    )]
    Membarrier(io::Error),
    /// Both ways to change a page have failed.
    #[error(
        "probes cannot be switched: the code page at {address:#x} can be neither made writable nor replaced ({source})"
    )]
    Page {
        /// The page's address.
        address: usize,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The bytes at the site are neither the no-op nor the jump.
    #[error("the code at {address:#x} is not the probe that was compiled there, so it is left unchanged")]
    Foreign {
        /// The site's address.
        address: usize,
    },
}

#[cfg(all(target_arch = "x86_64", not(feature = "flag-check")))]
pub(crate) use x86_64::{switch, way};

/// Sites that are not patched test the event's flag.
#[cfg(not(all(target_arch = "x86_64", not(feature = "flag-check"))))]
pub(crate) fn switch(_sites: Vec<&Site>, _on: bool) -> Result<(), PatchError> {
    Ok(())
}

/// There is only one way.
#[cfg(not(all(target_arch = "x86_64", not(feature = "flag-check"))))]
pub(crate) fn way() {}

#[cfg(all(target_arch = "x86_64", not(feature = "flag-check")))]
mod x86_64 {
    use super::{PatchError, Site, io};
    use crate::directory;
    use core::sync::atomic::{AtomicU64, Ordering};
    use std::sync::OnceLock;

    use rustix::mm::{MapFlags, MprotectFlags, ProtFlags};

    /// The five-byte no-op that compilers and the kernel use, too.
    const NOP: [u8; 5] = [0x0f, 0x1f, 0x44, 0x00, 0x00];
    const PAGE: usize = mete_log::layout::PAGE;

    /// How a page of code is changed; see the module above.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum PatchWay {
        Store,
        Page,
    }

    /// A word of code and its new value.
    struct WordChange {
        word: usize,
        bytes: u64,
    }

    /// Switches sites, all on or all off. Returns once every thread executes the new code. If a site cannot
    /// be switched, the others are switched all the same; the first such error is returned.
    pub(crate) fn switch(mut sites: Vec<&Site>, on: bool) -> Result<(), PatchError> {
        prepare_membarrier()?;
        // So that sites of one page are neighbours, and each page is changed once.
        sites.sort_unstable_by_key(|site| site.code);
        let pages = sites.chunk_by(|a, b| page_of(a.code) == page_of(b.code));
        let switched = pages.map(|sites| switch_page(sites, on)).fold(Ok(()), Result::and);
        serialise_threads()?;
        switched
    }

    /// Switches sites that lie in one page.
    fn switch_page(sites: &[&Site], on: bool) -> Result<(), PatchError> {
        let (mut changes, mut checked) = (Vec::with_capacity(sites.len()), Ok(()));
        for site in sites {
            match change(site, on) {
                Ok(change) => changes.push(change),
                Err(foreign) => checked = checked.and(Err(foreign)),
            }
        }
        change_page(page_of(sites[0].code), &changes)?;
        checked
    }

    fn page_of(address: usize) -> usize {
        address & !(PAGE - 1)
    }

    /// The word that contains a site, with its new value.
    fn change(site: &Site, on: bool) -> Result<WordChange, PatchError> {
        let foreign = PatchError::Foreign { address: site.code };
        let (word, offset) = (site.code & !7, site.code & 7);
        // The five bytes fit into the word if they begin in its first four bytes.
        let Some(jump) = jump(site).filter(|_| offset <= 3) else { return Err(foreign) };
        // SAFETY: `word` is an aligned word of the code that the linker recorded. Relaxed: only this module
        // ever changes it, under the registry's lock.
        let mut bytes = unsafe { (*(word as *const AtomicU64)).load(Ordering::Relaxed) }.to_le_bytes();
        let instruction = &mut bytes[offset..offset + 5];
        if *instruction != NOP && *instruction != jump {
            return Err(foreign);
        }
        instruction.copy_from_slice(if on { &jump } else { &NOP });
        Ok(WordChange { word, bytes: u64::from_le_bytes(bytes) })
    }

    /// `jmp rel32` from the site to its logging code.
    fn jump(site: &Site) -> Option<[u8; 5]> {
        let distance = site.target.wrapping_sub(site.code + NOP.len()) as isize;
        let [a, b, c, d] = i32::try_from(distance).ok()?.to_le_bytes();
        Some([0xe9, a, b, c, d])
    }

    fn change_page(page: usize, changes: &[WordChange]) -> Result<(), PatchError> {
        let by_store = way() == PatchWay::Store && store(page, changes).is_ok();
        if by_store { Ok(()) } else { replace(page, changes) }
            .map_err(|source| PatchError::Page { address: page, source })
    }

    /// Changes a page by stores. The page is writable only meanwhile.
    fn store(page: usize, changes: &[WordChange]) -> io::Result<()> {
        let executable = MprotectFlags::READ | MprotectFlags::EXEC;
        let address = page as *mut core::ffi::c_void;
        // SAFETY: this is a page of the process's own code. It stays readable and executable throughout.
        unsafe { rustix::mm::mprotect(address, PAGE, executable | MprotectFlags::WRITE)? };
        for WordChange { word, bytes } in changes {
            // SAFETY: this is an aligned word in that page. One store, so that no thread executes half of it.
            // Release: the event's number and the log memory are in place before a thread jumps.
            unsafe { (*(*word as *const AtomicU64)).store(*bytes, Ordering::Release) };
        }
        // SAFETY: as above. If the kernel refuses, the page is replaced after all.
        unsafe { rustix::mm::mprotect(address, PAGE, executable)? };
        Ok(())
    }

    /// Changes a page by putting a changed copy in its place.
    fn replace(page: usize, changes: &[WordChange]) -> io::Result<()> {
        // SAFETY: this is a mapped page of code. The registry's lock keeps this library from changing it
        // meanwhile.
        let mut copy = unsafe { core::ptr::read(page as *const [u8; PAGE]) };
        for WordChange { word, bytes } in changes {
            let offset = word - page;
            copy[offset..offset + 8].copy_from_slice(&bytes.to_le_bytes());
        }
        let file = rustix::fs::memfd_create("mete-code", rustix::fs::MemfdFlags::CLOEXEC)?;
        let file = crate::descriptor::above_standard(file)?;
        rustix::io::retry_on_intr(|| rustix::io::pwrite(&file, &copy, 0))?;
        let (protection, flags) = (ProtFlags::READ | ProtFlags::EXEC, MapFlags::PRIVATE | MapFlags::FIXED);
        // SAFETY: the new page has the same code except for the sites. The kernel exchanges the mapping under
        // its lock, so a thread that faults meanwhile waits for the new one.
        unsafe { rustix::mm::mmap(page as *mut core::ffi::c_void, PAGE, protection, flags, &file, 0)? };
        Ok(())
    }

    /// The way for this processor. `METE_PATCH=page` chooses the second way on any processor.
    pub(crate) fn way() -> PatchWay {
        static WAY: OnceLock<PatchWay> = OnceLock::new();
        *WAY.get_or_init(|| {
            let is_page_wanted = directory::variable("METE_PATCH").is_some_and(|way| way == "page");
            if is_page_wanted || !vendor_allows_stores() { PatchWay::Page } else { PatchWay::Store }
        })
    }

    fn vendor_allows_stores() -> bool {
        let leaf = core::arch::x86_64::__cpuid(0);
        let vendor = [leaf.ebx, leaf.edx, leaf.ecx].map(u32::to_le_bytes).concat();
        vendor == b"AuthenticAMD" || vendor == b"HygonGenuine"
    }

    /// Registers the process, as the kernel demands. Repetitions have no effect.
    fn prepare_membarrier() -> Result<(), PatchError> {
        membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_SYNC_CORE)
    }

    fn serialise_threads() -> Result<(), PatchError> {
        membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED_SYNC_CORE)
    }

    fn membarrier(command: libc::c_int) -> Result<(), PatchError> {
        // SAFETY: the call passes no memory.
        let answer = unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) };
        if answer == 0 { Ok(()) } else { Err(PatchError::Membarrier(io::Error::last_os_error())) }
    }
}
