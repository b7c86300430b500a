//! The parts of `mete demo`: a driver, a client, a hog, a crowd, an asker. Each part is a process of its own.
//! The demo starts it, binds it to a domain and ends it. A part that is started by hand does no harm, and
//! ends when its standard input ends.
//!
//! A *driver* serves requests on a Unix socket, and a probe logs which client it has served. A *client* sends
//! requests, mostly to one driver, and computes a little in between. A *hog* computes. In the second act, a
//! *crowd* computes in several threads, and an *asker* asks the server among them. Those that count what they
//! do share pages with the demo, see `board.rs`.

mod asker;
mod client;
mod crowd;
mod driver;
mod work;

use std::path::PathBuf;

use clap::{Parser, Subcommand};
use mete_command::status::{DONE, FAILED};

use crate::board::Board;

/// A part of mete demo, which starts it; not meant to be started by hand
#[derive(Parser)]
#[command(name = "mete-demo-part", version)]
struct Arguments {
    /// The memory file of the board, inherited from the demo.
    #[arg(long)]
    board: Option<i32>,
    #[command(subcommand)]
    part: DemoPart,
}

#[derive(Subcommand)]
enum DemoPart {
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
    /// Compute in several threads on one processor, and answer among them.
    Crowd {
        /// How many threads compute.
        #[arg(long)]
        threads: usize,
        /// The processor to stay on.
        #[arg(long)]
        processor: usize,
        /// Where to listen; without it, nothing is answered.
        #[arg(long)]
        socket: Option<PathBuf>,
    },
    /// Send requests to the server in a crowd, with pauses.
    Asker {
        /// The server's socket.
        #[arg(long)]
        socket: PathBuf,
        /// The place on the board.
        #[arg(long)]
        place: usize,
    },
}

/// Plays the part that the command line names.
pub fn main() {
    let arguments = Arguments::parse();
    leave_session();
    end_with_parent();
    if let Err(error) = play(arguments) {
        eprintln!("mete-demo-part: {error}");
        std::process::exit(FAILED.into());
    }
}

fn play(arguments: Arguments) -> std::io::Result<()> {
    let board = || Board::inherited(arguments.board);
    match arguments.part {
        DemoPart::Driver { socket, processor, place } => {
            driver::serve(&socket, processor, board()?.counts(place))
        }
        DemoPart::Client { socket, place } => client::ask(&socket, board()?.counts(place)),
        DemoPart::Hog => work::compute(),
        DemoPart::Crowd { threads, processor, socket } => {
            crowd::gather(threads, processor, socket.as_deref())
        }
        DemoPart::Asker { socket, place } => asker::ask(&socket, board()?.counts(place)),
    }
}

/// Gives this process a session of its own, as services have. The kernel first divides processor time among
/// sessions (autogroup), and in one session all parts together would get the share of one. When parts in one
/// session wake each other, some kernels also recompute the weight of the session so often that nothing
/// outside it runs for seconds, not even threads of the kernel (seen on 6.18.44; `reweight_entity`, fixed in
/// 6.18.45).
fn leave_session() {
    // Fails if this process is the leader of a session already: then there is nothing to do.
    let _ = rustix::process::setsid();
}

/// Ends this process when its standard input ends: the kernel closes the demo's end of it even if the demo is
/// killed.
fn end_with_parent() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin(), &mut std::io::sink());
        std::process::exit(DONE.into());
    });
}
