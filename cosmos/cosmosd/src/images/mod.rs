// SPDX-License-Identifier: Apache-2.0
//! Guest images, kernels and RAM disks, kept by their checksum: given piece by piece, checked as a whole, and thrown
//! away when room is needed for others.

mod elf;
mod ramdisk;

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use cosmos_proto::answer::Image;
use sha2::{Digest, Sha256};

use crate::base::error::{Code, Error, Result};
use crate::base::files::{make_private_dir, remove_file};
use crate::base::text::hex;
use crate::spec::Sha256Text;
use crate::state::room::{PART as STATE_DIR, unwritable};

pub use elf::Entries;
#[cfg(test)]
pub use elf::tests::kernel;

/// The extension of complete images.
const COMPLETE: &str = "elf";
/// The extension of images of which pieces are missing.
const PART: &str = "part";
/// The extension of whole images that are being checked.
const CHECKED: &str = "check";

/// The limits of the cache.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    pub images: usize,
    pub image_bytes: u64,
}

/// A part of an image.
pub struct Piece<'a> {
    pub sha256: &'a Sha256Text,
    /// Bytes of the whole image.
    pub size: u64,
    pub offset: u64,
    pub data: &'a [u8],
}

/// A directory of images: `<sha256>.elf`, and `<sha256>.part` while one is given, `<sha256>.<n>.check`
/// while it is checked.
pub struct Images {
    dir: PathBuf,
    limits: Limits,
    changes: Mutex<()>,
    /// Held while a whole image is checked.
    checks: Mutex<()>,
    /// Images that were whole.
    finished: AtomicU64,
}

/// The result of a piece.
enum Taken {
    More,
    /// The image was there before.
    Known,
    /// The last one: the image lies in this file, which no other piece changes.
    Whole(PathBuf),
}

#[cfg_attr(
    not(any(feature = "xen", test)),
    expect(dead_code, reason = "only the xen kind has images")
)]
impl Images {
    pub fn open(state_dir: &Path, limits: Limits) -> Result<Self> {
        let dir = state_dir.join("images");
        make_private_dir(&dir)?;
        let images = Self {
            dir,
            limits,
            changes: Mutex::default(),
            checks: Mutex::default(),
            finished: AtomicU64::default(),
        };
        images.remove_unfinished()?;
        Ok(images)
    }

    /// Removes what an earlier cosmosd was checking when it ended.
    fn remove_unfinished(&self) -> Result<()> {
        let unfinished = self.files(CHECKED)?.into_iter();
        let mut paths = unfinished.map(|file| self.dir.join(format!("{}.{CHECKED}", file.sha256)));
        paths.try_for_each(|path| self.remove_file(&path))
    }

    /// Takes a piece; returns true when the image is complete and usable. A piece may come again,
    /// but only after all pieces before.
    ///
    /// # Errors `bad-image`: too large, another checksum, or neither a kernel nor a RAM disk; cosmosd then
    /// keeps no part.
    pub fn add(&self, piece: &Piece<'_>) -> Result<bool> {
        self.check(piece)?;
        match self.take(piece)? {
            Taken::More => Ok(false),
            Taken::Known => Ok(true),
            Taken::Whole(file) => self.finish(piece.sha256, &file).map(|()| true),
        }
    }

    fn take(&self, piece: &Piece<'_>) -> Result<Taken> {
        let _change = self.lock();
        let path = self.path(piece.sha256);
        if path.exists() {
            return Ok(Taken::Known);
        }
        let part = path.with_extension(PART);
        let place = |e: io::Error| Error::internal(part.display(), e);
        if !part.exists() {
            self.make_room(PART)?;
        }
        write(&part, piece).inspect_err(|e| {
            if e.code == Code::StateDir {
                // A disk that is full needs the room; the client begins again.
                let _ = self.remove_file(&part);
            }
        })?;
        if piece.offset + (piece.data.len() as u64) < piece.size {
            return Ok(Taken::More);
        }
        // From here on no other piece changes it.
        let number = self.finished.fetch_add(1, Ordering::Relaxed);
        let file = path.with_extension(format!("{number}.{CHECKED}"));
        fs::rename(&part, &file).map_err(place)?;
        Ok(Taken::Whole(file))
    }

    /// Checks a whole image without the lock, and lets it be used.
    fn finish(&self, sha256: &Sha256Text, file: &Path) -> Result<()> {
        let checked = self.check_file(sha256, file).and_then(|()| {
            let _change = self.lock();
            self.make_room(COMPLETE)?;
            fs::rename(file, self.path(sha256)).map_err(|e| Error::internal(file.display(), e))
        });
        if checked.is_err() {
            self.remove_file(file)?;
        }
        checked
    }

