//! Any bytes of a message are decoded or refused; what is decoded encodes to something decodable.
#![no_main]

use libfuzzer_sys::fuzz_target;
use mete_probe::wire::Packet;

fuzz_target!(|bytes: &[u8]| {
    if let Ok(packet) = Packet::decode(bytes) {
        assert!(Packet::decode(&packet.encode()).is_ok());
    }
});
