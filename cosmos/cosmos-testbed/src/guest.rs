// SPDX-License-Identifier: Apache-2.0
//! Arguments of `create` for tests.

use serde_json::{Value, json};

/// The UUID of a test's guest number `n`.
pub fn uuid(n: u16) -> String {
    format!("00000000-0000-4000-8000-{n:012x}")
}

/// An interface: a port of vale0.
#[derive(Clone)]
pub struct VifSpec {
    pub port: String,
    pub mac: String,
    pub segment: u32,
    /// The only IP address to send from; any, and any MAC, if there is none.
    pub only_ip: Option<String>,
}

/// A guest; without interfaces unless some are given.
#[derive(Clone)]
pub struct GuestSpec {
    pub n: u16,
    pub image_sha256: String,
    pub config: String,
    pub vifs: Vec<VifSpec>,
    pub writes: Vec<(String, String)>,
    pub timeout_ms: u64,
}

impl GuestSpec {
    pub fn new(n: u16, image_sha256: &str, config: &str) -> Self {
        Self {
            n,
            image_sha256: image_sha256.into(),
            config: config.into(),
            vifs: Vec::new(),
            writes: Vec::new(),
            timeout_ms: 50_000,
        }
    }

    /// Adds an interface on a segment.
    pub fn vif(mut self, segment: u32) -> Self {
        let devid = self.vifs.len();
        self.vifs.push(VifSpec {
            port: format!("g{}-{devid}", self.n),
            mac: format!("02:00:00:01:{:02x}:{devid:02x}", self.n),
            segment,
            only_ip: None,
        });
        self
    }

    /// Adds an interface with port security.
    pub fn secure_vif(self, segment: u32, ip: &str) -> Self {
        let mut this = self.vif(segment);
        if let Some(vif) = this.vifs.last_mut() {
            vif.only_ip = Some(ip.into());
        }
        this
    }

    pub fn write(mut self, handler: &str, value: &str) -> Self {
        self.writes.push((handler.into(), value.into()));
        self
    }

    /// The arguments of `create`.
    pub fn args(&self) -> Value {
        let vif = |(devid, vif): (usize, &VifSpec)| {
            let allowed: Vec<Value> = vif.only_ip.iter().map(|ip| json!({"ip": ip})).collect();
            json!({
                "devid": devid, "mac": vif.mac, "switch": "vale0", "port": vif.port,
                "segment": vif.segment, "allowed": allowed,
                "port_security": vif.only_ip.is_some(),
                "mtu": 1500, "slots": 256,
            })
        };
        json!({
            "uuid": uuid(self.n), "name": format!("guest {}", self.n),
            "image_sha256": self.image_sha256, "memory_mib": 16,
            "vifs": self.vifs.iter().enumerate().map(vif).collect::<Vec<_>>(),
            "config": self.config, "config_name": "test.click",
            "writes": self.writes, "timeout_ms": self.timeout_ms,
        })
    }
}
