//! Draws pictures of measured studies again from the data beside them. From the root of the repository:
//!
//! ```text
//! cargo run -p mete-study --example redraw [STUDY…]
//! ```

use std::path::Path;
use std::{env, fs, io};

use mete_study::study::{STUDIES, redraw};

fn main() -> io::Result<()> {
    let asked: Vec<String> = env::args().skip(1).collect();
    for study in
        STUDIES.iter().filter(|study| asked.is_empty() || asked.iter().any(|name| name == study.name))
    {
        let folder = Path::new("studies").join(study.name);
        for (name, picture) in redraw(study.name, |name| fs::read_to_string(folder.join(name)).ok()) {
            fs::write(folder.join(&name), picture)?;
            println!("{}", folder.join(name).display());
        }
    }
    Ok(())
}
