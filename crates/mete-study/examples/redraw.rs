//! Makes pages and pictures of studies again from what their folders keep. From the root of the repository:
//!
//! ```text
//! cargo run -p mete-study --example redraw [STUDY…]
//! ```

use std::path::Path;
use std::{env, fs, io};

use mete_study::studies;
use mete_study::study::StudyEntry;

fn main() -> io::Result<()> {
    let asked: Vec<String> = env::args().skip(1).collect();
    for study in studies().filter(|study| asked.is_empty() || asked.iter().any(|name| name == study.name)) {
        let folder = Path::new("studies").join(study.name);
        redraw(study, &folder)?;
        // What the same study found on other machines.
        for entry in fs::read_dir(&folder)? {
            let within = entry?.path();
            if within.join("results.json").exists() {
                redraw(study, &within)?;
            }
        }
    }
    Ok(())
}

fn redraw(study: &StudyEntry, folder: &Path) -> io::Result<()> {
    for (name, text) in redrawn(study, folder)? {
        fs::write(folder.join(&name), text)?;
        println!("{}", folder.join(name).display());
    }
    Ok(())
}

fn redrawn(study: &StudyEntry, folder: &Path) -> io::Result<Vec<(String, String)>> {
    let mut files = study.redraw(&|name| fs::read_to_string(folder.join(name)).ok());
    let results = fs::read_to_string(folder.join("results.json"))?;
    let page =
        study.page_of(&results).map_err(|reason| io::Error::other(format!("{}: {reason}", study.name)))?;
    files.push(("README.md".to_owned(), page));
    Ok(files)
}
