// SPDX-License-Identifier: Apache-2.0
//! The memory, the rings and the system calls of an AF_XDP socket (linux/if_xdp.h).
use std::ffi::{c_int, c_void};
use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicU32, Ordering};

use crate::sys::{check, interface_index, set};

/// Bytes of a chunk: a page, of which the kernel keeps the first 256 bytes.
pub(crate) const CHUNK: usize = 4096;
/// Chunks for frames of each direction, and descriptors of each ring.
pub(crate) const FRAMES: u32 = 1024;

/// linux/ethtool.h: reads and sets flags of an interface.
const ETHTOOL_GFLAGS: u32 = 0x25;
const ETHTOOL_SFLAGS: u32 = 0x26;
/// Flags that change frames before a program sees them: VLAN tags taken out, frames merged.
const TAKES_TAGS: u32 = 1 << 8;
const MERGES: u32 = 1 << 15;

pub(crate) fn open_socket() -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
    // SAFETY: takes no pointers.
    let raw = check(unsafe { libc::socket(libc::AF_XDP, kind, 0) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(raw) })
}

/// The receive queues of an interface in this network namespace.
pub(crate) fn queues(interface: &str) -> usize {
    let Ok(request) = ethtool_channels(interface) else {
        return 1; // a driver without the question has one
    };
    (request.rx + request.combined).max(1) as usize
}

/// `struct ethtool_channels`.
#[repr(C)]
#[derive(Default)]
struct Channels {
    cmd: u32,
    max: [u32; 4],
    rx: u32,
    tx: u32,
    other: u32,
    combined: u32,
}

fn ethtool_channels(interface: &str) -> io::Result<Channels> {
    let mut channels = Channels {
        cmd: 0x3c, // ETHTOOL_GCHANNELS
        ..Channels::default()
    };
    ethtool(interface, &raw mut channels)?;
    Ok(channels)
}

/// Leaves VLAN tags in the frames, and frames as they came.
pub(crate) fn keep_tags(interface: &str) -> io::Result<()> {
    let mut value = [ETHTOOL_GFLAGS, 0];
    ethtool(interface, &raw mut value)?;
    if value[1] & (TAKES_TAGS | MERGES) == 0 {
        return Ok(());
    }
    let mut wanted = [ETHTOOL_SFLAGS, value[1] & !(TAKES_TAGS | MERGES)];
    ethtool(interface, &raw mut wanted)
}

fn ethtool<T>(interface: &str, data: *mut T) -> io::Result<()> {
    // SAFETY: takes no pointers.
    let raw =
        check(unsafe { libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0) })?;
    // SAFETY: the call has just made the descriptor, and no other code owns it.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    // SAFETY: plain old data, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if interface.len() >= request.ifr_name.len() {
        return Err(io::Error::from_raw_os_error(libc::ENAMETOOLONG));
    }
    for (to, from) in request.ifr_name.iter_mut().zip(interface.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_data = data.cast();
    // SAFETY: SIOCETHTOOL takes an ifreq. Its data is the struct that the command in the first word
    // names. The callers pass such structs, and both live through the call.
    check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::SIOCETHTOOL as _, &raw mut request) })
        .map(drop)
}

/// Binds the socket to queue 0 of an interface. True for zero copy, which the kernel takes if the
/// driver can.
pub(crate) fn bind(fd: &OwnedFd, interface: &str) -> io::Result<bool> {
    // SAFETY: plain old data, for which zeros are valid.
    let mut address: libc::sockaddr_xdp = unsafe { zeroed() };
    address.sxdp_family = libc::AF_XDP as u16;
    address.sxdp_flags = libc::XDP_USE_NEED_WAKEUP;
    address.sxdp_ifindex = interface_index(interface)? as u32;
    let len = size_of::<libc::sockaddr_xdp>() as libc::socklen_t;
    let at = (&raw const address).cast();
    // SAFETY: `at` points to an address of `len` bytes that lives through the call.
    check(unsafe { libc::bind(fd.as_raw_fd(), at, len) })?;
    // SAFETY: plain old data, for which zeros are valid.
    let mut options: libc::xdp_options = unsafe { zeroed() };
    get(fd, libc::XDP_OPTIONS, &mut options)?;
    Ok(options.flags & libc::XDP_OPTIONS_ZEROCOPY != 0)
}

fn get<T>(fd: &OwnedFd, option: c_int, value: &mut T) -> io::Result<()> {
    let mut len = size_of::<T>() as libc::socklen_t;
    let at = std::ptr::from_mut(value).cast::<c_void>();
    // SAFETY: `at` points to `len` writable bytes that live through the call.
    check(unsafe { libc::getsockopt(fd.as_raw_fd(), libc::SOL_XDP, option, at, &raw mut len) })
        .map(drop)
}

