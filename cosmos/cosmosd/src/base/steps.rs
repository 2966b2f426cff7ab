// SPDX-License-Identifier: Apache-2.0
//! How long the steps of a creation took.

use std::time::Instant;

use cosmos_proto::answer::StepsMs;

/// A watch that is read at the end of each step.
pub struct Steps {
    begun: Instant,
    last: Instant,
    done: Vec<(&'static str, f64)>,
}

impl Steps {
    pub fn begin() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            last: now,
            done: Vec::new(),
        }
    }

    /// Ends a step; one of the same name continues.
    pub fn end(&mut self, name: &'static str) {
        let now = Instant::now();
        let took_ms = (now - self.last).as_secs_f64() * 1000.0;
        self.last = now;
        match self.done.iter_mut().find(|(known, _)| *known == name) {
            Some((_, ms)) => *ms += took_ms,
            None => self.done.push((name, took_ms)),
        }
    }

    pub fn total_ms(&self) -> f64 {
        (self.last - self.begun).as_secs_f64() * 1000.0
    }

    /// As `create` answers: in the order of the steps, in milliseconds.
    pub fn answer(&self) -> StepsMs {
        let rounded = |ms: f64| (ms * 1000.0).round() / 1000.0;
        let steps = self.done.iter();
        steps
            .map(|(name, ms)| ((*name).to_owned(), rounded(*ms)))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_add_up_to_the_whole() {
        let mut steps = Steps::begin();
        for name in ["port", "domain", "port"] {
            steps.end(name);
        }
        let names: Vec<_> = steps.done.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["port", "domain"]);
        let sum: f64 = steps.done.iter().map(|(_, ms)| ms).sum();
        assert!((sum - steps.total_ms()).abs() < 1e-6);
        assert_eq!(steps.answer()[1].0, "domain");
    }
}