    /// One image at a time, because it lies in memory as a whole.
    fn check_file(&self, sha256: &Sha256Text, file: &Path) -> Result<()> {
        let _one = self.checks.lock().unwrap_or_else(PoisonError::into_inner);
        let image = fs::read(file).map_err(|e| Error::internal(file.display(), e))?;
        check_sum(sha256, &image)?;
        let name = sha256.as_str();
        match ramdisk::check(&image) {
            Ok(()) => Ok(()),
            Err(why) if ramdisk::is_gzip(&image) => Err(bad(name, why)),
            Err(_) => check_kernel(name, &image).map(drop),
        }
    }

    fn check(&self, piece: &Piece<'_>) -> Result<()> {
        let (size, limit) = (piece.size, self.limits.image_bytes);
        let name = piece.sha256.as_str();
        if size == 0 || size > limit {
            let message = format!(
                "image {name:.12}: {size} bytes, expected 1 to {limit} (xen.max_image_mib)"
            );
            return Err(Error::new(Code::BadImage, message));
        }
        let end = piece.offset.checked_add(piece.data.len() as u64);
        if end.is_none_or(|end| end > size) {
            let message = format!(
                "image {name:.12}: {} bytes at {} are beyond its size of {size}",
                piece.data.len(),
                piece.offset
            );
            return Err(Error::bad_request(message));
        }
        Ok(())
    }

    /// Where an image lies; from now on it counts as used just now.
    pub fn touch(&self, sha256: &str) -> Result<PathBuf> {
        let _change = self.lock();
        let path = self.find(sha256)?;
        let place = |e: io::Error| Error::internal(path.display(), e);
        let file = OpenOptions::new().write(true).open(&path).map_err(place)?;
        file.set_modified(SystemTime::now()).map_err(place)?;
        Ok(path)
    }

    /// # Errors
    /// `bad-image` if it is not there, with what to do.
    pub fn find(&self, sha256: &str) -> Result<PathBuf> {
        let known = Sha256Text::try_from(sha256.to_owned()).map(|name| self.path(&name));
        known.ok().filter(|path| path.exists()).ok_or_else(|| {
            let message = format!(
                "image {sha256:.80?} is not in this host's cache; give it with image-add first"
            );
            Error::new(Code::BadImage, message)
        })
    }

    /// All that can be used, the one used last first.
    pub fn list(&self) -> Result<Vec<Image>> {
        self.files(COMPLETE)
    }

    fn files(&self, extension: &str) -> Result<Vec<Image>> {
        let place = |e: io::Error| Error::internal(self.dir.display(), e);
        let mut known = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(place)? {
            let path = entry.map_err(place)?.path();
            known.extend(describe(&path, extension).map_err(place)?);
        }
        known.sort_by_key(|image| std::cmp::Reverse(image.used_s));
        Ok(known)
    }

    /// Removes an image, if it is there. Guests made from the image run on.
    pub fn remove(&self, sha256: &Sha256Text) -> Result<()> {
        let _change = self.lock();
        self.remove_file(&self.path(sha256))
    }

    /// Lets the file that was not used for longest go, if there is no room for one more.
    fn make_room(&self, extension: &str) -> Result<()> {
        let known = self.files(extension)?;
        let surplus = (known.len() + 1).saturating_sub(self.limits.images);
        let name = |image: &Image| format!("{}.{extension}", image.sha256);
        let mut oldest = known.iter().rev().take(surplus);
        oldest.try_for_each(|image| self.remove_file(&self.dir.join(name(image))))
    }

    fn remove_file(&self, path: &Path) -> Result<()> {
        remove_file(path).map_err(|e| Error::internal(path.display(), e))
    }

