//! The exit statuses of programs for people. 0: everything that was asked for is done. 1: it failed, and the last line
//! says why. 2: the command line asks for nothing that there is (clap's status). The others stand here.

/// There are results, but something is missing from them: rows were lost, or a part of a trace cannot be read.
pub const INCOMPLETE: u8 = 3;
/// A command that was to be started cannot be run; shells say so by the same status.
pub const CANNOT_RUN: u8 = 126;
/// A command that was to be started does not exist; shells say so by the same status.
pub const NO_SUCH_COMMAND: u8 = 127;
/// It was stopped before its end; shells report the same for a program that Ctrl-C has ended.
pub const STOPPED: u8 = 128 + 2;
/// The reader of the results has gone; that of a program that SIGPIPE ends, as it ends most other programs in a pipe.
pub const CLOSED_PIPE: u8 = 128 + 13;
