//! Work on memory that stays in the cache of the processor that it runs on. It takes about the same time on
//! every processor.

/// The memory that a driver or a client touches for one request: a few pages, so that it matters whether the
/// two run on the same processor.
pub struct Buffer(Vec<u64>);

impl Buffer {
    /// A buffer of that many bytes.
    pub fn new(bytes: usize) -> Buffer {
        Buffer(vec![1; bytes / size_of::<u64>()])
    }

    /// Goes over the whole buffer once.
    pub fn touch(&mut self) -> u64 {
        let mut sum = 0u64;
        for word in &mut self.0 {
            *word = word.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            sum = sum.wrapping_add(*word);
        }
        std::hint::black_box(sum)
    }
}

/// The work of a hog: computes until the process is ended.
pub fn compute() -> ! {
    let mut buffer = Buffer::new(256 * 1024);
    loop {
        buffer.touch();
    }
}

/// The processor that this thread runs on at this moment.
pub fn processor() -> u32 {
    rustix::thread::sched_getcpu() as u32
}