    fn path(&self, sha256: &Sha256Text) -> PathBuf {
        self.dir.join(format!("{}.elf", sha256.as_str()))
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.changes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Refuses a hole, so that checking an image costs no more than sending it.
fn write(path: &Path, piece: &Piece<'_>) -> Result<()> {
    let name = piece.sha256.as_str();
    let place = |e: io::Error| unwritable(format!("{STATE_DIR}: image {name:.12}"), &e);
    let mut options = OpenOptions::new();
    let options = options.write(true).create(true).truncate(false).mode(0o600);
    let file: File = options.open(path).map_err(place)?;
    let there = file.metadata().map_err(place)?.len();
    if piece.offset > there {
        let message = format!(
            "image {:.12}: the piece at {} is beyond the {there} bytes that came; give the \
             pieces in order, from 0",
            piece.sha256.as_str(),
            piece.offset
        );
        return Err(Error::bad_request(message));
    }
    let whole = piece.offset + piece.data.len() as u64 == piece.size;
    file.write_all_at(piece.data, piece.offset).map_err(place)?;
    // Cut a longer file of an earlier piece with another size.
    let cut = whole.then(|| file.set_len(piece.size));
    cut.unwrap_or(Ok(())).map_err(place)
}

fn check_sum(expected: &Sha256Text, image: &[u8]) -> Result<()> {
    let got = hex(&Sha256::digest(image));
    if got == expected.as_str() {
        return Ok(());
    }
    let message = format!(
        "image {:.12}: what came has sha256 {got}",
        expected.as_str()
    );
    Err(Error::new(Code::BadImage, message))
}

/// How Xen can start this image.
pub fn check_kernel(name: &str, image: &[u8]) -> Result<Entries> {
    elf::entries(image).map_err(|why| bad(name, why))
}

/// Refuses a file that is no RAM disk; it was just opened.
#[cfg_attr(
    not(any(feature = "xen", test)),
    expect(dead_code, reason = "only the xen kind has images")
)]
pub fn check_ramdisk(name: &str, file: &File) -> Result<()> {
    let mut head = Vec::new();
    let read = file.take(ramdisk::HEAD_BYTES).read_to_end(&mut head);
    read.map_err(|e| Error::internal(format!("image {name:.12}"), e))?;
    ramdisk::check(&head).map_err(|why| bad(name, why))
}

fn bad(name: &str, why: String) -> Error {
    Error::new(Code::BadImage, format!("image {name:.12}: {why}"))
}

