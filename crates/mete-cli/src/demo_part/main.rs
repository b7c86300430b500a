//! The parts that `mete demo` is played with: a driver, a client, a hog. Each is a process of its
//! own, started, bound to a domain and ended by the demo; by itself it does no harm and ends with
//! its standard input.
//!
//! A *driver* serves requests on a Unix socket and says by a probe whom it served. A *client* sends
//! requests, mostly to one driver, and computes a little in between. A *hog* computes. Driver and
//! client count what they do in pages that they share with the demo, see [`board`].

mod board;
mod client;
mod driver;
mod hog;
mod latencies;
mod work;

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A part of `mete demo`; not meant to be started by hand.
#[derive(Parser)]
#[command(name = "mete-demo-part", version)]
struct Arguments {
    /// The memory file of the board, inherited from the demo.
    #[arg(long)]
    board: Option<i32>,
    #[command(subcommand)]
    part: Part,
}

#[derive(Subcommand)]
enum Part {
    /// Serve requests on a Unix socket.
    Driver {
        /// Where to listen.
        #[arg(long)]
        socket: PathBuf,
        /// The processor to stay on.
        #[arg(long)]
        processor: usize,
        /// The place on the board.
        #[arg(long)]
        place: usize,
    },
    /// Send requests, nine in ten to the first socket.
    Client {
        /// The drivers' sockets, the favourite first.
        #[arg(long, required = true)]
        socket: Vec<PathBuf>,
        /// The place on the board.
        #[arg(long)]
        place: usize,
    },
    /// Compute.
    Hog,
}

fn main() {
    let arguments = Arguments::parse();
    leave_session();
    end_with_parent();
    if let Err(error) = play(arguments) {
        eprintln!("mete-demo-part: {error}");
        std::process::exit(1);
    }
}

fn play(arguments: Arguments) -> std::io::Result<()> {
    let board = || board::Board::inherited(arguments.board);
    match arguments.part {
        Part::Driver { socket, processor, place } => {
            driver::serve(&socket, processor, board()?.counts(place))
        }
        Part::Client { socket, place } => client::ask(&socket, board()?.counts(place)),
        Part::Hog => hog::compute(),
    }
}

/// A session of its own, as services have: the kernel deals out processors to sessions first (autogroup),
/// and in one session all parts would count as one. Where they wake each other, some kernels also reweigh
/// their session so often that whatever is outside it, threads of the kernel among it, does not run for
/// seconds (seen on 6.18.44; `reweight_entity`, mended in 6.18.45).
fn leave_session() {
    // Fails for the leader of a session, which has one already.
    let _ = rustix::process::setsid();
}

/// A demo that is killed must not leave its parts behind: they end when it closes their input.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(0);
    });
}
