// SPDX-License-Identifier: Apache-2.0
//! Draws a configuration. Packets flow downwards; an element is a box with its ports on the edges,
//! and a connection is a curve. The same configuration gives the same picture.
mod draw;
mod layers;

use click_lang::Flat;

/// Elements a picture can have: more is not readable.
const MAX_ELEMENTS: usize = 2000;

/// The picture as SVG.
///
/// # Errors
/// There are too many elements.
pub fn svg(flat: &Flat) -> Result<String, String> {
    let count = flat.elements.len();
    if count > MAX_ELEMENTS {
        return Err(format!(
            "{count} elements are too many for a picture, the limit is {MAX_ELEMENTS}"
        ));
    }
    let links: Vec<(usize, usize)> = flat
        .connections
        .iter()
        .map(|c| (c.from.0, c.to.0))
        .collect();
    Ok(draw::picture(flat, &layers::arrange(count, &links)))
}
