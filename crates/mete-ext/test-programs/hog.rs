//! Computes until it is ended.

mod instructions;

fn main() -> ! {
    loop {
        instructions::compute();
    }
}
