//! What the service manager is told, where one has started this program and listens (sd_notify(3)).

use std::env;
use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// How long a manager may take to hear.
const LONGEST: Duration = Duration::from_secs(5);
/// Where it listens.
const SOCKET: &str = "NOTIFY_SOCKET";

/// The program does what it is for; `status` says how, in one line.
pub fn ready(status: &str) {
    tell(&format!("READY=1\nSTATUS={}", one_line(status)));
}

/// How it goes now, in one line: `systemctl status` shows it.
pub fn status(status: &str) {
    tell(&format!("STATUS={}", one_line(status)));
}

/// A second line would be taken for another message.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// A manager that does not listen is no reason to end.
fn tell(message: &str) {
    let Some(socket) = env::var_os(SOCKET) else { return };
    let _ = send(&socket, message);
}

fn send(socket: &OsStr, message: &str) -> io::Result<usize> {
    let address = match socket.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(socket)?,
    };
    let from = UnixDatagram::unbound()?;
    // The manager takes it for a failure if it never hears that the program is ready.
    from.set_write_timeout(Some(LONGEST))?;
    from.send_to_addr(message.as_bytes(), &address)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn heard(by: &UnixDatagram) -> String {
        let mut bytes = [0; 100];
        let length = by.recv(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes[..length]).into_owned()
    }

    #[test]
    fn vtrr_7_a_service_manager_hears_by_path_and_by_name() {
        let place = tempfile::tempdir().unwrap();
        let path = place.path().join("notify");
        let by_path = UnixDatagram::bind(&path).unwrap();
        send(path.as_os_str(), "READY=1").unwrap();
        assert_eq!(heard(&by_path), "READY=1");
        let name = format!("mete-test-{}", std::process::id());
        let address = SocketAddr::from_abstract_name(&name).unwrap();
        let by_name = UnixDatagram::bind_addr(&address).unwrap();
        send(format!("@{name}").as_ref(), "STATUS=a").unwrap();
        assert_eq!(heard(&by_name), "STATUS=a");
        assert!(send("/no/such/socket".as_ref(), "READY=1").is_err());
        assert_eq!(one_line("a\nREADY=1  b"), "a READY=1 b");
    }
}