/// `None` if it is another kind of file.
fn describe(path: &Path, extension: &str) -> io::Result<Option<Image>> {
    if path.extension().is_none_or(|e| e != extension) {
        return Ok(None);
    }
    let meta = fs::metadata(path)?;
    let used = meta.modified()?.duration_since(UNIX_EPOCH);
    let stem = path.file_stem().unwrap_or_default();
    Ok(Some(Image {
        sha256: stem.to_string_lossy().into_owned(),
        size: meta.len(),
        used_s: used.unwrap_or_default().as_secs(),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const LIMITS: Limits = Limits {
        images: 2,
        image_bytes: 1000,
    };

    fn sum(image: &[u8]) -> Sha256Text {
        Sha256Text::try_from(hex(&Sha256::digest(image))).unwrap()
    }

    fn give(images: &Images, image: &[u8], offset: usize, end: usize) -> Result<bool> {
        images.add(&Piece {
            sha256: &sum(image),
            size: image.len() as u64,
            offset: offset as u64,
            data: &image[offset..end],
        })
    }

    fn names(images: &Images) -> Vec<String> {
        let known = images.list().unwrap();
        known.into_iter().map(|image| image.sha256).collect()
    }

    #[test]
    fn an_image_comes_in_pieces_and_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let image = kernel(&[18]);
        assert_eq!(give(&images, &image, 0, 50), Ok(false));
        assert_eq!(give(&images, &image, 0, 50), Ok(false));
        assert!(images.touch(sum(&image).as_str()).is_err());
        assert_eq!(give(&images, &image, 50, image.len()), Ok(true));
        assert_eq!(give(&images, &image, 0, 50), Ok(true));
        let path = images.touch(sum(&image).as_str()).unwrap();
        assert_eq!(fs::read(path).unwrap(), image);
        let again = Images::open(dir.path(), LIMITS).unwrap();
        assert_eq!(names(&again), [sum(&image).as_str()]);
        again.remove(&sum(&image)).unwrap();
        again.remove(&sum(&image)).unwrap();
        assert!(names(&again).is_empty());
    }

    #[test]
    fn a_ramdisk_is_kept_too() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let ramdisk = b"070701 and more";
        assert_eq!(give(&images, ramdisk, 0, ramdisk.len()), Ok(true));
        assert_eq!(names(&images), [sum(ramdisk).as_str()]);
    }

    #[test]
    fn what_is_wrong_is_told_and_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let (image, other) = (kernel(&[18]), kernel(&[1]));
        let add = |sha256: &Sha256Text, size: u64, offset: u64, data: &[u8]| {
            let piece = Piece {
                sha256,
                size,
                offset,
                data,
            };
            images.add(&piece).unwrap_err().to_string()
        };
        let size = image.len() as u64;
        assert!(add(&sum(&other), size, 0, &image).contains("what came has sha256"));
        assert!(add(&sum(b"text"), 4, 0, b"text").contains("it is no ELF file"));
        assert!(add(&sum(b"\x1f\x8b"), 2, 0, b"\x1f\x8b").contains("gzip"));
        assert!(add(&sum(&image), 1001, 0, &image).contains("expected 1 to 1000"));
        assert!(add(&sum(&image), 0, 0, b"").contains("expected 1 to 1000"));
        assert!(add(&sum(&image), 10, 5, &image).contains("beyond its size of 10"));
        assert!(add(&sum(&image), 10, u64::MAX, b"x").contains("beyond its size"));
        assert_eq!(fs::read_dir(dir.path().join("images")).unwrap().count(), 0);
        let unknown = images.find("../../etc/passwd").unwrap_err();
        assert!(unknown.message.contains("image-add"), "{unknown}");
    }

    #[test]
    fn pieces_come_in_order_and_cost_no_more_than_they_bring() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let image = kernel(&[18]);
        let error = give(&images, &image, 50, image.len()).unwrap_err();
        assert!(
            error.message.contains("at 50 is beyond the 0 bytes"),
            "{error}"
        );
        // A longer one that was begun under this name leaves nothing behind.
        let (sha256, size) = (&sum(&image), 900);
        let data = &[7; 800];
        let begun = Piece {
            sha256,
            size,
            offset: 0,
            data,
        };
        assert_eq!(images.add(&begun), Ok(false));
        assert_eq!(give(&images, &image, 0, image.len()), Ok(true));
    }

    #[test]
    fn a_full_disk_keeps_no_part_of_an_image() {
        let dir = tempfile::tempdir().unwrap();
        let image = kernel(&[18]);
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let part = images.path(&sum(&image)).with_extension(PART);
        std::os::unix::fs::symlink("/dev/full", &part).unwrap();
        let error = give(&images, &image, 0, 50).unwrap_err();
        assert_eq!(error.code, Code::StateDir);
        assert!(error.message.contains("No space left"), "{error}");
        assert!(part.symlink_metadata().is_err());
        assert_eq!(give(&images, &image, 0, image.len()), Ok(true));
    }

    #[test]
    fn what_was_being_checked_does_not_outlive_a_daemon() {
        let dir = tempfile::tempdir().unwrap();
        let image = kernel(&[18]);
        let images = Images::open(dir.path(), LIMITS).unwrap();
        give(&images, &image, 0, 50).unwrap();
        let check = images.path(&sum(&image)).with_extension("0.check");
        fs::write(&check, b"half").unwrap();
        Images::open(dir.path(), LIMITS).unwrap();
        assert!(!check.exists());
        assert_eq!(give(&images, &image, 50, image.len()), Ok(true));
    }

    #[test]
    fn the_cache_is_of_use_while_an_image_is_checked() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let (first, second) = (kernel(&[18]), kernel(&[1]));
        give(&images, &first, 0, first.len()).unwrap();
        let check = images.checks.lock().unwrap();
        std::thread::scope(|scope| {
            let last = scope.spawn(|| give(&images, &second, 0, second.len()));
            while images.files(CHECKED).unwrap().is_empty() {
                std::thread::yield_now();
            }
            images.touch(sum(&first).as_str()).unwrap();
            // A piece that comes meanwhile does not change what is checked.
            assert_eq!(give(&images, &second, 0, 7), Ok(false));
            drop(check);
            assert_eq!(last.join().unwrap(), Ok(true));
        });
        images.touch(sum(&second).as_str()).unwrap();
    }

    #[test]
    fn the_one_unused_for_longest_goes() {
        let dir = tempfile::tempdir().unwrap();
        let images = Images::open(dir.path(), LIMITS).unwrap();
        let kernels = [kernel(&[18]), kernel(&[1]), kernel(&[1, 18])];
        for (age_s, image) in [(90, &kernels[0]), (50, &kernels[1])] {
            give(&images, image, 0, image.len()).unwrap();
            let file = File::options().write(true).open(images.path(&sum(image)));
            let used = SystemTime::now() - Duration::from_secs(age_s);
            file.unwrap().set_modified(used).unwrap();
        }
        images.touch(sum(&kernels[0]).as_str()).unwrap();
        give(&images, &kernels[2], 0, kernels[2].len()).unwrap();
        let known = names(&images);
        assert!(known.contains(&sum(&kernels[0]).as_str().to_owned()));
        assert!(!known.contains(&sum(&kernels[1]).as_str().to_owned()));
        assert_eq!(known.len(), 2);
    }
}
