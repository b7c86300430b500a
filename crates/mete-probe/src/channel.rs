//! One connection: it sends and receives packets, with a descriptor where one belongs to the packet. Time
//! limits keep either side from holding up the other (LOG-11).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, sockopt,
};

use crate::descriptor::{Descriptor, above_standard};
use crate::wire::{PACKET_BYTES, Packet, WireError};

/// What was received.
#[derive(Debug)]
pub(crate) enum Received {
    /// A packet, and the descriptor that came with it.
    Packet(Packet, Option<OwnedFd>),
    /// Something that is no packet.
    Garbled(WireError),
    /// The other side has closed the connection.
    End,
}

/// A connected socket.
#[derive(Debug)]
pub(crate) struct Channel {
    socket: Descriptor,
}

impl Channel {
    /// A channel on a connected socket, without time limits.
    pub fn new(socket: Descriptor) -> Channel {
        Channel { socket }
    }

    /// From now on, sending and receiving give up after `limit`.
    pub fn limit_waiting(&self, limit: Duration) -> io::Result<()> {
        let socket = self.socket.get()?;
        sockopt::set_socket_timeout(socket, sockopt::Timeout::Send, Some(limit))?;
        Ok(sockopt::set_socket_timeout(socket, sockopt::Timeout::Recv, Some(limit))?)
    }

    /// The next packets are sent and received until `deadline` or not at all.
    pub fn limit_waiting_until(&self, deadline: Instant) -> io::Result<()> {
        let left = deadline.saturating_duration_since(Instant::now());
        // The kernel takes zero for no limit at all.
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.limit_waiting(left)
    }

    /// Sends a packet, and with it a descriptor if there is one.
    pub fn send(&self, packet: Packet, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send_with(packet, descriptor, SendFlags::NOSIGNAL)
    }

    /// The same without waiting: [`io::ErrorKind::WouldBlock`] if the other side has not yet taken the
    /// earlier packets and the kernel has no room for more.
    pub fn send_now(&self, packet: Packet, descriptor: Option<BorrowedFd<'_>>) -> io::Result<()> {
        self.send_with(packet, descriptor, SendFlags::NOSIGNAL | SendFlags::DONTWAIT)
    }

    fn send_with(&self, packet: Packet, file: Option<BorrowedFd<'_>>, flags: SendFlags) -> io::Result<()> {
        let bytes = packet.encode();
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if file.is_some() {
            control.push(SendAncillaryMessage::ScmRights(file.as_slice()));
        }
        rustix::net::sendmsg(self.socket.get()?, &[IoSlice::new(&bytes)], &mut control, flags)?;
        Ok(())
    }

    /// Receives a packet. Descriptors beyond the first are closed.
    pub fn receive(&self) -> io::Result<Received> {
        self.receive_with(RecvFlags::CMSG_CLOEXEC)
    }

    /// The same without waiting: `None` if no packet is there.
    pub fn receive_now(&self) -> io::Result<Option<Received>> {
        match self.receive_with(RecvFlags::CMSG_CLOEXEC | RecvFlags::DONTWAIT) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            received => received.map(Some),
        }
    }

    fn receive_with(&self, flags: RecvFlags) -> io::Result<Received> {
        // One byte more than a packet, so that a longer one is noticed.
        let mut bytes = [0; PACKET_BYTES + 1];
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let into = &mut [IoSliceMut::new(&mut bytes)];
        let length = rustix::net::recvmsg(self.socket.get()?, into, &mut control, flags)?.bytes;
        let descriptor = first_descriptor(&mut control).map(above_standard).transpose()?;
        if length == 0 {
            return Ok(Received::End);
        }
        Ok(match Packet::decode(&bytes[..length]) {
            Ok(packet) => Received::Packet(packet, descriptor),
            Err(error) => Received::Garbled(error),
        })
    }

    /// The socket itself.
    pub fn descriptor(&self) -> &Descriptor {
        &self.socket
    }

    /// The process and user at the other end, as the kernel says.
    pub fn peer(&self) -> io::Result<rustix::net::UCred> {
        Ok(sockopt::socket_peercred(self.socket.get()?)?)
    }
}

impl AsFd for Channel {
    /// Only for waiting.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.unchecked()
    }
}

fn first_descriptor(control: &mut RecvAncillaryBuffer<'_>) -> Option<OwnedFd> {
    let mut descriptors = control.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(descriptors) => Some(descriptors),
        _ => None,
    });
    // All of them are taken out of the message: those that are not returned are dropped, and so closed.
    descriptors.by_ref().flatten().reduce(|first, _| first)
}
