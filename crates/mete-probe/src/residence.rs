//! What is in use must not be unloaded: the listener runs this library's code, so does the end of
//! each thread that has logged, and the kernel may be looking at a restartable sequence.
//!
//! The shared library is linked to stay loaded (`build.rs`). A copy that is linked into a plug-in
//! has the plug-in stay loaded.

use core::ffi::CStr;
use std::sync::OnceLock;

/// Whether this library's code stays loaded until the process ends. Sees to it at the first call,
/// which has to come before anything depends on it.
pub(crate) fn is_ensured() -> bool {
    static IS_ENSURED: OnceLock<bool> = OnceLock::new();
    *IS_ENSURED.get_or_init(|| {
        let Some(own) = object_at(is_ensured as *const () as usize) else {
            // Only where there is no dynamic linking there is nobody to ask.
            return true;
        };
        is_program(own.start) || keep(own.path)
    })
}

/// What the dynamic linker has loaded.
struct Object {
    start: usize,
    path: &'static CStr,
}

fn object_at(address: usize) -> Option<Object> {
    // SAFETY: plain data, filled if the call succeeds.
    let mut found: libc::Dl_info = unsafe { core::mem::zeroed() };
    // SAFETY: a look-up by address; `found` is written.
    let is_found = unsafe { libc::dladdr(address as *const libc::c_void, &mut found) } != 0;
    if !is_found || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: a string of the dynamic linker's, which lives as long as the object: this one.
    Some(Object { start: found.dli_fbase.addr(), path: unsafe { CStr::from_ptr(found.dli_fname) } })
}

/// Whether the program itself begins there: it is never unloaded.
fn is_program(start: usize) -> bool {
    // SAFETY: a look-up in the auxiliary vector.
    let headers = unsafe { libc::getauxval(libc::AT_PHDR) } as usize;
    object_at(headers).is_some_and(|program| program.start == start)
}

/// Has an object stay that is loaded.
fn keep(path: &CStr) -> bool {
    let mode = libc::RTLD_NOLOAD | libc::RTLD_NODELETE | libc::RTLD_NOW;
    // SAFETY: loads nothing, so runs nothing. The reference is never given back.
    !unsafe { libc::dlopen(path.as_ptr(), mode) }.is_null()
}