/// Takes the error of a socket.
pub(crate) fn take_error(fd: &OwnedFd) -> Option<io::Error> {
    let (mut code, mut len): (c_int, _) = (0, size_of::<c_int>() as libc::socklen_t);
    let (level, option, at) = (libc::SOL_SOCKET, libc::SO_ERROR, (&raw mut code).cast());
    // SAFETY: `at` points to `len` writable bytes that live through the call.
    let done = unsafe { libc::getsockopt(fd.as_raw_fd(), level, option, at, &raw mut len) };
    (done == 0 && code != 0).then(|| io::Error::from_raw_os_error(code))
}

/// Asks the kernel to go on with a direction.
pub(crate) fn wake(fd: &OwnedFd, send: bool) -> io::Result<()> {
    let (fd, flags) = (fd.as_raw_fd(), libc::MSG_DONTWAIT);
    let (none, null) = (std::ptr::null(), std::ptr::null_mut());
    let done = match send {
        // SAFETY: a message without bytes and without an address.
        true => unsafe { libc::sendto(fd, null, 0, flags, none, 0) },
        // SAFETY: as above.
        false => unsafe {
            libc::recvfrom(
                fd,
                null,
                0,
                flags,
                std::ptr::null_mut(),
                std::ptr::null_mut(),
            )
        },
    };
    let error = io::Error::last_os_error();
    // The kernel is busy with the frames already, or has no room for more of them now.
    let busy = [libc::EAGAIN, libc::EBUSY, libc::ENOBUFS].map(Some);
    match done < 0 && !busy.contains(&error.raw_os_error()) {
        true => Err(error),
        false => Ok(()),
    }
}

/// A mapping that ends with its value.
struct Mapping {
    at: *mut u8,
    len: usize,
}

// SAFETY: the pages belong to the value alone; all access goes through its methods.
unsafe impl Send for Mapping {}

impl Mapping {
    fn new(len: usize, flags: c_int, fd: c_int, offset: i64) -> io::Result<Self> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping at an address that the kernel chooses.
        let at = unsafe { libc::mmap(std::ptr::null_mut(), len, access, flags, fd, offset) };
        match at == libc::MAP_FAILED {
            true => Err(io::Error::last_os_error()),
            false => Ok(Self { at: at.cast(), len }),
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's, and no reference into it is left.
        unsafe { libc::munmap(self.at.cast(), self.len) };
    }
}

/// The memory of the frames, which the kernel shares.
pub(crate) struct Memory(Mapping);

impl Memory {
    pub fn new(fd: &OwnedFd, len: usize) -> io::Result<Self> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let mapping = Mapping::new(len, flags, -1, 0)?;
        // SAFETY: plain old data, for which zeros are valid.
        let mut registration: libc::xdp_umem_reg = unsafe { zeroed() };
        registration.addr = mapping.at as u64;
        registration.len = len as u64;
        registration.chunk_size = CHUNK as u32;
        // The mapping outlives the socket: `XdpSocket` drops its descriptor first.
        set(fd, libc::SOL_XDP, libc::XDP_UMEM_REG, &registration)?;
        Ok(Self(mapping))
    }

    /// The bytes of a frame that the kernel has handed over; none for a place outside of the memory.
    pub fn chunk(&self, at: u64, len: u32) -> &[u8] {
        match self.place(at, len) {
            // SAFETY: the place lies in the mapping. The kernel writes no chunk between the receive
            // ring and the fill ring, and the caller fills that ring after it has read the bytes.
            Some(place) => unsafe { std::slice::from_raw_parts(place, len as usize) },
            None => &[],
        }
    }

    /// The bytes of a chunk that is not with the kernel, for a frame to send.
    pub fn chunk_mut(&mut self, at: u64, len: u32) -> &mut [u8] {
        match self.place(at, len) {
            // SAFETY: the place lies in the mapping. The kernel does not read it before it is in the
            // transmit ring, and no other slice into the memory lives next to this one.
            Some(place) => unsafe { std::slice::from_raw_parts_mut(place, len as usize) },
            None => &mut [],
        }
    }

    /// A place within one chunk.
    fn place(&self, at: u64, len: u32) -> Option<*mut u8> {
        let (at, len) = (usize::try_from(at).ok()?, len as usize);
        let fits = at % CHUNK + len <= CHUNK && at.checked_add(len)? <= self.0.len;
        // SAFETY: the place lies in the mapping, by the check.
        fits.then(|| unsafe { self.0.at.add(at) })
    }
}

/// A frame in the shared memory, as the kernel describes it (`xdp_desc`).
#[repr(C)]
#[derive(Clone, Copy, Default)]
pub(crate) struct Descriptor {
    pub address: u64,
    pub len: u32,
    pub options: u32,
}

/// One ring of descriptors. The kernel is at its other end.
pub(crate) struct Ring<T> {
    mapping: Mapping,
    offsets: libc::xdp_ring_offset,
    /// The next place of this end, not yet published.
    next: u32,
    /// The other end's place, as read last.
    other: u32,
    of: std::marker::PhantomData<T>,
}

