// SPDX-License-Identifier: Apache-2.0
//! The images a Xen host makes guests of: the installed one, and those of its cache.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use super::image::Engine;
use crate::base::error::{Error, Result};
use crate::images::Images;

/// See the module.
pub struct Kernels {
    pub installed: Option<Engine>,
    pub images: Images,
    /// The kernel used last; the next guest with this kernel need not wait for its pages.
    last: Mutex<Option<Loaded>>,
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
        }
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
    use crate::spec::Sha256Text;
    use sha2::Digest;

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

    #[test]
    fn a_removed_image_is_not_made_guests_of() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let kernels = Kernels::new(None, images);
        let image = kernel(&[18]);
        let sha256 = sum(&image);
        let piece = Piece {
            sha256: &sha256,
            size: image.len() as u64,
            offset: 0,
            data: &image,
        };
        kernels.images.add(&piece).unwrap();
        assert_eq!(**kernels.load(sha256.as_str()).unwrap(), image);
        kernels.images.remove(&sha256).unwrap();
        assert!(kernels.load(sha256.as_str()).is_err());
    }
}
