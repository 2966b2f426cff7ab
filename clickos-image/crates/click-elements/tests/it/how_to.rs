// SPDX-License-Identifier: Apache-2.0
//! The page on adding an element shows files as they are, and tells of nothing that is not there.
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
fn files_are_shown_as_they_are() {
    let page = page();
    let mut shown = 0;
    for (before, rest) in page
        .match_indices(":\n```")
        .map(|(at, _)| page.split_at(at))
    {
        let line = before.lines().next_back().unwrap();
        let path = line.strip_prefix('`').unwrap().strip_suffix('`').unwrap();
        let (_, block) = rest[2..].split_once('\n').unwrap();
        let (block, _) = block.split_once("```\n").unwrap();
        assert_eq!(block, read_to_string(root().join(path)).unwrap(), "{path}");
        shown += 1;
    }
    assert_eq!(shown, 3);
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
