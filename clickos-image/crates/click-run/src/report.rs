// SPDX-License-Identifier: Apache-2.0
//! Errors of a configuration on standard error, in Click's form: `FILE:LINE: MESSAGE`. For an
//! element a heading stands above its messages. The column follows the line unless the place is the
//! first thing on it.
use click_core::{ConfigError, Phase};

/// All errors as text, a line end behind each line but the last.
pub fn report(errors: &[ConfigError]) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut heading = String::new();
    for error in errors {
        match heading_of(error) {
            Some(own) => {
                if own != heading {
                    lines.push(own.clone());
                }
                heading = own;
                lines.extend(error.message.lines().map(|line| format!("  {line}")));
            }
            None => {
                heading.clear();
                lines.push(plain(error));
            }
        }
    }
    if errors.iter().any(|e| e.subject.is_some()) {
        lines.push("Router could not be initialized!".to_string());
    }
    lines.join("\n")
}

/// A message that is no error: an element's under its heading, else a warning of the language.
pub fn report_notice(notice: &ConfigError) -> String {
    let Some(heading) = heading_of(notice) else {
        return plain(notice);
    };
    let lines: Vec<String> = notice.message.lines().map(|l| format!("  {l}")).collect();
    format!("{heading}\n{}", lines.join("\n"))
}

/// All errors in full, for programs: `FILE:LINE:COLUMN: ELEMENT: MESSAGE`.
pub fn listed(errors: &[ConfigError]) -> String {
    let lines: Vec<String> = errors.iter().map(ToString::to_string).collect();
    lines.join("\n")
}

/// The line above what an element has to say.
fn heading_of(error: &ConfigError) -> Option<String> {
    let subject = error.subject.as_ref()?;
    let what = match subject.phase {
        Phase::Connecting => return None,
        Phase::Configuring => "configuring",
        Phase::Initializing => "initializing",
    };
    let element = &subject.element;
    Some(format!("{}While {what} '{element}':", place(error, true)))
}

fn plain(error: &ConfigError) -> String {
    // a port is found by the element that the message names
    let line = format!("{}{}", place(error, error.subject.is_none()), error.message);
    match &error.note {
        Some(note) => format!("{line}\n{}", plain(note)),
        None => line,
    }
}

fn place(error: &ConfigError, with_column: bool) -> String {
    let at = &error.place;
    if with_column && !at.first {
        format!("{}:{}:{}: ", at.file, at.line, at.column)
    } else {
        format!("{}:{}: ", at.file, at.line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use click_core::{Located, Subject};

    fn error(line: u32, column: u32, phase: Option<Phase>, message: &str) -> ConfigError {
        ConfigError {
            place: Located {
                file: "f".to_string(),
                line,
                column,
                first: column == 1,
            },
            subject: phase.map(|phase| Subject {
                phase,
                element: "c :: C".to_string(),
            }),
            message: message.to_string(),
            note: None,
        }
    }

    #[test]
    fn the_column_follows_unless_it_says_nothing() {
        let mut second = error(2, 7, None, "b");
        second.note = Some(Box::new(error(1, 1, None, "here")));
        let list = [error(1, 1, None, "a"), second];
        assert_eq!(report(&list), "f:1: a\nf:2:7: b\nf:1: here");
    }

    #[test]
    fn messages_of_one_element_have_one_heading() {
        let configuring = Some(Phase::Configuring);
        let list = [
            error(3, 4, configuring, "N: wrong"),
            error(3, 4, configuring, "M: two\nlines"),
            error(5, 4, Some(Phase::Connecting), "'c :: C' input 0 unused"),
        ];
        assert_eq!(
            report(&list),
            "f:3:4: While configuring 'c :: C':\n  N: wrong\n  M: two\n  lines\n\
             f:5: 'c :: C' input 0 unused\nRouter could not be initialized!"
        );
    }
}
