// SPDX-License-Identifier: Apache-2.0
//! Images given to the host: a file, in pieces.

use std::fmt::Write as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use cosmos_proto::{ImageAdd, Sha256Text};
use sha2::{Digest, Sha256};

/// Bytes of an image in one request; a line has at most 4 MiB.
const PIECE: usize = 1 << 20;

/// A guest image.
pub struct Image {
    bytes: Vec<u8>,
    pub sha256: Sha256Text,
}

impl Image {
    pub fn load(path: &Path) -> Result<Self, String> {
        let bytes = std::fs::read(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let sha256 = hex(&Sha256::digest(&bytes)).try_into()?;
        Ok(Self { bytes, sha256 })
    }

    /// The arguments of each `image-add`, in order; an empty image has one piece, too.
    pub fn pieces(&self) -> impl Iterator<Item = ImageAdd> {
        let starts = (0..self.bytes.len().max(1)).step_by(PIECE);
        starts.map(|start| {
            let end = (start + PIECE).min(self.bytes.len());
            ImageAdd {
                sha256: self.sha256.clone(),
                size: self.bytes.len() as u64,
                offset: start as u64,
                data: BASE64.encode(&self.bytes[start..end]),
            }
        })
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}"); // a String takes everything
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image(size: usize) -> Image {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("image");
        std::fs::write(&path, vec![7; size]).unwrap();
        Image::load(&path).unwrap()
    }

    #[test]
    fn pieces_make_the_whole() {
        for (size, count) in [(0, 1), (1, 1), (PIECE, 1), (PIECE + 1, 2)] {
            let pieces: Vec<_> = image(size).pieces().collect();
            let bytes = |p: &ImageAdd| BASE64.decode(&p.data).unwrap();
            let sent: usize = pieces.iter().map(|p| bytes(p).len()).sum();
            assert_eq!((sent, pieces.len()), (size, count));
            assert_eq!(pieces[count - 1].offset, (PIECE * (count - 1)) as u64);
        }
    }

    #[test]
    fn the_checksum_is_the_files() {
        let empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
        assert_eq!(image(0).sha256.as_str(), empty);
        assert!(Image::load(Path::new("/nonexistent")).is_err());
    }
}
