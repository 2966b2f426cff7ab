// SPDX-License-Identifier: Apache-2.0
//! The images a Xen host makes guests of: the installed one, and those of its cache.

use std::fs::File;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::Domain;
use super::image::Engine;
use crate::base::error::{Code, Error, Result};
use crate::images::{Entries, Images, check_kernel, check_ramdisk};

/// A larger image does not stay in memory. One of Click has at most 3 MiB.
const MAX_KEPT: usize = 16 << 20;

/// See the module.
pub struct Kernels {
    pub installed: Option<Engine>,
    pub images: Images,
    /// The kernel used last; the next guest with this kernel need not wait for its pages.
    last: Mutex<Option<Loaded>>,
    /// Held while an image is checked, because it may be a large one.
    checks: Mutex<()>,
}

/// Room for what Xen's domain builder puts next to kernel and RAM disk: page tables and pages of its own.
const RESERVE_BYTES: u64 = 4 << 20;

/// The files of a guest whose kernel is not Click's. They stay open, whatever becomes of the cache.
pub struct KernelFiles {
    pub kernel: File,
    pub ramdisk: Option<File>,
    ramdisk_bytes: u64,
}

impl KernelFiles {
    /// Refuses files that do not fit into the guest.
    pub fn check_fit(&self, domain: &Domain, entries: Entries) -> Result<()> {
        let files = entries.end.saturating_add(self.ramdisk_bytes);
        let needed = files.saturating_add(RESERVE_BYTES);
        let memory_mib = domain.memory_mib;
        if needed <= u64::from(memory_mib) << 20 {
            return Ok(());
        }
        let message = format!(
            "image {:.12}: kernel and RAM disk need {needed} bytes, more than the guest's memory of \
             {memory_mib} MiB",
            domain.image_sha256
        );
        Err(Error::new(Code::BadImage, message))
    }
}

struct Loaded {
    sha256: String,
    bytes: Arc<Vec<u8>>,
}

impl Kernels {
    pub fn new(installed: Option<Engine>, images: Images) -> Self {
        Self {
            installed,
            images,
            last: Mutex::default(),
            checks: Mutex::default(),
        }
    }

    /// The ways Xen can start an image. One image at a time lies in memory for that.
    pub fn entries(&self, sha256: &str) -> Result<Entries> {
        let _one = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        check_kernel(sha256, &self.load(sha256)?)
    }

    /// The files that a domain starts with, if its kernel is not Click's.
    ///
    /// # Errors
    /// `bad-image` for one that is missing, and for a RAM disk of an unknown format.
    pub fn files(&self, domain: &Domain) -> Result<Option<KernelFiles>> {
        let Some(with) = &domain.kernel else {
            return Ok(None);
        };
        let mut files = KernelFiles {
            kernel: self.open(&domain.image_sha256)?,
            ramdisk: None,
            ramdisk_bytes: 0,
        };
        if let Some(sha256) = &with.ramdisk_sha256 {
            let file = self.open(sha256.as_str())?;
            check_ramdisk(sha256.as_str(), &file)?;
            let meta = file.metadata();
            files.ramdisk_bytes = meta.map_err(|e| Error::internal("RAM disk", e))?.len();
            files.ramdisk = Some(file);
        }
        Ok(Some(files))
    }

    fn open(&self, sha256: &str) -> Result<File> {
        let path = self.touch(sha256)?;
        // A tenant reads it: no path.
        let gone = |e| Error::new(Code::BadImage, format!("image {sha256:.12}: {e}"));
        File::open(&path).map_err(gone)
    }

    /// The bytes of an image; it counts as used just now.
    pub fn load(&self, sha256: &str) -> Result<Arc<Vec<u8>>> {
        let path = self.touch(sha256)?;
        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = last.as_ref().filter(|known| known.sha256 == sha256) {
            return Ok(Arc::clone(&known.bytes));
        }
        let bytes = std::fs::read(&path).map_err(|e| Error::internal(path.display(), e))?;
        // The installed one may have been replaced meanwhile: then it has another sum now.
        self.touch(sha256)?;
        let bytes = Arc::new(bytes);
        if bytes.len() > MAX_KEPT {
            return Ok(bytes);
        }
        *last = Some(Loaded {
            sha256: sha256.into(),
            bytes: Arc::clone(&bytes),
        });
        Ok(bytes)
    }

