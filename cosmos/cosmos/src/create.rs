// SPDX-License-Identifier: Apache-2.0
//! The command `create`: flags, a guest file and what is chosen become one request.

use std::io::Read;
use std::path::Path;

use cosmos_proto::{Cpu, NoArgs, OfGuest, Share, Spec, Uuid, verb};
use serde_json::json;

use crate::commands::{Result, Session, checked, failed, timeout_ms, usage};
use crate::guestfile::{self, GuestFile};
use crate::image::Image;
use crate::output::fields;
use crate::progress::Progress;
use crate::{Create, vif};

/// Memory of a guest that says nothing about it, in MiB.
const DEFAULT_MEMORY_MIB: u32 = 8;

impl Session<'_> {
    pub fn create(&self, args: &Create) -> Result<()> {
        let file = match &args.file {
            Some(path) => guestfile::load(path).map_err(usage)?,
            None => GuestFile::default(),
        };
        let cpu = file.cpu().map_err(usage)?;
        let request = self.creation(args, file)?;
        let progress = Progress::begin(&format!("creating {}", request.name));
        let answer = self.call_for::<verb::Create>(&request, args.timeout.timeout)?;
        drop(progress);
        if let Some(cpu) = cpu {
            self.share(&request.uuid, cpu)?;
        }
        let created = json!({
            "uuid": request.uuid, "domid": answer.domid, "steps_ms": answer.steps_ms,
        });
        self.print(&created, || fields(&created))
    }

    /// After a creation: the share of processor time a guest file asks for.
    pub fn share(&self, uuid: &Uuid, cpu: Cpu) -> Result<()> {
        let uuid = uuid.clone();
        let set = self.call::<verb::SetCpu>(&Share {
            uuid: uuid.clone(),
            cpu,
        });
        set.map(drop).inspect_err(|_| {
            // Reports the first error, and destroys a guest that differs from the request.
            let _ = self.call::<verb::Destroy>(&OfGuest { uuid });
        })
    }

    /// The arguments of `create`: the flags', then the file's, then the defaults.
    pub fn creation(&self, args: &Create, file: GuestFile) -> Result<Spec> {
        let uuid = match args.uuid.clone().or(file.uuid) {
            Some(uuid) => uuid.to_lowercase(),
            None => random_uuid()?,
        };
        let uuid = Uuid::try_from(uuid).map_err(usage)?;
        let config = args.config.clone().or(file.config);
        let config = config
            .ok_or_else(|| usage("create: --config, or config in a guest file, is missing"))?;
        let vifs = if args.vifs.is_empty() {
            &file.vif
        } else {
            &args.vifs
        };
        let vifs = vif::parse_all(vifs, &uuid).map_err(usage)?;
        let mut writes = Vec::new();
        for (name, value) in file.write {
            writes.push((checked("writes", name)?, value));
        }
        for write in &args.writes {
            let (name, value) = write
                .split_once('=')
                .ok_or_else(|| usage(format!("--write {write:?}: expected HANDLER=VALUE")))?;
            writes.push((checked("writes", name)?, value.to_owned()));
        }
        let image_sha256 = match args.image.as_ref().or(file.image.as_ref()) {
            Some(path) if args.image_sha256.is_none() => self.give(path)?,
            _ => self.named_image(args.image_sha256.clone().or(file.image_sha256))?,
        };
        let name = args.name.clone().or(file.name);
        let memory_mib = args.memory.or(file.memory).unwrap_or(DEFAULT_MEMORY_MIB);
        let vcpus = args.vcpus.or(file.vcpus).unwrap_or(1);
        Ok(Spec {
            uuid,
            name: checked("name", name.unwrap_or_else(|| stem(&config)))?,
            image_sha256,
            memory_mib: checked("memory_mib", u64::from(memory_mib))?,
            vcpus: checked("vcpus", u64::from(vcpus))?,
            vifs: vifs.ports,
            nics: vifs.nics,
            kernel: None,
            config: checked("config", read_text(&config)?)?,
            config_name: checked("config_name", file_name(&config))?,
            writes,
            number: 0,
            has_secrets: false,
            hold: false,
            replace: false,
            timeout_ms: timeout_ms(args.timeout.timeout)?,
        })
    }

    /// The image's checksum, or that of the installed one.
    fn named_image(&self, sha256: Option<String>) -> Result<String> {
        if let Some(sha256) = sha256 {
            return Ok(sha256);
        }
        let installed = self.call::<verb::DescribeHost>(&NoArgs {})?.engine_sha256;
        installed.ok_or_else(|| {
            usage("create: no image is installed on this host; name one with --image")
        })
    }

    /// Gives the host an image, unless it has it; returns its checksum.
    pub fn give(&self, path: &Path) -> Result<String> {
        let image = Image::load(path).map_err(usage)?;
        let mut progress = Progress::begin("giving the host the image");
        for (number, piece) in image.pieces().enumerate() {
            progress.step(&format!("giving the host the image: {number} MiB"));
            if self.call::<verb::AddImage>(&piece)?.complete {
                return Ok(image.sha256.clone().into());
            }
        }
        Err(failed("the host did not take the whole image"))
    }
}

pub fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = match path.to_str() {
        Some("-") => std::io::stdin().read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|mut file| file.read_to_string(&mut text)),
    };
    read.map(|_| text)
        .map_err(|e| usage(format!("{}: {e}", path.display())))
}

/// The configuration's name in error messages.
pub fn file_name(path: &Path) -> String {
    match path.to_str() {
        Some("-") => "stdin".into(),
        _ => path
            .file_name()
            .map_or("config".into(), |name| name.to_string_lossy().into_owned()),
    }
}

fn stem(path: &Path) -> String {
    path.file_stem()
        .map_or("guest".into(), |stem| stem.to_string_lossy().into_owned())
}

pub fn random_uuid() -> Result<String> {
    let path = "/proc/sys/kernel/random/uuid";
    let uuid = std::fs::read_to_string(path).map_err(|e| failed(format!("{path}: {e}")))?;
    Ok(uuid.trim().to_owned())
}
