//! Keeps this library from being unloaded while it is in use. The listener runs this library's code, and so
//! does the end of each thread that has logged, and the kernel can be reading the descriptor of a restartable
//! sequence.
//!
//! The shared library is linked so that it stays loaded (`build.rs`). If a plug-in has a copy of the library
//! linked in, the plug-in stays loaded.

use core::ffi::CStr;
use std::sync::OnceLock;

/// Whether this library's code stays loaded until the process ends. The first call sees to it; it must come
/// before anything depends on it.
pub(crate) fn is_ensured() -> bool {
    static IS_ENSURED: OnceLock<bool> = OnceLock::new();
    *IS_ENSURED.get_or_init(|| {
        let Some(own) = object_at(is_ensured as *const () as usize) else {
            // Only without dynamic linking is there no object to find, and then nothing is ever unloaded.
            return true;
        };
        is_program(own.start) || keep(own.path)
    })
}

/// A file that the dynamic linker has loaded.
struct LoadedObject {
    start: usize,
    path: &'static CStr,
}

fn object_at(address: usize) -> Option<LoadedObject> {
    // SAFETY: the structure is plain data, filled if the call succeeds.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: this looks up an address and writes `found`.
    let is_found = unsafe { libc::dladdr(address as *const libc::c_void, &mut found) } != 0;
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: this is a string of the dynamic linker, which lives as long as the object: this library.
    Some(LoadedObject { start: found.dli_fbase.addr(), path: unsafe { CStr::from_ptr(found.dli_fname) } })
}

/// Whether the program itself begins at this address. The program is never unloaded.
fn is_program(start: usize) -> bool {
    // SAFETY: this looks up a number in the auxiliary vector.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    object_at(headers).is_some_and(|program| program.start == start)
}

/// Has a loaded object stay loaded.
fn keep(path: &CStr) -> bool {
    let mode = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW;
    // SAFETY: this loads nothing, so it runs no code. The reference is never given back.
    !unsafe { libc::dlopen(path.as_ptr(), mode) }.is_null()
}