    fn touch(&self, sha256: &str) -> Result<PathBuf> {
        match &self.installed {
            Some(engine) if engine.sha256()? == sha256 => Ok(engine.path().to_owned()),
            _ => self.images.touch(sha256),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::text::hex;
    use crate::images::{Limits, Piece, kernel};
    use crate::spec::{Kernel, Sha256Text};
    use crate::testing::domain;
    use sha2::Digest;
    use std::io::{Read, Seek};

    const LIMITS: Limits = Limits {
        images: 2,
        image_bytes: 4096,
    };

    fn sum(bytes: &[u8]) -> Sha256Text {
        hex(&sha2::Sha256::digest(bytes)).try_into().unwrap()
    }

    #[test]
    fn what_is_in_memory_is_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("installed");
        std::fs::write(&path, "one").unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let kernels = Kernels::new(Some(Engine::new(path.clone())), images);
        for _ in 0..2 {
            assert_eq!(**kernels.load(sum(b"one").as_str()).unwrap(), *b"one");
        }
        std::fs::write(&path, "other").unwrap();
        assert!(kernels.load(sum(b"one").as_str()).is_err());
        assert_eq!(**kernels.load(sum(b"other").as_str()).unwrap(), *b"other");
    }

    fn add(kernels: &Kernels, image: &[u8]) -> Sha256Text {
        let sha256 = sum(image);
        let piece = Piece {
            sha256: &sha256,
            size: image.len() as u64,
            offset: 0,
            data: image,
        };
        kernels.images.add(&piece).unwrap();
        sha256
    }

    /// A domain with this kernel and RAM disk.
    fn linux(kernel: &Sha256Text, ramdisk: Option<&Sha256Text>) -> Domain {
        Domain {
            image_sha256: kernel.as_str().to_owned(),
            kernel: Some(Kernel {
                ramdisk_sha256: ramdisk.cloned(),
                command_line: Default::default(),
            }),
            ..domain(1)
        }
    }

    #[test]
    fn a_foreign_kernel_starts_from_files_that_stay_open() {
        let dir = tempfile::tempdir().unwrap();
        let kernels = Kernels::new(None, Images::open(dir.path(), LIMITS).unwrap());
        let (image, disk) = (kernel(&[18]), b"070701 and more");
        let (of_kernel, of_disk) = (add(&kernels, &image), add(&kernels, disk));
        let entries = kernels.entries(of_kernel.as_str()).unwrap();
        assert!(entries.pvh);
        let of = linux(&of_kernel, Some(&of_disk));
        let files = kernels.files(&of).unwrap().unwrap();
        kernels.images.remove(&of_kernel).unwrap();
        kernels.images.remove(&of_disk).unwrap();
        assert!(kernels.files(&of).is_err());
        let (mut read, mut ramdisk) = (Vec::new(), files.ramdisk.unwrap());
        (&files.kernel).read_to_end(&mut read).unwrap();
        assert_eq!(read, image);
        ramdisk.rewind().unwrap();
        read.clear();
        ramdisk.read_to_end(&mut read).unwrap();
        assert_eq!(read, disk);
        assert!(kernels.files(&domain(1)).unwrap().is_none());
    }

    #[test]
    fn files_that_are_wrong_or_too_large_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let kernels = Kernels::new(None, Images::open(dir.path(), LIMITS).unwrap());
        let of_kernel = add(&kernels, &kernel(&[18]));
        let refused = |of: &Domain| kernels.files(of).err().unwrap();
        let twice = refused(&linux(&of_kernel, Some(&of_kernel)));
        assert!(twice.message.contains("it is no RAM disk"), "{twice}");
        let of_disk = add(&kernels, &[b"070701", &[0; 200][..]].concat());
        let of = linux(&of_kernel, Some(&of_disk));
        let files = kernels.files(&of).unwrap().unwrap();
        let ends_at = |end| Entries {
            end,
            ..Entries::default()
        };
        let memory = u64::from(of.memory_mib) << 20;
        let memory = memory - RESERVE_BYTES;
        files.check_fit(&of, ends_at(memory - 206)).unwrap();
        for end in [memory - 205, u64::MAX] {
            let error = files.check_fit(&of, ends_at(end)).unwrap_err();
            assert_eq!(error.code, Code::BadImage);
            assert!(error.message.contains("memory of 8 MiB"), "{error}");
        }
        assert!(kernels.entries(sum(b"none").as_str()).is_err());
    }

    #[test]
    fn a_removed_image_is_not_made_guests_of() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let kernels = Kernels::new(None, images);
        let image = kernel(&[18]);
        let sha256 = add(&kernels, &image);
        assert_eq!(**kernels.load(sha256.as_str()).unwrap(), image);
        kernels.images.remove(&sha256).unwrap();
        assert!(kernels.load(sha256.as_str()).is_err());
    }
}
