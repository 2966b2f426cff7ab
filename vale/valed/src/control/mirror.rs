// SPDX-License-Identifier: Apache-2.0
//! The verbs about mirrors.
use std::io;

use control_socket::{ApiError, Done, Peer};
use log::info;
use vale_proto::{MAX_MIRRORS, MirrorId, MirrorList, MirrorName, MirrorSet, Mirrors};

use super::{Control, no_such_switch, stopped};
use crate::device::capture::CaptureDir;
use crate::mirror::TooManyMirrors;

impl Control {
    pub(super) fn mirror_set(&self, peer: &Peer, set: MirrorSet) -> Result<Done, ApiError> {
        set.check()
            .map_err(|e| ApiError::bad_request(format!("mirror-set: {e}")))?;
        let file = self.capture_file(&set)?;
        let capture = file.map(|(directory, name)| directory.create(name));
        let capture = capture.transpose();
        let capture = capture.map_err(|e| capture_error(&set, &e))?;
        let (name, switch) = (format!("{}:{}", set.switch, set.mirror), set.switch.clone());
        let done = self.forwarder.set_mirror(&set, capture.as_ref());
        let refused = match done.ok_or_else(stopped)? {
            Some(Ok(())) => {
                info!("{name}: mirror set by uid {}", peer.uid);
                return Ok(Done {});
            }
            Some(Err(TooManyMirrors)) => ApiError::new(
                "too-many",
                format!("{switch}: there are {MAX_MIRRORS} mirrors already"),
            ),
            None => no_such_switch(&switch),
        };
        if let Some((directory, name)) = file {
            let _ = std::fs::remove_file(directory.file(name));
        }
        Err(refused)
    }

    /// The directory and the name of a mirror's file, if it has one.
    fn capture_file<'a>(
        &'a self,
        set: &'a MirrorSet,
    ) -> Result<Option<(&'a CaptureDir, &'a MirrorName)>, ApiError> {
        let Some(file) = &set.to_file else {
            return Ok(None);
        };
        let directory = self.resources.capture_dir.as_ref().ok_or_else(|| {
            ApiError::bad_request(
                "mirror-set: to_file: valed has no capture_dir in its configuration",
            )
        })?;
        Ok(Some((directory, file)))
    }

    pub(super) fn mirror_remove(&self, peer: &Peer, id: MirrorId) -> Result<Done, ApiError> {
        let name = format!("{}:{}", id.switch, id.mirror);
        let removed = self.forwarder.remove_mirror(&id);
        removed.ok_or_else(stopped)?;
        info!("{name}: mirror removed by uid {}", peer.uid);
        Ok(Done {})
    }

    pub(super) fn mirror_list(&self, _: &Peer, list: MirrorList) -> Result<Mirrors, ApiError> {
        let mirrors = self.forwarder.mirrors(list.switch.as_ref());
        let mirrors = mirrors.ok_or_else(stopped)?;
        Ok(Mirrors { mirrors })
    }
}

fn capture_error(set: &MirrorSet, error: &io::Error) -> ApiError {
    let file = set.to_file.as_ref().map_or("", |f| f.as_str());
    let code = match error.kind() {
        io::ErrorKind::AlreadyExists => "exists",
        _ => "internal",
    };
    ApiError::new(code, format!("to_file: {file}.pcap: {error}"))
}
