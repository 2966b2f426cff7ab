// SPDX-License-Identifier: Apache-2.0
//! Boxes and curves.
use std::fmt::Write;

use click_lang::{Flat, FlatElement};

use super::layers::Layers;

/// Pixels: a letter's width, a box's height, and what is between boxes.
const LETTER: usize = 7;
const HEIGHT: usize = 44;
const GAP_X: usize = 28;
const GAP_Y: usize = 56;
const MARGIN: usize = 20;
/// Letters of a line in a box.
const MAX_LETTERS: usize = 28;

/// A box's place: left, top, width.
#[derive(Clone, Copy, Default)]
struct Place {
    x: usize,
    y: usize,
    width: usize,
}

/// Ports of an element: inputs and outputs.
type Ports = (usize, usize);

/// The picture of elements in layers.
pub fn picture(flat: &Flat, layers: &Layers) -> String {
    let ports = ports(flat);
    let widths: Vec<usize> = flat
        .elements
        .iter()
        .zip(&ports)
        .map(|(e, p)| width(e, *p))
        .collect();
    let (places, size) = places(layers, &widths);
    let mut out = head(size);
    for c in &flat.connections {
        let from = port(places[c.from.0], c.from.1, ports[c.from.0].1);
        let to = port(places[c.to.0], c.to.1, ports[c.to.0].0);
        curve(
            &mut out,
            (from, places[c.from.0].y + HEIGHT),
            (to, places[c.to.0].y),
        );
    }
    for ((element, place), ports) in flat.elements.iter().zip(&places).zip(&ports) {
        draw(&mut out, element, *place, *ports);
    }
    out.push_str("</svg>\n");
    out
}

fn head((width, height): (usize, usize)) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"7\" refY=\"4\" markerWidth=\"7\" \
         markerHeight=\"7\" orient=\"auto\"><path d=\"M0 0 L8 4 L0 8 z\" fill=\"#555\"/></marker></defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    )
}

fn ports(flat: &Flat) -> Vec<Ports> {
    let mut ports = vec![(0, 0); flat.elements.len()];
    for c in &flat.connections {
        ports[c.from.0].1 = ports[c.from.0].1.max(c.from.1 + 1);
        ports[c.to.0].0 = ports[c.to.0].0.max(c.to.1 + 1);
    }
    ports
}

/// Name, and class with the beginning of the configuration string.
fn labels(element: &FlatElement) -> (String, String) {
    let config: String = element
        .config
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ");
    let class = if config.is_empty() {
        element.class.to_string()
    } else {
        format!("{}({config})", element.class)
    };
    (shortened(&element.name), shortened(&class))
}

fn shortened(text: &str) -> String {
    if text.chars().count() <= MAX_LETTERS {
        return text.to_string();
    }
    let kept: String = text.chars().take(MAX_LETTERS - 1).collect();
    kept + "…"
}

fn width(element: &FlatElement, ports: Ports) -> usize {
    let (name, class) = labels(element);
    let letters = name.chars().count().max(class.chars().count());
    (letters * LETTER + 16).max(ports.0.max(ports.1) * 14 + 10)
}

/// Where boxes are, each layer in the middle, and the picture's size.
fn places(layers: &Layers, widths: &[usize]) -> (Vec<Place>, (usize, usize)) {
    let row = |layer: &Vec<usize>| {
        let boxes: usize = layer.iter().map(|e| widths[*e]).sum();
        boxes + GAP_X * layer.len().saturating_sub(1)
    };
    let whole = layers.iter().map(row).max().unwrap_or(0);
    let mut places = vec![Place::default(); widths.len()];
    for (number, layer) in layers.iter().enumerate() {
        let mut x = MARGIN + (whole - row(layer)) / 2;
        for element in layer {
            let (y, width) = (MARGIN + number * (HEIGHT + GAP_Y), widths[*element]);
            places[*element] = Place { x, y, width };
            x += width + GAP_X;
        }
    }
    let height = (layers.len() * (HEIGHT + GAP_Y)).saturating_sub(GAP_Y);
    (places, (whole + 2 * MARGIN, height + 2 * MARGIN))
}

/// Where a port is on its edge.
fn port(place: Place, number: usize, count: usize) -> usize {
    place.x + place.width * (2 * number + 1) / (2 * count.max(1))
}

fn curve(out: &mut String, from: (usize, usize), to: (usize, usize)) {
    let bend = GAP_Y / 2 + from.1.abs_diff(to.1) / 8;
    let _ = writeln!(
        out,
        "<path d=\"M{} {} C{} {} {} {} {} {}\" fill=\"none\" stroke=\"#555\" marker-end=\"url(#arrow)\"/>",
        from.0,
        from.1,
        from.0,
        from.1 + bend,
        to.0,
        i128::try_from(to.1).unwrap_or(0) - i128::try_from(bend).unwrap_or(0),
        to.0,
        to.1,
    );
}

fn draw(out: &mut String, element: &FlatElement, place: Place, ports: Ports) {
    let Place { x, y, width } = place;
    let (name, class) = labels(element);
    let whole = format!(
        "{} :: {}({})",
        element.name,
        element.class,
        element.config.trim()
    );
    let middle = x + width / 2;
    let _ = writeln!(
        out,
        "<g><title>{}</title><rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{HEIGHT}\" rx=\"4\" \
         fill=\"#eef4fb\" stroke=\"#336\"/>",
        escaped(&whole)
    );
    for (text, at, style) in [(name, 18, " font-weight=\"bold\""), (class, 34, "")] {
        let (text, at) = (escaped(&text), y + at);
        let _ = writeln!(
            out,
            "<text x=\"{middle}\" y=\"{at}\" text-anchor=\"middle\"{style}>{text}</text>"
        );
    }
    for (count, edge) in [(ports.0, y), (ports.1, y + HEIGHT - 4)] {
        for number in 0..count {
            let left = port(place, number, count).saturating_sub(3);
            let _ = writeln!(
                out,
                "<rect x=\"{left}\" y=\"{edge}\" width=\"6\" height=\"4\" fill=\"#336\"/>"
            );
        }
    }
    out.push_str("</g>\n");
}

fn escaped(text: &str) -> String {
    let mut out = String::new();
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_leave_its_place() {
        assert_eq!(escaped("a<b>&\"\n"), "a&lt;b&gt;&amp;&quot; ");
        assert_eq!(shortened(&"x".repeat(40)).chars().count(), MAX_LETTERS);
    }

    #[test]
    fn boxes_of_a_layer_do_not_touch() {
        let (places, size) = places(&vec![vec![0, 1], vec![2]], &[50, 70, 20]);
        assert!(places[0].x + 50 < places[1].x && places[2].y > places[0].y + HEIGHT);
        assert!(places[1].x + 70 <= size.0 && places[2].y + HEIGHT <= size.1);
    }
}