/// The four rings of a socket.
pub(crate) struct Rings {
    pub fill: Ring<u64>,
    pub completion: Ring<u64>,
    pub rx: Ring<Descriptor>,
    pub tx: Ring<Descriptor>,
}

impl Rings {
    pub fn map(fd: &OwnedFd) -> io::Result<Self> {
        for option in [
            libc::XDP_UMEM_FILL_RING,
            libc::XDP_UMEM_COMPLETION_RING,
            libc::XDP_RX_RING,
            libc::XDP_TX_RING,
        ] {
            set(fd, libc::SOL_XDP, option, &FRAMES)?;
        }
        // SAFETY: plain old data, for which zeros are valid.
        let mut offsets: libc::xdp_mmap_offsets = unsafe { zeroed() };
        get(fd, libc::XDP_MMAP_OFFSETS, &mut offsets)?;
        Ok(Self {
            fill: Ring::map(fd, offsets.fr, libc::XDP_UMEM_PGOFF_FILL_RING as i64)?,
            completion: Ring::map(fd, offsets.cr, libc::XDP_UMEM_PGOFF_COMPLETION_RING as i64)?,
            rx: Ring::map(fd, offsets.rx, libc::XDP_PGOFF_RX_RING)?,
            tx: Ring::map(fd, offsets.tx, libc::XDP_PGOFF_TX_RING)?,
        })
    }
}

impl<T: Copy> Ring<T> {
    fn map(fd: &OwnedFd, offsets: libc::xdp_ring_offset, at: i64) -> io::Result<Self> {
        let len = offsets.desc as usize + FRAMES as usize * size_of::<T>();
        let flags = libc::MAP_SHARED | libc::MAP_POPULATE;
        let mapping = Mapping::new(len, flags, fd.as_raw_fd(), at)?;
        let outside = |offset: u64| offset as usize + size_of::<u32>() > len || offset % 4 != 0;
        let words = [offsets.producer, offsets.consumer, offsets.flags];
        if words.into_iter().any(outside) || offsets.desc % 8 != 0 {
            return Err(io::Error::other(
                "the kernel names places outside of a ring",
            ));
        }
        Ok(Self {
            mapping,
            offsets,
            next: 0,
            other: 0,
            of: std::marker::PhantomData,
        })
    }

    fn word(&self, offset: u64) -> &AtomicU32 {
        // SAFETY: `map` has checked that the word lies in the mapping and is aligned. It is shared
        // with the kernel and accessed by atomic operations alone.
        unsafe { AtomicU32::from_ptr(self.mapping.at.add(offset as usize).cast()) }
    }

    fn place(&self, index: u32) -> *mut T {
        let offset = self.offsets.desc as usize + (index % FRAMES) as usize * size_of::<T>();
        // SAFETY: an index below FRAMES lies in the mapping, whose length `map` has computed.
        unsafe { self.mapping.at.add(offset).cast() }
    }

    /// True without room for one more.
    pub fn is_full(&mut self) -> bool {
        if self.next.wrapping_sub(self.other) >= FRAMES {
            self.other = self.word(self.offsets.consumer).load(Ordering::Acquire);
        }
        self.next.wrapping_sub(self.other) >= FRAMES
    }

    /// Queues one for the kernel; a full ring stays as it is.
    pub fn push(&mut self, value: T) {
        if !self.is_full() {
            // SAFETY: the place lies in the mapping and is aligned. The kernel reads it only after
            // `publish`.
            unsafe { self.place(self.next).write_volatile(value) };
            self.next = self.next.wrapping_add(1);
        }
    }

    /// Hands over what is queued.
    pub fn publish(&self) {
        self.word(self.offsets.producer)
            .store(self.next, Ordering::Release);
    }

    /// True if the kernel has taken all that was handed over.
    pub fn is_taken(&self) -> bool {
        self.word(self.offsets.consumer).load(Ordering::Acquire) == self.next
    }

    /// True if the kernel has handed over no more.
    pub fn is_empty(&mut self) -> bool {
        if self.next == self.other {
            self.other = self.word(self.offsets.producer).load(Ordering::Acquire);
        }
        self.next == self.other
    }

    /// The next one of the kernel's.
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the place lies in the mapping and is aligned. The kernel has published it, and
        // writes it again only after `release`.
        let value = unsafe { self.place(self.next).read_volatile() };
        self.next = self.next.wrapping_add(1);
        Some(value)
    }

    /// Gives back the places of all that were taken.
    pub fn release(&self) {
        self.word(self.offsets.consumer)
            .store(self.next, Ordering::Release);
    }

    /// True if the kernel continues only after a system call.
    pub fn needs_wake(&self) -> bool {
        let flags = self.word(self.offsets.flags).load(Ordering::Relaxed);
        flags & libc::XDP_RING_NEED_WAKEUP != 0
    }
}
