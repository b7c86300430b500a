//! A web server under load (KLogger paper, §8.1): nginx and ab from Debian's packages, over the loopback
//! network.

use std::fs;

use mete_bench::child::check_installed;
use mete_bench::load::Load;
use mete_bench::scratch::Scratch;
use mete_measure::Reason;

use super::network::{free_ports, wait_for};

/// nginx, which serves one file. When this is dropped, nginx ends and its files are removed.
pub struct Server {
    // Fields are dropped in this order: the processes end before their files are removed.
    _nginx: Load,
    scratch: Scratch,
    port: String,
}

impl Server {
    /// Starts nginx with `processors` workers, on a port of the loopback address.
    ///
    /// # Errors
    ///
    /// If nginx or ab is not installed, or does not start.
    pub fn start(processors: usize) -> Result<Server, Reason> {
        check_installed("nginx")?;
        check_installed("ab").map_err(|_| Reason::new("ab (Debian's apache2-utils) is not installed"))?;
        let scratch = Scratch::new()?;
        let ports = free_ports(1)?;
        let port = &ports[0];
        let root = scratch.path().display().to_string();
        scratch.write("nginx.conf", &configuration(&root, port, processors))?;
        scratch.write("file.c", include_str!("../../../../mete-log/tests/vectors.c"))?;
        // If root starts nginx, its workers belong to another user, which must be able to read the files.
        open_to_all(&scratch)?;
        let configuration = format!("{root}/nginx.conf");
        let nginx =
            Load::start(&["nginx", "-e", "stderr", "-p", &root, "-c", &configuration], scratch.path())?;
        wait_for("nginx", &ports)?;
        Ok(Server { _nginx: nginx, scratch, port: port.clone() })
    }

    /// Starts `number` clients of ab, which run for a minute unless they are dropped.
    ///
    /// # Errors
    ///
    /// If the clients do not start.
    pub fn clients(&self, number: usize) -> Result<Load, Reason> {
        let (number, address) = (number.to_string(), format!("http://127.0.0.1:{}/file.c", self.port));
        let words = ["ab", "-q", "-r", "-t", "60", "-n", "100000000", "-c", &number, &address];
        Load::start(&words, self.scratch.path())
    }
}

fn open_to_all(scratch: &Scratch) -> Result<(), Reason> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(scratch.path(), fs::Permissions::from_mode(0o755))?)
}

fn configuration(root: &str, port: &str, workers: usize) -> String {
    let places = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"];
    let places: String = places.iter().map(|name| format!("    {name}_temp_path {root}/{name};\n")).collect();
    format!(
        "daemon off;\nworker_processes {workers};\npid {root}/nginx.pid;\nerror_log stderr crit;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n{places}    access_log off;\n    server {{\n        listen 127.0.0.1:{port};\n        root {root};\n    }}\n}}\n"
    )
}
