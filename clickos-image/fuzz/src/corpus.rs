// SPDX-License-Identifier: Apache-2.0
//! Packets: every configuration of the conformance corpus, so every element that reads packets, gets any.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::OnceLock;

use click_core::{Device, Environment, MemoryDevice, Router};

use crate::router::{choose, limits, registry, run};

/// When the configuration that is left without packets takes over.
const END_NS: u64 = 100_000_000_000;

/// The configurations of the corpus that a guest can run.
fn configurations() -> &'static [String] {
    static ALL: OnceLock<Vec<String>> = OnceLock::new();
    ALL.get_or_init(|| {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../conformance");
        let groups = children(&root).into_iter().filter(|path| path.is_dir());
        let cases = groups.flat_map(|group| children(&group));
        let texts = cases.filter_map(|case| fs::read_to_string(case).ok());
        let runs =
            |config: &String| Router::build("c", config, &registry(), devices().0, 1).is_ok();
        let all: Vec<_> = texts
            .filter_map(|text| config(&text))
            .filter(runs)
            .collect();
        assert!(all.len() > 100, "the corpus is where it was");
        all
    })
}

/// The entries of a folder, in the same order everywhere.
fn children(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries.map(|entry| entry.path()).collect();
    paths.sort();
    paths
}

/// The first section of a case.
fn config(case: &str) -> Option<String> {
    let (_, rest) = case.split_once("%config\n")?;
    Some(rest.split("\n%").next()?.to_string())
}

type Devices = [Rc<RefCell<MemoryDevice>>; 4];

fn devices() -> (Environment, Devices) {
    let device = |n: u8| Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, n])));
    let all = [1, 2, 3, 4].map(device);
    let shared = |device: &Rc<RefCell<MemoryDevice>>| -> Rc<RefCell<dyn Device>> { device.clone() };
    let environment = Environment {
        devices: (0..)
            .zip(all.iter().map(shared))
            .collect::<BTreeMap<_, _>>(),
        limits: limits(),
        ..Environment::new()
    };
    (environment, all)
}

/// A configuration of the corpus, and frames for its devices: none may be lost, and none kept for ever.
pub fn packets(data: &[u8]) {
    let all = configurations();
    let Some((index, mut rest)) = choose(data, all.len()) else {
        return;
    };
    let (environment, devices) = devices();
    let built = Router::build("fuzz", &all[index], &registry(), environment, 1);
    let mut router = built.expect("it was built before");
    while let Some((choice, bytes)) = choose(rest, 4 * 1600) {
        let (frame, behind) = bytes.split_at((choice / 4).min(bytes.len()));
        devices[choice % 4]
            .borrow_mut()
            .input
            .push_back(frame.to_vec());
        rest = behind;
    }
    run(&mut router, 1);
    let swapped = router.hotswap("fuzz", "Idle -> Discard", &registry(), END_NS);
    assert_eq!(swapped, Ok(()));
    run(&mut router, END_NS);
    devices
        .iter()
        .for_each(|device| device.borrow_mut().output.clear());
    assert_eq!(router.packets_in_use(), 0, "{}", all[index]);
}
