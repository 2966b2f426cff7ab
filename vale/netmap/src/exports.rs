// SPDX-License-Identifier: Apache-2.0
//! The functions that C programs call. The caller keeps the rules that the headers state: a
//! descriptor comes from `nm_open` and is not used after `nm_close`.
use std::ffi::{CStr, c_char, c_int, c_ulong, c_void};
use std::sync::{Arc, Mutex, Once};
use std::{mem, process, ptr, slice};

use libc::{nfds_t, pollfd};

use crate::abi::{self, Callback, Descriptor, Header, NIOCRXSYNC, NIOCTXSYNC, Request};
use crate::memory::Way;
use crate::open::open;
use crate::port::{Port, Received};
use crate::registry::{self, Shared, lock};
use crate::wait;

/// The allocation of `nm_open`: the program knows its first field.
#[repr(C)]
struct Owned {
    public: Descriptor,
    port: Shared,
}

fn set_errno(number: c_int) {
    // SAFETY: the address of this thread's errno is valid as long as the thread runs.
    unsafe { *libc::__errno_location() = number }
}

/// The port of a descriptor.
///
/// # Safety
/// `desc` is null or comes from `nm_open` and is open.
unsafe fn port(desc: *mut Descriptor) -> Option<Shared> {
    if desc.is_null() {
        set_errno(libc::EINVAL);
        return None;
    }
    // SAFETY: the descriptor is the first field of an `Owned` (`repr(C)`), see above. Only the
    // field that the program does not know is referenced.
    let port = unsafe { &*ptr::addr_of!((*desc.cast::<Owned>()).port) };
    Some(Arc::clone(port))
}

/// # Safety
/// `name` is a string, `req` is null or a request.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_open(
    name: *const c_char,
    req: *const Request,
    _flags: u64,
    _parent: *const Descriptor,
) -> *mut Descriptor {
    if name.is_null() {
        set_errno(libc::EINVAL);
        return ptr::null_mut();
    }
    // SAFETY: the caller passes a string.
    let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
    // SAFETY: the caller passes a request or null.
    let wish = unsafe { req.as_ref() }.map_or(0, |req| req.tx_slots.max(req.rx_slots));
    match open(&name, wish) {
        Ok((port, base)) => publish(&name, port, base.as_ptr()),
        Err(text) => {
            eprintln!("nm_open: {name:.150}: {text}");
            set_errno(libc::ENXIO);
            ptr::null_mut()
        }
    }
}

/// Makes the descriptor of an open port.
fn publish(name: &str, port: Port, base: *mut u8) -> *mut Descriptor {
    detach_at_exit();
    let fd = port.fd();
    let public = describe(name, &port, base);
    let port = Arc::new(Mutex::new(port));
    registry::add(fd, Arc::clone(&port));
    let desc: *mut Descriptor = Box::into_raw(Box::new(Owned { public, port })).cast();
    // SAFETY: allocated just now, and no other thread knows the address.
    unsafe { (*desc).own = desc };
    desc
}

fn describe(name: &str, port: &Port, base: *mut u8) -> Descriptor {
    let layout = port.shim().layout;
    let at = |offset: usize| base.wrapping_add(offset).cast::<c_void>();
    // SAFETY: integers, pointers and arrays of them may all be zero.
    let header: Header = unsafe { mem::zeroed() };
    let req = Request {
        name: abi::name(name),
        version: abi::NETMAP_API,
        memsize: layout.size() as u32,
        tx_slots: port.slots(),
        rx_slots: port.slots(),
        tx_rings: 1,
        rx_rings: 1,
        ..Request::default()
    };
    Descriptor {
        own: ptr::null_mut(),
        fd: port.fd(),
        mem: at(0),
        memsize: layout.size() as u64,
        done_mmap: 1,
        nifp: at(0),
        rings: [0; 6],
        req,
        hdr: header,
        some_ring: at(layout.ring(Way::Rx)),
        buf_start: at(layout.buffer(0)),
        buf_end: at(layout.size()),
        st: abi::Statistics::default(),
        msg: [0; abi::ERRBUF_SIZE],
    }
}

/// Detaches the open ports when this process exits. A child of `fork` leaves them alone.
fn detach_at_exit() {
    static ONCE: Once = Once::new();
    static OWNER: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    extern "C" fn detach() {
        if OWNER.get() == Some(&process::id()) {
            registry::detach_all();
        }
    }
    ONCE.call_once(|| {
        OWNER.get_or_init(process::id);
        // SAFETY: the function takes no arguments and stays loaded as long as the process.
        unsafe { libc::atexit(detach) };
    });
}

/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_close(desc: *mut Descriptor) -> c_int {
    // SAFETY: as the caller says.
    let Some(port) = (unsafe { port(desc) }) else {
        return libc::EINVAL;
    };
    registry::remove(lock(&port).fd());
    lock(&port).finish();
    // SAFETY: `publish` made it by `Box::into_raw`, and the caller gives it up.
    drop(unsafe { Box::from_raw(desc.cast::<Owned>()) });
    0
}

