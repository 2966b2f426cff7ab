// SPDX-License-Identifier: Apache-2.0
//! The page on adding an element names only files that exist.
use std::fs::read_to_string;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../..")
}

fn page() -> String {
    read_to_string(root().join("docs/contributor/add-an-element.md")).unwrap()
}

/// A path between backquotes.
fn quoted(text: &str) -> impl Iterator<Item = &str> {
    let inside = text.split('`').skip(1).step_by(2);
    inside.filter(|word| word.ends_with(".rs") || word.ends_with(".clicktest"))
}

#[test]
fn files_that_are_named_are_there() {
    let elements = root().join("clickos-image/crates/click-elements/src");
    let wire = root().join("clickos-image/crates/click-wire/src");
    let page = page();
    let named: Vec<&str> = quoted(&page).filter(|path| !path.contains('<')).collect();
    assert!(named.len() > 10, "{named:?}");
    for path in named {
        let places = [root(), elements.clone(), wire.clone()];
        assert!(places.iter().any(|at| at.join(path).is_file()), "{path}");
    }
}
