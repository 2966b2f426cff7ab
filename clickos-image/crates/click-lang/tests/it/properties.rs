// SPDX-License-Identifier: Apache-2.0
//! Random configurations: unparsing gives the same configuration again.
use click_lang::{Classes, Errors, Limits, Scope, Sources, flatten, parse};
use proptest::prelude::*;

struct Anything;

impl Classes for Anything {
    fn knows(&self, name: &str) -> bool {
        ["A", "B", "C2"].contains(&name)
    }
    fn unavailable(&self, _name: &str) -> Option<&str> {
        None
    }
    fn names(&self) -> Vec<&str> {
        Vec::new()
    }
}

/// The text of the tree, the flat configuration and the errors without their places.
fn through(text: &str) -> (String, String, Vec<String>) {
    let (limits, mut errors) = (Limits::default(), Errors::default());
    let sources = Sources::new("t", text.to_string());
    let flat = flatten(&sources, &Anything, &Scope::default(), &limits, &mut errors);
    let tree = parse(&sources, &limits, &mut Errors::default());
    let unparsed = tree.iter().map(|s| format!("{s}\n")).collect();
    (
        unparsed,
        flat.to_string(),
        errors
            .into_sorted(&sources)
            .into_iter()
            .map(|e| e.message)
            .collect(),
    )
}

fn name() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["a", "b", "c1", "d_d", "e/f"]).prop_map(str::to_string)
}

fn class() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["A", "B", "C2"]).prop_map(str::to_string)
}

fn config() -> impl Strategy<Value = String> {
    let texts = vec![
        "",
        "()",
        "(1, 2)",
        "($x)",
        "(\"a)b\", 'c')",
        "(KEY ${y-3} /* c */)",
        "(\\<00 ff>)",
        "((a)(b))",
    ];
    prop::sample::select(texts).prop_map(str::to_string)
}

fn ports() -> impl Strategy<Value = String> {
    prop::sample::select(vec!["", "", "", "[0]", "[1]", "[0,1]", "[]", "[0,]"])
        .prop_map(str::to_string)
}

fn arrow() -> impl Strategy<Value = String> {
    prop_oneof![4 => Just(" -> "), 1 => Just(" => ")].prop_map(str::to_string)
}

fn statements() -> impl Strategy<Value = String> {
    let plain = prop_oneof![
        (name(), class(), config()).prop_map(|(n, c, o)| format!("{n} :: {c}{o}")),
        (class(), config()).prop_map(|(c, o)| format!("{c}{o}")),
        name(),
        Just("input".to_string()),
        Just("output".to_string()),
    ];
    let leaf = prop_oneof![
        plain.clone().prop_map(|t| format!("{t};\n")),
        Just("define($x 7, $y \"q\");\n".to_string()),
        Just("require(package p); provide(r);\n".to_string()),
    ];
    leaf.prop_recursive(4, 40, 4, move |inner| {
        let block = || prop::collection::vec(inner.clone(), 0..4).prop_map(|s| s.concat());
        let term = prop_oneof![
            4 => plain.clone(),
            1 => (block(), config()).prop_map(|(b, o)| format!("{{ {b} }}{o}")),
            1 => (block(), block()).prop_map(|(a, b)| format!("{{ $x, K $y | {a} || {b} }}")),
            1 => block().prop_map(|b| format!("({b})")),
            1 => (name(), block()).prop_map(|(n, b)| format!("{n} :: {{ {b} }}")),
        ];
        let step = (ports(), term, ports()).prop_map(|(i, t, o)| format!("{i} {t} {o}"));
        let steps = prop::collection::vec((step, arrow()), 1..4);
        let chain = (steps, any::<bool>(), any::<bool>()).prop_map(|(steps, begin, end)| {
            let mut text = if begin { " -> ".to_string() } else { String::new() };
            let last = steps.len() - 1;
            for (index, (step, arrow)) in steps.into_iter().enumerate() {
                text += &step;
                if index < last || end {
                    text += &arrow;
                }
            }
            text + ";\n"
        });
        prop_oneof![
            3 => chain,
            1 => (class(), block()).prop_map(|(c, b)| format!("elementclass {c} {{ $a | {b} }}\n")),
            1 => (class(), block()).prop_map(|(c, b)| format!("elementclass {c} {{ {b} || ... }}\n")),
            1 => (class(), class()).prop_map(|(a, b)| format!("elementclass {a} {b};\n")),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn unparsing_and_parsing_again_changes_nothing(text in prop::collection::vec(statements(), 0..5)) {
        let text = text.concat();
        let (unparsed, flat, errors) = through(&text);
        let (limits, mut syntax) = (Limits::default(), Errors::default());
        parse(&Sources::new("t", text.clone()), &limits, &mut syntax);
        if syntax.is_empty() {
            let (unparsed_again, flat_again, errors_again) = through(&unparsed);
            prop_assert_eq!(&unparsed_again, &unparsed, "{}", text);
            prop_assert_eq!(flat_again, flat, "{}", text);
            let plain = |mut list: Vec<String>| {
                list.sort();
                list.dedup();
                list
            };
            prop_assert_eq!(plain(errors_again), plain(errors), "{}", text);
        }
    }

    #[test]
    fn a_flat_configuration_is_its_own_flattening(text in prop::collection::vec(statements(), 0..5)) {
        let (_, flat, errors) = through(&text.concat());
        if errors.is_empty() {
            let (_, again, errors) = through(&flat);
            prop_assert_eq!(errors, Vec::<String>::new(), "{}", flat);
            prop_assert_eq!(again, flat);
        }
    }

    #[test]
    fn any_text_is_parsed_or_refused(text in "\\PC{0,300}") {
        through(&text);
    }
}
