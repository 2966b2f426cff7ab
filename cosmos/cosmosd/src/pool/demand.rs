// SPDX-License-Identifier: Apache-2.0
//! The shapes of guests that were created lately: the next one is likely to be like them.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use crate::guest::Shape;

/// Shapes for which guests are kept.
const SHAPES: usize = 4;
/// Most guests that are kept of a shape.
const MAX: usize = 4;
/// A shape is kept for as many guests as were created within this time.
const RECENT: Duration = Duration::from_secs(60);
/// After this time without a creation none is kept.
const LINGER: Duration = Duration::from_secs(600);

/// The shapes that were created lately, the latest first.
#[derive(Default)]
pub struct Demand(VecDeque<Wanted>);

struct Wanted {
    shape: Shape,
    /// When its last guests were created, the latest first.
    created: VecDeque<Instant>,
}

impl Demand {
    pub fn note(&mut self, shape: Shape, now: Instant) {
        let known = self.0.iter().position(|wanted| wanted.shape == shape);
        let known = known.and_then(|index| self.0.remove(index));
        let mut wanted = known.unwrap_or_else(|| Wanted {
            shape,
            created: VecDeque::new(),
        });
        wanted.created.push_front(now);
        wanted.created.truncate(MAX);
        self.0.push_front(wanted);
        self.0.truncate(SHAPES);
    }

    /// How many guests of each shape are to be kept, of `most_mib` MiB together; the latest shapes first.
    pub fn wanted(&mut self, most_mib: u32, now: Instant) -> Vec<(Shape, usize)> {
        let age = |at: &Instant| now.saturating_duration_since(*at);
        self.0
            .retain(|wanted| wanted.created.front().is_some_and(|at| age(at) < LINGER));
        let mut left_mib = most_mib;
        let kept = self.0.iter().map(|wanted| {
            let lately = wanted.created.iter().filter(|at| age(at) < RECENT);
            let each_mib = wanted.shape.memory_mib.max(1);
            let room = left_mib / each_mib;
            let guests = (lately.count().max(1) as u32).min(room);
            left_mib -= guests * each_mib;
            (wanted.shape.clone(), guests as usize)
        });
        kept.filter(|(_, guests)| *guests > 0).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::preconnected::Preconnected;

    fn shape(memory_mib: u32) -> Shape {
        Shape {
            image_sha256: "a".into(),
            memory_mib,
            preconnected: Preconnected::default(),
        }
    }

    fn seen(demand: &mut Demand, most_mib: u32, now: Instant) -> Vec<(u32, usize)> {
        let wanted = demand.wanted(most_mib, now).into_iter();
        wanted
            .map(|(shape, guests)| (shape.memory_mib, guests))
            .collect()
    }

    #[test]
    fn the_latest_shapes_are_kept_for_a_while() {
        let (mut demand, start) = (Demand::default(), Instant::now());
        assert_eq!(seen(&mut demand, 100, start), []);
        for memory_mib in [8, 9, 10, 11, 12, 8] {
            demand.note(shape(memory_mib), start);
        }
        let all = [(8, 1), (12, 1), (11, 1), (10, 1)];
        assert_eq!(seen(&mut demand, 100, start), all);
        let later = start + LINGER - Duration::from_secs(1);
        demand.note(shape(9), later);
        let end = start + LINGER;
        assert_eq!(seen(&mut demand, 100, end), [(9, 1)]);
        assert_eq!(seen(&mut demand, 100, later + LINGER), []);
    }

    #[test]
    fn many_creations_keep_several_guests() {
        let (mut demand, start) = (Demand::default(), Instant::now());
        for _ in 0..9 {
            demand.note(shape(8), start);
        }
        assert_eq!(seen(&mut demand, 100, start), [(8, MAX)]);
        assert_eq!(seen(&mut demand, 100, start + RECENT), [(8, 1)]);
    }

    #[test]
    fn guests_fit_into_the_memory() {
        let (mut demand, start) = (Demand::default(), Instant::now());
        for memory_mib in [8, 8, 0, 64, u32::MAX] {
            demand.note(shape(memory_mib), start);
        }
        assert_eq!(seen(&mut demand, 71, start), [(64, 1), (0, 1)]);
        assert_eq!(seen(&mut demand, 0, start), []);
    }
}
