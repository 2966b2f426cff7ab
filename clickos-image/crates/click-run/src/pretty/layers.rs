// SPDX-License-Identifier: Apache-2.0
//! A layered layout. Every element lies below those that lead to it, and a circle is cut at its
//! first element. The order within a layer crosses few connections.

/// Each layer's elements from left to right.
pub type Layers = Vec<Vec<usize>>;

/// Sweeps over the layers, downwards and upwards.
const SWEEPS: usize = 8;

/// Puts `count` elements with these links in layers.
pub fn arrange(count: usize, links: &[(usize, usize)]) -> Layers {
    let links = without_circles(count, links);
    let depth = depths(count, &links);
    let height = depth.iter().max().map_or(0, |d| d + 1);
    let mut layers: Layers = vec![Vec::new(); height];
    for element in 0..count {
        layers[depth[element]].push(element);
    }
    for sweep in 0..SWEEPS {
        reorder(&mut layers, &links, count, sweep % 2 == 0);
    }
    layers
}

fn successors(count: usize, links: &[(usize, usize)]) -> Vec<Vec<usize>> {
    let mut next = vec![Vec::new(); count];
    links.iter().for_each(|(from, to)| next[*from].push(*to));
    next
}

/// The links without those that lead back to where the search came from.
fn without_circles(count: usize, links: &[(usize, usize)]) -> Vec<(usize, usize)> {
    #[derive(Clone, Copy, PartialEq, Eq)]
    enum Mark {
        New,
        Open,
        Done,
    }
    let next = successors(count, links);
    let mut marks = vec![Mark::New; count];
    let mut kept = Vec::new();
    let fed: Vec<bool> = (0..count)
        .map(|e| links.iter().any(|(_, to)| *to == e))
        .collect();
    // sources first, so that circles are cut where packets come back
    let starts = (0..count).filter(|e| !fed[*e]).chain(0..count);
    for start in starts {
        let mut path = vec![(start, 0)];
        while let Some((element, at)) = path.pop() {
            if at == 0 && marks[element] != Mark::New {
                continue;
            }
            marks[element] = Mark::Open;
            let Some(to) = next[element].get(at) else {
                marks[element] = Mark::Done;
                continue;
            };
            path.push((element, at + 1));
            if marks[*to] != Mark::Open {
                kept.push((element, *to));
            }
            if marks[*to] == Mark::New {
                path.push((*to, 0));
            }
        }
    }
    kept
}

/// How many links lead to each element at most; the links have no circle.
fn depths(count: usize, links: &[(usize, usize)]) -> Vec<usize> {
    let next = successors(count, links);
    let mut waiting = vec![0; count];
    links.iter().for_each(|(_, to)| waiting[*to] += 1);
    let mut ready: Vec<usize> = (0..count).filter(|e| waiting[*e] == 0).collect();
    let mut depth = vec![0; count];
    while let Some(element) = ready.pop() {
        for to in &next[element] {
            depth[*to] = depth[*to].max(depth[element] + 1);
            waiting[*to] -= 1;
            if waiting[*to] == 0 {
                ready.push(*to);
            }
        }
    }
    depth
}

/// Sorts each layer by the middle of its neighbors in the layers it was swept from.
fn reorder(layers: &mut Layers, links: &[(usize, usize)], count: usize, down: bool) {
    let mut place = vec![0.0; count];
    let order: Vec<usize> = if down {
        (0..layers.len()).collect()
    } else {
        (0..layers.len()).rev().collect()
    };
    let turned: Vec<(usize, usize)> = links.iter().map(|(a, b)| (*b, *a)).collect();
    let before = successors(count, if down { &turned } else { links });
    for layer in order {
        let middle = |element: usize, place: &[f64]| {
            let around = &before[element];
            let sum: f64 = around.iter().map(|e| place[*e]).sum();
            sum / around.len().max(1) as f64
        };
        let mut sorted: Vec<(f64, usize)> = layers[layer]
            .iter()
            .map(|e| (middle(*e, &place), *e))
            .collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let width = sorted.len() as f64;
        layers[layer] = sorted.into_iter().map(|(_, e)| e).collect();
        for (index, element) in layers[layer].iter().enumerate() {
            place[*element] = (index as f64 + 0.5) / width;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_flow_down() {
        let links = [(0, 1), (1, 2), (0, 2), (2, 3)];
        assert_eq!(arrange(4, &links), [vec![0], vec![1], vec![2], vec![3]]);
    }

    #[test]
    fn circles_are_cut_where_packets_come_back() {
        let layers = arrange(4, &[(0, 1), (1, 2), (2, 1), (2, 3), (3, 3)]);
        assert_eq!(layers, [vec![0], vec![1], vec![2], vec![3]]);
        assert_eq!(arrange(2, &[(0, 1), (1, 0)]), [vec![0], vec![1]]);
        assert_eq!(arrange(0, &[]), Layers::new());
    }

    #[test]
    fn neighbors_are_near_each_other() {
        let layers = arrange(6, &[(0, 4), (1, 3), (2, 5)]);
        assert_eq!(layers, [vec![0, 1, 2], vec![4, 3, 5]]);
    }
}
