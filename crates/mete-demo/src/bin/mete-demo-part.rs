//! A part of the demo: a driver, a client or a hog.

fn main() {
    mete_demo::part::main();
}