/// # Safety
/// See the module.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_mmap(desc: *mut Descriptor, _parent: *const Descriptor) -> c_int {
    if desc.is_null() { libc::EINVAL } else { 0 }
}

/// # Safety
/// See the module; `packet` has `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_inject(
    desc: *mut Descriptor,
    packet: *const c_void,
    size: usize,
) -> c_int {
    // SAFETY: as the caller says.
    let Some(port) = (unsafe { port(desc) }) else {
        return 0;
    };
    if packet.is_null() || size > ring::BUFFER_SIZE {
        return 0;
    }
    // SAFETY: not null, and the caller passes `size` bytes.
    let packet = unsafe { slice::from_raw_parts(packet.cast(), size) };
    if lock(&port).inject(packet) {
        size as c_int
    } else {
        0
    }
}

/// # Safety
/// See the module; `header` is a place for a header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_nextpkt(desc: *mut Descriptor, header: *mut Header) -> *mut u8 {
    // SAFETY: as the caller says.
    let found = unsafe { next(desc) };
    let Some(found) = found else {
        return ptr::null_mut();
    };
    if !header.is_null() {
        // SAFETY: not null, and the caller passes a place for a header.
        unsafe { header.write(found) };
    }
    found.buf
}

/// The next frame's header.
///
/// # Safety
/// See the module.
unsafe fn next(desc: *mut Descriptor) -> Option<Header> {
    // SAFETY: as the caller says.
    let port = unsafe { port(desc) }?;
    let mut port = lock(&port);
    let Received { slot, buffer, len } = port.next()?;
    let layout = port.shim().layout;
    // SAFETY: the field was set by `publish`; the memory lives as long as the port.
    let base = unsafe { (*desc).mem }.cast::<u8>();
    let ring = base
        .wrapping_add(layout.ring(Way::Rx))
        .cast::<abi::RingHead>();
    Some(Header {
        // SAFETY: the ring is within the memory of the port and is aligned.
        ts: unsafe { ptr::addr_of!((*ring).ts).read_volatile() },
        caplen: len.into(),
        len: len.into(),
        flags: 0,
        desc,
        slot: base.wrapping_add(layout.slot(Way::Rx, slot)).cast(),
        buf: base.wrapping_add(layout.buffer(buffer)),
    })
}

/// # Safety
/// See the module; the callback keeps the rules of the header.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn nm_dispatch(
    desc: *mut Descriptor,
    count: c_int,
    callback: Option<Callback>,
    argument: *mut u8,
) -> c_int {
    let Some(callback) = callback else {
        set_errno(libc::EINVAL);
        return 0;
    };
    // SAFETY: as the caller says.
    let Some(ring) = (unsafe { port(desc) }).map(|port| lock(&port).slots() as c_int) else {
        return 0;
    };
    let most = if count > 0 { count } else { ring };
    let mut done = 0;
    while done < most {
        // SAFETY: as the caller says.
        let Some(header) = (unsafe { next(desc) }) else {
            break;
        };
        // SAFETY: the caller passes this callback for such headers. The port is not locked.
        unsafe { callback(argument, &header, header.buf) };
        done += 1;
    }
    done
}

/// # Safety
/// `fds` has `count` elements, as for `poll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vale_nm_poll(fds: *mut pollfd, count: nfds_t, timeout: c_int) -> c_int {
    if fds.is_null() || count == 0 {
        // SAFETY: the kernel checks the arguments.
        return unsafe { libc::poll(fds, count, timeout) };
    }
    // SAFETY: as the caller says.
    let fds = unsafe { slice::from_raw_parts_mut(fds, count as usize) };
    match wait::poll(fds, timeout, &mut kernel_poll) {
        Ok(found) => found as c_int,
        Err(number) => {
            set_errno(number);
            -1
        }
    }
}

fn kernel_poll(fds: &mut [pollfd], timeout: c_int) -> Result<usize, c_int> {
    // SAFETY: the slice is valid for its length.
    let found = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as nfds_t, timeout) };
    usize::try_from(found).map_err(|_| {
        std::io::Error::last_os_error()
            .raw_os_error()
            .unwrap_or(libc::EINVAL)
    })
}

/// # Safety
/// As for `ioctl`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn vale_nm_ioctl(fd: c_int, request: c_ulong, arg: *mut c_void) -> c_int {
    let Some(port) = registry::find(fd) else {
        // SAFETY: the caller passes what this request of another descriptor needs.
        return unsafe { libc::ioctl(fd, request, arg) };
    };
    let result = match request {
        NIOCTXSYNC => lock(&port).tx_sync(),
        NIOCRXSYNC => lock(&port).rx_sync(),
        _ => {
            set_errno(libc::EOPNOTSUPP);
            return -1;
        }
    };
    match result {
        Ok(()) => 0,
        Err(fault) => {
            set_errno(fault.errno());
            -1
        }
    }
}
