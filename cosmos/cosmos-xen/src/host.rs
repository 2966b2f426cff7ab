// SPDX-License-Identifier: Apache-2.0
//! A Xen host: its domains and their vifs.

use std::ffi::{CString, c_char, c_int, c_void};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr::{self, NonNull};

use crate::error::{Error, Result, call};
use crate::ffi;
use crate::ffi::PEEK_DOMAINS;
use crate::types::{HostInfo, Info, Nic, Spec, Type, Vale};

/// The host this process runs on. Any number of threads may use it at once.
pub struct Host {
    context: NonNull<ffi::Context>,
}

// SAFETY: cosmos.h: "One cosmos_ctx serves any number of threads"; nothing in it belongs to the
// thread that opened it.
unsafe impl Send for Host {}
// SAFETY: as above.
unsafe impl Sync for Host {}

impl Host {
    /// Opens the host, once in a process; it takes dom0's root. The helper processes, which end
    /// with this one, keep `held` open: a lock on it ends with the last of them.
    pub fn open(held: BorrowedFd<'_>) -> Result<Self> {
        let (mut context, held) = (ptr::null_mut(), held.as_raw_fd());
        // SAFETY: the pointers are to variables of this call; the descriptor is open meanwhile,
        // and the helpers have a copy of their own.
        call(|e| unsafe { ffi::cosmos_open(&raw mut context, ffi::API_VERSION, held, e) })?;
        let context = NonNull::new(context).expect("cosmos_open gave what it promises");
        Ok(Self { context })
    }

    fn context(&self) -> *mut ffi::Context {
        self.context.as_ptr()
    }

    /// Creates a domain, paused; an error leaves nothing behind.
    pub fn create(&self, spec: &Spec<'_>) -> Result<u32> {
        with_spec(spec, |raw| {
            let mut domid = 0;
            // SAFETY: the spec's pointers live until the call returns, which copies what it keeps.
            // Its descriptors are borrowed, so they are open meanwhile.
            call(|e| unsafe { ffi::cosmos_domain_create(self.context(), raw, &raw mut domid, e) })?;
            Ok(domid)
        })
    }

    /// Creates a domain, paused, from what `save` wrote; the spec's image is not used.
    pub fn restore(&self, spec: &Spec<'_>, from: BorrowedFd<'_>) -> Result<u32> {
        with_spec(spec, |raw| {
            let (mut domid, fd) = (0, from.as_raw_fd());
            // SAFETY: as in `create`; the descriptor is open as long as it is borrowed.
            call(|e| unsafe {
                ffi::cosmos_domain_restore(self.context(), raw, fd, &raw mut domid, e)
            })?;
            Ok(domid)
        })
    }

    /// Lets the guest suspend itself and writes its memory; the domain stays, shut down.
    pub fn save(&self, domid: u32, to: BorrowedFd<'_>) -> Result<()> {
        // SAFETY: the descriptor is open as long as it is borrowed.
        call(|e| unsafe { ffi::cosmos_domain_save(self.context(), domid, to.as_raw_fd(), e) })
    }

