//! A part of the demo: a driver, a client, a hog, a crowd or an asker.

fn main() {
    mete_demo::part::main();
}
