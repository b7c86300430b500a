//! A program with parameters, for tests that kill it.
//!
//! * `mount DIRECTORY NOTES` mounts a tree, prints `mounted`, and ends with its input.
//! * `recover NOTES` takes away what such programs have left behind that were killed together with their
//!   keepers.

use std::io::{self, Write};

use mete_parameters::{Access, File, Mounted, Refusal, Store, keeper, recover};

type Outcome = Result<(), Box<dyn std::error::Error>>;

struct One;

impl Store for One {
    fn read(&self, _path: &str) -> Result<String, Refusal> {
        Ok("1\n".into())
    }

    fn write(&self, _path: &str, _value: &str) -> Result<(), Refusal> {
        Ok(())
    }
}

fn main() -> Outcome {
    keeper::take_over_if_asked(|| ());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["mount", directory, notes] => mount(directory, notes),
        ["recover", notes] => Ok(say(&format!("{:?}", recover(&[notes.into()])))?),
        other => Err(format!("unknown role {other:?}").into()),
    }
}

fn say(text: &str) -> io::Result<()> {
    println!("{text}");
    io::stdout().flush()
}

fn mount(directory: &str, notes: &str) -> Outcome {
    let files = vec![File::new("one", Access::Both)];
    let notes = Some(notes.as_ref());
    let mounted = Mounted::new(notes, directory.as_ref(), files, One, keeper::this_program)?;
    say("mounted")?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    drop(mounted);
    Ok(())
}
