// SPDX-License-Identifier: Apache-2.0
//! The socket on which a process guest gets vifs while it runs (docs/adr/0069). The guest holds both
//! ends, so nothing is lost with this daemon. A guest sends answers only.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags, SocketFlags,
    SocketType, recv, sendmsg, socketpair,
};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Rings;
use super::link::LinkFds;
use crate::base::error::{Code, Error, Result};
use crate::spec::Vif;
use crate::switch::PortFds;

/// The guest's end and the toolstack's.
pub type Ends = (OwnedFd, OwnedFd);

/// A guest looks at the socket every 20 ms.
const PATIENCE: Duration = Duration::from_secs(3);
/// Bytes of an answer at most.
const ANSWER: usize = 1024;
/// Late answers that are thrown away at a time.
const STALE: usize = 64;

/// Makes the socket of a guest.
pub fn ends() -> io::Result<Ends> {
    let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
    Ok(socketpair(AddressFamily::UNIX, kind, flags, None)?)
}

/// Gives the guest a vif; returns the numbers of its descriptors there.
pub fn plug(socket: &OwnedFd, vif: &Vif, port: PortFds) -> Result<Rings> {
    let keep = other_end(&port.wake).map_err(|e| Error::internal("wake pipe", e))?;
    let message = json!({"plug": {"devid": vif.devid, "mac": vif.mac, "mtu": vif.mtu}});
    let fds = [&port.memfd, &port.kick, &port.wake, &keep];
    let numbers = ask(socket, &message, &fds)?;
    numbers
        .try_into()
        .map_err(|_| refused("its answer does not name three descriptors"))
}

/// Takes a vif from the guest.
pub fn unplug(socket: &OwnedFd, devid: u32) -> Result<()> {
    ask(socket, &json!({"unplug": {"devid": devid}}), &[]).map(drop)
}

/// Gives the guest a link to a store that began again. It answers there.
pub fn relink(socket: &OwnedFd, link: &LinkFds) -> Result<()> {
    let fds = [&link.ring, &link.to_store, &link.from_store];
    send(socket, &json!({"store": {}}), &fds).map_err(|e| {
        let message =
            format!("the guest does not take a link to the Xen store: {e}; start it again");
        Error::new(Code::Store, message)
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "lowercase")]
enum Answer {
    Fds(Vec<i32>),
    Error(String),
}

fn ask(socket: &OwnedFd, message: &Value, fds: &[&OwnedFd]) -> Result<Vec<i32>> {
    forget_stale(socket);
    send(socket, message, fds).map_err(|e| refused(&e.to_string()))?;
    let bytes = receive(socket).map_err(|e| refused(&e.to_string()))?;
    match serde_json::from_slice(&bytes) {
        Ok(Answer::Fds(numbers)) => Ok(numbers),
        Ok(Answer::Error(words)) => Err(refused(&format!("{words:.200?}"))),
        Err(_) => Err(refused("its answer is not understood")),
    }
}

fn refused(why: &str) -> Error {
    let message = format!("the guest does not take the change of its interfaces: {why}");
    Error::new(Code::DeadGuest, message)
}

/// Answers to a request that timed out.
fn forget_stale(socket: &OwnedFd) {
    let mut bytes = [0; ANSWER];
    for _ in 0..STALE {
        if recv(socket, &mut bytes, RecvFlags::DONTWAIT).is_err() {
            return;
        }
    }
}

fn send(socket: &OwnedFd, message: &Value, fds: &[&OwnedFd]) -> io::Result<()> {
    let borrowed: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(4))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    if !borrowed.is_empty() {
        ancillary.push(SendAncillaryMessage::ScmRights(&borrowed));
    }
    let text = message.to_string();
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    sendmsg(
        socket,
        &[IoSlice::new(text.as_bytes())],
        &mut ancillary,
        flags,
    )?;
    Ok(())
}

fn receive(socket: &OwnedFd) -> io::Result<Vec<u8>> {
    let timeout = Timespec::try_from(PATIENCE).map_err(io::Error::other)?;
    if poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&timeout))? == 0 {
        return Err(io::Error::other("no answer"));
    }
    let mut bytes = vec![0; ANSWER];
    let (len, _) = recv(socket, &mut bytes[..], RecvFlags::DONTWAIT)?;
    bytes.truncate(len);
    Ok(bytes)
}

/// Opens the write end of the guest's wake pipe, which keeps it open while no switch does.
fn other_end(wake: &OwnedFd) -> io::Result<OwnedFd> {
    let name = format!("/proc/self/fd/{}", wake.as_raw_fd());
    let flags = OFlags::WRONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(rustix::fs::open(name, flags, Mode::empty())?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::vif;

    fn fds() -> PortFds {
        let (wake, _) = rustix::pipe::pipe().unwrap();
        let null = || std::fs::File::open("/dev/null").unwrap().into();
        PortFds {
            memfd: null(),
            kick: null(),
            wake,
        }
    }

    #[test]
    fn a_guest_that_answers_otherwise_is_refused() {
        for (answer, words) in [
            (r#"{"error":"no"}"#, "no"),
            (r#"{"fds":[1]}"#, "three descriptors"),
            ("[", "not understood"),
        ] {
            let (guest, toolstack) = ends().unwrap();
            let thread = std::thread::spawn(move || {
                let mut bytes = [0; 1024];
                let len = recv(&guest, &mut bytes, RecvFlags::empty()).unwrap().0;
                rustix::io::write(&guest, answer.as_bytes()).unwrap();
                String::from_utf8(bytes[..len].to_vec()).unwrap()
            });
            let error = plug(&toolstack, &vif(1, 1), fds()).unwrap_err();
            assert!(error.message.contains(words), "{error}");
            assert!(thread.join().unwrap().contains(r#""devid":1"#));
        }
    }

    #[test]
    fn an_answer_of_before_counts_for_nothing() {
        let (guest, toolstack) = ends().unwrap();
        for _ in 0..9 {
            rustix::io::write(&guest, br#"{"fds":[1,2,3]}"#).unwrap();
        }
        drop(guest);
        assert!(plug(&toolstack, &vif(1, 1), fds()).is_err());
    }

    #[test]
    fn what_is_no_socket_is_an_error() {
        let file = std::fs::File::open("/dev/null").unwrap().into();
        assert!(unplug(&file, 1).is_err());
    }
}
