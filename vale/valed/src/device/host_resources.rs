// SPDX-License-Identifier: Apache-2.0
//! What the ports of a host share: pipes, sockets to other hosts, and the directory of files.
use std::sync::{Arc, OnceLock};

use vale_proto::PortAdd;

use crate::device::capture::CaptureDir;
use crate::device::path_port::Paths;
use crate::device::pipe::Pipes;
use crate::device::region_registry::RegionRegistry;
use crate::device::vxlan::Tunnels;

#[derive(Default)]
pub struct HostResources {
    pub tunnels: Tunnels,
    pub pipes: Pipes,
    pub paths: Paths,
    /// Guards the start of the thread that looks at chains.
    pub chain_ticks: OnceLock<()>,
    pub regions: Arc<RegionRegistry>,
    /// The directory for files of mirrors and ports, if there is one.
    pub capture_dir: Option<CaptureDir>,
}

impl HostResources {
    /// Removes the file that a refused port has made.
    pub fn discard_file(&self, add: &PortAdd) {
        let name = add.pcap.as_ref().and_then(|pcap| pcap.write.as_ref());
        if let (Some(directory), Some(name)) = (&self.capture_dir, name) {
            let _ = std::fs::remove_file(directory.file(name));
        }
    }
}
