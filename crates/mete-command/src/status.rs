//! The exit statuses of the programs, and what each of them means. A program that runs a command for the user
//! ends with the command's own status instead, unless the documentation of the subcommand says otherwise.

/// Everything that was asked for is done.
pub const DONE: u8 = 0;
/// It failed, and the last line on stderr says why in one sentence.
pub const FAILED: u8 = 1;
/// The command line is mistyped. A user or a control group in it that does not exist is taken for mistyped,
/// too. This is the status that clap gives to such a command line.
pub const MISTYPED: u8 = 2;
/// There are results, but something is missing from them: a part of a trace cannot be read, or `mete log`
/// without a command lost rows.
pub const INCOMPLETE: u8 = 3;
/// A command that was to be started cannot be run; shells say so by the same status.
pub const CANNOT_RUN: u8 = 126;
/// A command that was to be started does not exist; shells say so by the same status.
pub const NO_SUCH_COMMAND: u8 = 127;
/// It was stopped before its end; shells report the same for a program that Ctrl-C has ended.
pub const STOPPED: u8 = of_signal(2);
/// The reader of the results has gone, and nothing is printed about it. This is the status of a program that
/// SIGPIPE ends, as it ends most other programs in a pipe.
pub const CLOSED_PIPE: u8 = of_signal(13);

/// The status by which shells report a process that a signal has ended.
pub const fn of_signal(signal: u8) -> u8 {
    128 + signal
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statuses_are_the_numbers_that_shells_use() {
        assert_eq!([STOPPED, CLOSED_PIPE], [130, 141]);
        assert_eq!(
            [libc::SIGINT, libc::SIGPIPE].map(|signal| of_signal(signal as u8)),
            [STOPPED, CLOSED_PIPE]
        );
    }
}
