// SPDX-License-Identifier: Apache-2.0
//! The daemon's types as libcosmos has them, and its errors as the daemon has them.

use std::path::Path;

use cosmos_xen as xen;

use crate::base::error::{Code, Error};
use crate::config::{XenConfig, XenType};
use crate::images::Limits;
use crate::preconnected::MTU;
use crate::spec::{Uuid, Vif};

/// The hotplug script of a preconnected vif: it ends without an error and does nothing.
const NO_SCRIPT: &str = "/bin/true";

pub fn limits(config: &XenConfig) -> Limits {
    Limits {
        images: config.max_images,
        image_bytes: config.max_image_mib << 20,
    }
}

pub fn path_text(path: Option<&Path>) -> String {
    path.unwrap_or(Path::new("")).display().to_string()
}

pub fn kind(config: XenType) -> xen::Type {
    match config {
        XenType::Pv => xen::Type::Pv,
        XenType::Pvh => xen::Type::Pvh,
    }
}

pub fn vale(vif: &Vif) -> xen::Vale {
    xen::Vale {
        devid: vif.devid,
        mac: vif.mac.0,
        mtu: vif.mtu,
        slots: vif.slots,
    }
}

/// A vif without an address.
pub fn preconnected(devid: u32, slots: u32) -> xen::Vale {
    xen::Vale {
        devid,
        mac: [0; 6],
        mtu: MTU,
        slots,
    }
}

/// A vif of netback without a bridge; libxl gives it an address that no guest sees.
pub fn preconnected_nic(devid: u32) -> xen::Nic<'static> {
    xen::Nic {
        devid,
        mac: [0; 6],
        mtu: MTU,
        bridge: "",
        script: NO_SCRIPT,
    }
}

/// The 16 bytes a UUID's text stands for.
pub fn bytes(uuid: &Uuid) -> [u8; 16] {
    let digits: Vec<u8> = uuid.as_str().bytes().filter(|b| *b != b'-').collect();
    let mut bytes = [0; 16];
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks(2)) {
        let text = std::str::from_utf8(pair).expect("a uuid is ASCII");
        *byte = u8::from_str_radix(text, 16).expect("a uuid has hexadecimal digits");
    }
    bytes
}

/// The text of a UUID's bytes.
pub fn text(bytes: [u8; 16]) -> String {
    let mut text = format!("{:032x}", u128::from_be_bytes(bytes));
    [20, 16, 12, 8].iter().for_each(|at| text.insert(*at, '-'));
    text
}

pub fn place(domid: u16) -> String {
    format!("domain {domid}")
}

pub fn failed(place: &str) -> impl Fn(xen::Error) -> Error {
    move |e| {
        let code = match e.code {
            xen::Code::NoMemory => Code::NoMemory,
            xen::Code::BadImage => Code::BadImage,
            xen::Code::Exists => Code::Exists,
            xen::Code::Store => Code::Store,
            xen::Code::Dead | xen::Code::NotFound => Code::DeadGuest,
            xen::Code::Timeout => Code::Timeout,
            xen::Code::Invalid => Code::BadRequest,
            xen::Code::Host => Code::Internal,
        };
        Error::new(code, format!("{place}: {e}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_uuid_as_bytes() {
        let uuid = Uuid::try_from("00112233-4455-6677-8899-aabbccddeeff".to_owned()).unwrap();
        assert_eq!(bytes(&uuid)[..3], [0, 0x11, 0x22]);
        assert_eq!(bytes(&uuid)[15], 0xff);
        assert_eq!(text(bytes(&uuid)), uuid.as_str());
    }
}
