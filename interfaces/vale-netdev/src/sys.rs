// SPDX-License-Identifier: Apache-2.0
//! The system calls.
use std::ffi::{CString, c_int, c_void};
use std::io;
use std::mem::{size_of, size_of_val, zeroed};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

/// Bytes that the kernel may hold for a packet socket until valed reads them.
const RECEIVE_BUFFER: c_int = 4 << 20;
/// linux/if_packet.h, linux/if_tun.h; not in libc.
const PACKET_IGNORE_OUTGOING: c_int = 23;
const TUN_OFFLOADS: libc::c_uint = 0x01 | 0x02 | 0x04; // checksum, TCPv4, TCPv6
const TUN_UDP_OFFLOADS: libc::c_uint = 0x20 | 0x40; // UDPv4, UDPv6; since Linux 6.2

/// Messages of one `recvmmsg` or `sendmmsg`.
pub(crate) const BATCH: usize = 32;
/// Room for one `tpacket_auxdata`.
const CONTROL: usize = 64;

#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL]);

pub(crate) fn check(result: c_int) -> io::Result<c_int> {
    if result < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(result)
    }
}

pub(crate) fn set<T>(fd: &OwnedFd, level: c_int, option: c_int, value: &T) -> io::Result<()> {
    let (at, len) = (
        std::ptr::from_ref(value).cast::<c_void>(),
        size_of_val(value),
    );
    // SAFETY: `at` points to `len` initialized bytes that live through the call.
    check(unsafe { libc::setsockopt(fd.as_raw_fd(), level, option, at, len as libc::socklen_t) })
        .map(drop)
}

/// The number of an interface of this network namespace.
pub fn interface_index(name: &str) -> io::Result<c_int> {
    let name = CString::new(name)?;
    // SAFETY: `name` is a terminated string that lives through the call.
    match unsafe { libc::if_nametoindex(name.as_ptr()) } {
        0 => Err(io::Error::last_os_error()),
        index => Ok(index as c_int),
    }
}

/// A request about an interface.
fn interface_request(name: &str) -> io::Result<libc::ifreq> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    Ok(request)
}

