//! Whether a thread can run, as the kernel says it.

use std::fs;

/// Whether a thread runs or waits for a processor now. One that has ended does not.
pub(crate) fn is_runnable(thread: u32) -> bool {
    // The name comes before the state, in brackets, and may have any bytes.
    let text = fs::read(format!("/proc/{thread}/stat")).unwrap_or_default();
    let end_of_name = text.iter().rposition(|&byte| byte == b')');
    end_of_name.is_some_and(|end| text.get(end + 2) == Some(&b'R'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_present_thread_can_run_and_no_thread_zero_can() {
        let own = rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned();
        assert!(is_runnable(own) && !is_runnable(0));
    }
}
