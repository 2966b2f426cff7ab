// SPDX-License-Identifier: Apache-2.0
//! A case file in memory.
use alloc::string::{String, ToString};
use alloc::vec::Vec;

/// A case.
pub struct Case {
    /// `group/Class-NN`.
    pub name: String,
    /// The configuration.
    pub config: String,
    /// The action.
    pub steps: Vec<Step>,
}

/// A section after `%config`.
pub struct Step {
    /// Its name and arguments.
    pub words: Vec<String>,
    /// Its lines, without empty ones at the end.
    pub lines: Vec<String>,
    /// The line in the file.
    pub line: usize,
}

impl Step {
    /// Its text.
    pub fn text(&self) -> String {
        self.lines.join("\n")
    }

    /// An argument.
    pub fn arg(&self, index: usize) -> &str {
        self.words.get(index).map_or("", String::as_str)
    }
}

impl Case {
    /// Reads a case; `name` is its group and the file's name without the ending. A malformed case
    /// is a panic, because it is a mistake of the corpus.
    pub fn parse(name: &str, text: &str) -> Self {
        let name = name.to_string();
        let mut steps: Vec<Step> = Vec::new();
        for (index, line) in text.lines().enumerate() {
            if let Some(header) = line.strip_prefix('%') {
                let words = header.split_whitespace().map(str::to_string).collect();
                steps.push(Step {
                    words,
                    lines: Vec::new(),
                    line: index + 1,
                });
            } else if let (Some(step), false) = (steps.last_mut(), line.starts_with('#')) {
                step.lines.push(line.to_string());
            }
        }
        for step in &mut steps {
            while step.lines.last().is_some_and(|l| l.trim().is_empty()) {
                step.lines.pop();
            }
        }
        assert!(
            !steps.is_empty() && steps[0].arg(0) == "config",
            "{name}: the first section must be %config"
        );
        let config = steps.remove(0).text();
        Self {
            name,
            config,
            steps,
        }
    }
}
