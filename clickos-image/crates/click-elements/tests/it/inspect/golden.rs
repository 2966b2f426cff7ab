// SPDX-License-Identifier: Apache-2.0
//! Rules that the command line judges as well: both take the same ones, for reasons with the same words.
use std::path::Path;

use super::bed::{Bed, inspector};

fn golden(name: &str) -> String {
    let folder = "../../../tacker-plugin/tests/rules";
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join(folder)
        .join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn the_rules_that_the_command_line_takes_are_taken() {
    let mut bed = Bed::new(&inspector(""));
    let variables = "var HOME_NET [10.0.0.0/8]\nportvar PORTS [80,8080]\n";
    bed.write(
        "ips.rules",
        &(variables.to_string() + &golden("taken.rules")),
    );
    assert_eq!(bed.count("ips.rule_count"), 11);
}

#[test]
fn the_rules_that_it_refuses_are_refused_with_the_same_words() {
    let mut bed = Bed::new(&inspector(""));
    let text = golden("refused.rules");
    let mut lines = text.lines().skip(2);
    let mut count = 0;
    while let (Some(reason), Some(rule)) = (lines.next(), lines.next()) {
        let result = bed
            .router
            .write_handlers(&[("ips.rules", rule.as_bytes())], 1);
        let error = result.expect_err(rule).to_string();
        assert!(
            error.contains(reason.trim_start_matches("# ")),
            "{rule}: {error}"
        );
        assert!(error.contains("line 1: "), "{error}");
        count += 1;
    }
    assert!(count >= 37, "{count}");
}
