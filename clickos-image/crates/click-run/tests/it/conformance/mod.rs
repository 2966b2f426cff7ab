// SPDX-License-Identifier: Apache-2.0
//! Runs the conformance corpus with batches of 1 and of 32 packets, and checks that it covers the registry.
mod coverage;
mod folder;

use std::path::{Path, PathBuf};
use std::rc::Rc;

use click_conformance::{Case, CaseHost, run};
use folder::Folder;

/// The corpus.
fn corpus() -> Vec<Case> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut files = Vec::new();
    for group in std::fs::read_dir(&root)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.is_dir())
    {
        files.extend(std::fs::read_dir(group).unwrap().map(|e| e.unwrap().path()));
    }
    files.retain(|p| p.extension().is_some_and(|e| e == "clicktest"));
    files.sort();
    assert!(!files.is_empty(), "no cases under {}", root.display());
    files.iter().map(|file| load(file)).collect()
}

fn load(file: &Path) -> Case {
    let group = file.parent().and_then(Path::file_name).unwrap();
    let stem = file.file_stem().unwrap();
    let name = format!("{}/{}", group.to_string_lossy(), stem.to_string_lossy());
    Case::parse(&name, &std::fs::read_to_string(file).unwrap())
}

#[test]
fn every_case_passes_with_every_batch_size() {
    let mut failures = Vec::new();
    let cases = corpus();
    for case in &cases {
        for batch in [1, 32] {
            let place: Rc<dyn CaseHost> = Rc::new(Folder::new());
            if let Err(message) = run(case, &click_elements_os::registry(), batch, &place) {
                failures.push(format!("{} (batch {batch}): {message}", case.name));
            }
        }
    }
    assert!(
        failures.is_empty(),
        "{} failures\n{}",
        failures.len(),
        failures.join("\n")
    );
    println!("{} cases", cases.len());
}

#[test]
fn the_corpus_covers_the_registry() {
    let gaps = coverage::gaps(click_elements_os::entries(), &corpus());
    assert!(gaps.is_empty(), "{} gaps\n{}", gaps.len(), gaps.join("\n"));
}
