//! The hog: computes and never waits.

use super::work::Buffer;

/// Computes until the process is ended.
pub fn compute() -> ! {
    let mut buffer = Buffer::new(256 * 1024);
    loop {
        buffer.touch();
    }
}