/// True if an interface of this network namespace is up and has a carrier.
pub fn interface_passes(name: &str) -> io::Result<bool> {
    let kind = libc::SOCK_DGRAM | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let raw = check(unsafe { libc::socket(libc::AF_UNIX, kind, 0) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut request = interface_request(name)?;
    // SAFETY: `request` is an initialized ifreq that lives through the call, which writes its flags.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFFLAGS, &raw mut request) })?;
    // SAFETY: SIOCGIFFLAGS has set this member of the union.
    let flags = c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    let both = libc::IFF_UP | libc::IFF_RUNNING;
    Ok(flags & both == both)
}

/// Opens a nonblocking packet socket on an existing interface, in promiscuous mode. Each frame has
/// a virtio header, and its VLAN tag as ancillary data. The socket skips frames that this machine
/// sends.
pub fn open_packet_socket(interface: &str) -> io::Result<OwnedFd> {
    open_socket(interface, None)
}

/// As [`open_packet_socket`], for the frames of one VLAN.
pub fn open_vlan_socket(interface: &str, vlan: u16) -> io::Result<OwnedFd> {
    open_socket(interface, Some(vlan))
}

fn open_socket(interface: &str, vlan: Option<u16>) -> io::Result<OwnedFd> {
    let index = interface_index(interface)?;
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers. Protocol 0 receives nothing until the socket is bound.
    let raw = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let on: c_int = 1;
    for option in [
        libc::PACKET_VNET_HDR,
        libc::PACKET_AUXDATA,
        PACKET_IGNORE_OUTGOING,
    ] {
        set(&fd, libc::SOL_PACKET, option, &on)?;
    }
    set(&fd, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &RECEIVE_BUFFER)?;
    set_promiscuous(&fd, index)?;
    if let Some(vlan) = vlan {
        accept_vlan(&fd, vlan)?;
    }
    bind(&fd, index)?;
    Ok(fd)
}

/// Makes the interface take frames to all addresses while the packet socket is open.
fn set_promiscuous(fd: &OwnedFd, index: c_int) -> io::Result<()> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut membership: libc::packet_mreq = unsafe { zeroed() };
    membership.mr_ifindex = index;
    membership.mr_type = libc::PACKET_MR_PROMISC as u16;
    set(
        fd,
        libc::SOL_PACKET,
        libc::PACKET_ADD_MEMBERSHIP,
        &membership,
    )
}

/// A socket that receives nothing, and makes the interface take frames to all addresses.
pub(crate) fn promiscuous(interface: &str) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers. Protocol 0 receives nothing.
    let raw = check(unsafe { libc::socket(libc::AF_PACKET, kind, 0) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    set_promiscuous(&fd, interface_index(interface)?)?;
    Ok(fd)
}

/// Lets the kernel drop all frames but those of one VLAN.
fn accept_vlan(fd: &OwnedFd, vlan: u16) -> io::Result<()> {
    let load = (libc::BPF_LD | libc::BPF_W | libc::BPF_ABS) as u16;
    let field = |offset: c_int| (libc::SKF_AD_OFF + offset) as u32;
    let step = |code: u16, jt, jf, k| libc::sock_filter { code, jt, jf, k };
    let equals = (libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K) as u16;
    let and = (libc::BPF_ALU | libc::BPF_AND | libc::BPF_K) as u16;
    let end = (libc::BPF_RET | libc::BPF_K) as u16;
    let mut program = [
        step(load, 0, 0, field(libc::SKF_AD_VLAN_TAG_PRESENT)),
        step(equals, 0, 4, 1),
        step(load, 0, 0, field(libc::SKF_AD_VLAN_TAG)),
        step(and, 0, 0, 0xfff),
        step(equals, 0, 1, vlan.into()),
        step(end, 0, 0, u32::MAX),
        step(end, 0, 0, 0),
    ];
    let filter = libc::sock_fprog {
        len: program.len() as u16,
        filter: program.as_mut_ptr(),
    };
    // The kernel copies the program that `filter` points to, which lives through the call.
    set(fd, libc::SOL_SOCKET, libc::SO_ATTACH_FILTER, &filter)
}

fn bind(fd: &OwnedFd, index: c_int) -> io::Result<()> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut address: libc::sockaddr_ll = unsafe { zeroed() };
    address.sll_family = libc::AF_PACKET as u16;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index;
    let (at, len) = (
        std::ptr::from_ref(&address).cast(),
        size_of::<libc::sockaddr_ll>(),
    );
    // SAFETY: `at` points to an address of `len` bytes that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, len as libc::socklen_t) }).map(drop)
}

/// Opens tap `name`, making it if it does not exist, with a virtio header before each frame and
/// all offloads the kernel knows. A tap made here goes with the descriptor.
pub fn open_tap(name: &str) -> io::Result<OwnedFd> {
    let flags = libc::O_RDWR | libc::O_NONBLOCK | libc::O_CLOEXEC;
    // SAFETY: the path is a terminated string.
    let raw = check(unsafe { libc::open(c"/dev/net/tun".as_ptr(), flags) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    let mut request = interface_request(name)?;
    request.ifr_ifru.ifru_flags = (libc::IFF_TAP | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as i16;
    // SAFETY: TUNSETIFF takes a pointer to an ifreq, which lives through the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let offload = |set: libc::c_uint| {
        // SAFETY: TUNSETOFFLOAD takes the set itself, no pointer.
        check(unsafe {
            libc::ioctl(
                fd.as_raw_fd(),
                libc::TUNSETOFFLOAD,
                libc::c_ulong::from(set),
            )
        })
    };
    offload(TUN_OFFLOADS | TUN_UDP_OFFLOADS).or_else(|_| offload(TUN_OFFLOADS))?;
    Ok(fd)
}

/// Opens a socket that gets a message when an interface of this network namespace comes, goes or
/// changes.
pub fn open_interface_events() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let raw = check(unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_ROUTE) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: plain old data, for which zeros are valid.
    let mut address: libc::sockaddr_nl = unsafe { zeroed() };
    address.nl_family = libc::AF_NETLINK as u16;
    address.nl_groups = libc::RTMGRP_LINK as u32;
    let (at, len) = (
        std::ptr::from_ref(&address).cast(),
        size_of::<libc::sockaddr_nl>(),
    );
    // SAFETY: `at` points to an address of `len` bytes that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, len as libc::socklen_t) })?;
    Ok(fd)
}

/// Length and ancillary data of one message.
#[derive(Clone, Copy, Default)]
pub(crate) struct Message {
    pub len: usize,
    /// It was longer than its buffer.
    pub truncated: bool,
    /// VLAN tag the kernel has taken out: TPID, TCI.
    pub vlan: Option<(u16, u16)>,
}

/// Receives messages into consecutive `stride`d parts of `buffer`, each from `offset` on.
pub(crate) fn receive(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    stride: usize,
    offset: usize,
    messages: &mut [Message; BATCH],
) -> io::Result<usize> {
    let count = BATCH.min(buffer.len() / stride);
    // SAFETY: plain old data, for which zeros are valid.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; BATCH] = unsafe { zeroed() };
    let mut controls = [Control([0; CONTROL]); BATCH];
    for (n, chunk) in buffer.chunks_exact_mut(stride).take(count).enumerate() {
        let space = &mut chunk[offset..];
        parts[n] = libc::iovec {
            iov_base: space.as_mut_ptr().cast(),
            iov_len: space.len(),
        };
        headers[n].msg_hdr.msg_iov = &raw mut parts[n];
        headers[n].msg_hdr.msg_iovlen = 1;
        headers[n].msg_hdr.msg_control = (&raw mut controls[n]).cast();
        headers[n].msg_hdr.msg_controllen = CONTROL;
    }
    let (at, flags, forever) = (
        headers.as_mut_ptr(),
        libc::MSG_DONTWAIT,
        std::ptr::null_mut(),
    );
    // SAFETY: the first `count` headers describe parts and controls that live through the call and
    // do not overlap.
    let got =
        check(unsafe { libc::recvmmsg(fd.as_raw_fd(), at, count as _, flags, forever) })? as usize;
    for (header, message) in headers[..got].iter().zip(messages) {
        let truncated = header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
        *message = Message {
            len: header.msg_len as usize,
            truncated,
            vlan: vlan(&header.msg_hdr),
        };
    }
    Ok(got)
}

/// The tag in a message's `tpacket_auxdata`.
fn vlan(header: &libc::msghdr) -> Option<(u16, u16)> {
    // SAFETY: the kernel has filled the control buffer and set its length; CMSG_FIRSTHDR gives
    // null if no whole header is in it.
    let control = unsafe { libc::CMSG_FIRSTHDR(header).as_ref() }?;
    let wanted = size_of::<libc::cmsghdr>() + size_of::<libc::tpacket_auxdata>();
    if (control.cmsg_level, control.cmsg_type) != (libc::SOL_PACKET, libc::PACKET_AUXDATA)
        || control.cmsg_len < wanted
    {
        return None;
    }
    // SAFETY: the data of the control message is as long as the struct, by the check above. The
    // struct is plain old data, and the read may be unaligned.
    let data: libc::tpacket_auxdata = unsafe {
        libc::CMSG_DATA(control)
            .cast::<libc::tpacket_auxdata>()
            .read_unaligned()
    };
    let has = |flag: u32| data.tp_status & flag != 0;
    let tpid = if has(libc::TP_STATUS_VLAN_TPID_VALID) {
        data.tp_vlan_tpid
    } else {
        0x8100
    };
    has(libc::TP_STATUS_VLAN_VALID).then_some((tpid, data.tp_vlan_tci))
}

/// Sends each of `messages` as one frame; the number of those taken from the front.
pub(crate) fn send(fd: BorrowedFd<'_>, messages: &[&[u8]]) -> io::Result<usize> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut headers: [libc::mmsghdr; BATCH] = unsafe { zeroed() };
    // SAFETY: as above.
    let mut parts: [libc::iovec; BATCH] = unsafe { zeroed() };
    let count = BATCH.min(messages.len());
    for (n, message) in messages.iter().take(count).enumerate() {
        parts[n] = libc::iovec {
            iov_base: message.as_ptr().cast_mut().cast(),
            iov_len: message.len(),
        };
        headers[n].msg_hdr.msg_iov = &raw mut parts[n];
        headers[n].msg_hdr.msg_iovlen = 1;
    }
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: the first `count` headers describe parts that live through the call and are only
    // read by it.
    let sent =
        check(unsafe { libc::sendmmsg(fd.as_raw_fd(), headers.as_mut_ptr(), count as _, flags) })?;
    Ok(sent as usize)
}

/// Reads one frame from a tap.
pub(crate) fn read(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: `into` is writable for its length.
    let got = unsafe { libc::read(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len()) };
    if got < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(got as usize)
    }
}

/// Writes one frame to a tap.
pub(crate) fn write(fd: BorrowedFd<'_>, from: &[u8]) -> io::Result<()> {
    // SAFETY: `from` is readable for its length.
    let sent = unsafe { libc::write(fd.as_raw_fd(), from.as_ptr().cast(), from.len()) };
    if sent < 0 {
        Err(io::Error::last_os_error())
    } else {
        Ok(())
    }
}