    /// Lets a suspended domain go on.
    pub fn resume(&self, domid: u32) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_resume(self.context(), domid, e) })
    }

    /// Runs a domain on this processor only, or on any.
    pub fn pin(&self, domid: u32, cpu: Option<u16>) -> Result<()> {
        let cpu = cpu.map_or(-1, c_int::from);
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_pin(self.context(), domid, cpu, e) })
    }

    /// A domain's share of processor time, and its limit in percent of one processor (0: none).
    pub fn share(&self, domid: u32, weight: u16, cap_percent: u16) -> Result<()> {
        let (weight, cap) = (weight.into(), cap_percent.into());
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_share(self.context(), domid, weight, cap, e) })
    }

    /// Lets a paused domain run.
    pub fn unpause(&self, domid: u32) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_unpause(self.context(), domid, e) })
    }

    /// Stops a domain's processor time.
    pub fn pause(&self, domid: u32) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_pause(self.context(), domid, e) })
    }

    /// Ends a domain and removes its devices and store entries.
    pub fn destroy(&self, domid: u32) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_domain_destroy(self.context(), domid, e) })
    }

    /// The known facts about a domain.
    pub fn info(&self, domid: u32) -> Result<Info> {
        let mut info = std::mem::MaybeUninit::uninit();
        // SAFETY: the call writes the whole struct when it succeeds.
        call(|e| unsafe { ffi::cosmos_domain_info(self.context(), domid, info.as_mut_ptr(), e) })?;
        // SAFETY: it succeeded.
        Ok(Info::from(unsafe { info.assume_init_ref() }))
    }

    /// The same without its name, by one hypercall.
    pub fn peek(&self, domid: u32) -> Result<Info> {
        let mut info = std::mem::MaybeUninit::uninit();
        // SAFETY: the call writes the whole struct when it succeeds.
        call(|e| unsafe { ffi::cosmos_domain_peek(self.context(), domid, info.as_mut_ptr(), e) })?;
        // SAFETY: it succeeded.
        Ok(Info::from(unsafe { info.assume_init_ref() }))
    }

    /// The domains with the lowest numbers from `first` on, at most [`PEEK_DOMAINS`], without their names. One
    /// hypercall.
    pub fn peek_from(&self, first: u32) -> Result<Vec<Info>> {
        let mut infos = [const { std::mem::MaybeUninit::uninit() }; PEEK_DOMAINS];
        let (list, mut count) = (infos.as_mut_ptr().cast(), 0);
        // SAFETY: the call writes `count` entries, and there is room for the most that it writes.
        call(|e| unsafe {
            ffi::cosmos_domain_peek_from(self.context(), first, list, &raw mut count, e)
        })?;
        // SAFETY: the call wrote these entries.
        let infos = infos[..count]
            .iter()
            .map(|i| unsafe { i.assume_init_ref() });
        Ok(infos.map(Info::from).collect())
    }

    /// All domains but dom0, without their names.
    pub fn peek_all(&self) -> Result<Vec<Info>> {
        let (mut list, mut count) = (ptr::null_mut(), 0);
        // SAFETY: both pointers are to variables of this call.
        call(|e| unsafe {
            ffi::cosmos_domain_peek_all(self.context(), &raw mut list, &raw mut count, e)
        })?;
        // SAFETY: the call gave `count` entries; they are freed once, below.
        let infos = unsafe { std::slice::from_raw_parts(list, count) };
        let infos = infos.iter().map(Info::from).collect();
        // SAFETY: allocated by the library with malloc, not used any more.
        unsafe { ffi::free(list.cast::<c_void>()) };
        Ok(infos)
    }

    /// The host's resources.
    pub fn host_info(&self) -> Result<HostInfo> {
        let mut info = ffi::HostInfo {
            cpus: 0,
            memory_kib: 0,
            free_kib: 0,
        };
        // SAFETY: the pointer is to a variable of this call.
        call(|e| unsafe { ffi::cosmos_host_info(self.context(), &raw mut info, e) })?;
        Ok(HostInfo {
            cpus: info.cpus,
            memory_kib: info.memory_kib,
            free_kib: info.free_kib,
        })
    }

    /// Adds a vif of stock netback.
    pub fn add_nic(&self, domid: u32, nic: &Nic<'_>) -> Result<()> {
        let (bridge, script) = (c_text("bridge", nic.bridge)?, c_text("script", nic.script)?);
        let raw = ffi::Nic {
            devid: nic.devid,
            mac: nic.mac,
            mtu: nic.mtu,
            bridge: or_null(&bridge),
            script: or_null(&script),
        };
        // SAFETY: the strings live until the call returns.
        call(|e| unsafe { ffi::cosmos_nic_add(self.context(), domid, &raw const raw, e) })
    }

    /// Makes the store nodes of a vif on the VALE switch.
    pub fn add_vale(&self, domid: u32, vale: &Vale) -> Result<()> {
        let raw = ffi::Vale {
            devid: vale.devid,
            mac: vale.mac,
            mtu: vale.mtu,
            slots: vale.slots,
        };
        // SAFETY: the pointer is to a variable of this call.
        call(|e| unsafe { ffi::cosmos_vale_add(self.context(), domid, &raw const raw, e) })
    }

    /// Removes them.
    pub fn remove_vale(&self, domid: u32, devid: u32) -> Result<()> {
        // SAFETY: the context lives as long as `self`.
        call(|e| unsafe { ffi::cosmos_vale_remove(self.context(), domid, devid, e) })
    }

    /// The console, for reading and writing without waiting.
    pub fn console(&self, domid: u32) -> Result<OwnedFd> {
        let mut fd: c_int = -1;
        // SAFETY: the pointer is to a variable of this call.
        call(|e| unsafe { ffi::cosmos_console_open(self.context(), domid, &raw mut fd, e) })?;
        // SAFETY: the call opened it for us.
        Ok(unsafe { OwnedFd::from_raw_fd(fd) })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // SAFETY: opened by `open`, closed once.
        unsafe { ffi::cosmos_close(self.context()) };
    }
}

/// Calls with a spec as C has it, which lives as long as the call.
fn with_spec<T>(spec: &Spec<'_>, body: impl FnOnce(*const ffi::Spec) -> Result<T>) -> Result<T> {
    let (name, cmdline) = (c_text("name", spec.name)?, c_text("cmdline", spec.cmdline)?);
    let files = spec.files.map(|files| ffi::Files {
        kernel: files.kernel.as_raw_fd(),
        ramdisk: files.ramdisk.map_or(-1, |file| file.as_raw_fd()),
    });
    let raw = ffi::Spec {
        domid: spec.domid.unwrap_or(u32::MAX),
        kind: match spec.kind {
            Type::Pv => 0,
            Type::Pvh => 1,
        },
        name: name.as_ptr(),
        uuid: spec.uuid,
        image: spec.image.as_ptr().cast(),
        image_bytes: spec.image.len(),
        cmdline: or_null(&cmdline),
        memory_kib: spec.memory_kib,
        files: files.as_ref().map_or(ptr::null(), ptr::from_ref),
    };
    body(&raw const raw)
}

fn c_text(key: &str, value: &str) -> Result<CString> {
    CString::new(value).map_err(|_| Error::invalid(format!("{key}: has a NUL byte")))
}

fn or_null(text: &CString) -> *const c_char {
    if text.is_empty() {
        ptr::null()
    } else {
        text.as_ptr()
    }
}
