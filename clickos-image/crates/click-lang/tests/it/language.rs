// SPDX-License-Identifier: Apache-2.0
//! The language as a user sees it: configurations in, flat configurations or errors out.
use click_lang::{Classes, Errors, Flat, Limits, Memory, Scope, Sources, flatten};
use std::cell::Cell;

struct Known;

const NAMES: [&str; 7] = [
    "Source", "Counter", "Discard", "Queue", "Tee", "IPFilter", "Null",
];

impl Classes for Known {
    fn knows(&self, name: &str) -> bool {
        NAMES.contains(&name)
    }
    fn unavailable(&self, name: &str) -> Option<&str> {
        (name == "ToDump").then_some("not here")
    }
    fn names(&self) -> Vec<&str> {
        NAMES.to_vec()
    }
}

fn run(text: &str, limits: &Limits) -> (Flat, Vec<String>) {
    run_with(Sources::new("t.click", text.to_string()), limits)
}

fn run_with(sources: Sources, limits: &Limits) -> (Flat, Vec<String>) {
    let mut errors = Errors::default();
    let globals = Scope::global(&[("G".into(), "global".into())]);
    let flat = flatten(&sources, &Known, &globals, limits, &mut errors);
    let errors = errors.into_sorted(&sources);
    (flat, errors.iter().map(ToString::to_string).collect())
}

fn flat(text: &str) -> String {
    let (flat, errors) = run(text, &Limits::default());
    assert!(errors.is_empty(), "{errors:#?}");
    flat.to_string()
        .replace("\n    ->", " ->")
        .replace("\n\n", "\n")
}

fn errors(text: &str) -> Vec<String> {
    run(text, &Limits::default()).1
}

#[test]
fn declarations_and_chains() {
    assert_eq!(
        flat("s :: Source(1, 2); s -> c :: Counter -> Discard; // end"),
        "s :: Source(1, 2);\nc :: Counter;\nDiscard@3 :: Discard;\ns -> c -> Discard@3;\n"
    );
    assert_eq!(
        flat("a, b :: Queue(5); a->b"),
        "a :: Queue(5);\nb :: Queue(5);\na -> b;\n"
    );
}

#[test]
fn ports() {
    let want = "t :: Tee;\na :: Null;\nb :: Null;\nt -> a;\nt [1] -> b;\n";
    let declared = "t :: Tee; a, b :: Null; ";
    for connection in [
        "t[0]->a; t[1]->b",
        "t => a, b",
        "t[0,1] => a, b",
        "t[] => a, b",
        "t[0-1] => a, b",
    ] {
        assert_eq!(
            flat(&format!("{declared}{connection}")),
            want,
            "{connection}"
        );
    }
    assert_eq!(
        flat("t :: Tee; a :: Null; t => [0,1] a"),
        "t :: Tee;\na :: Null;\nt -> a;\nt [1] -> [1] a;\n"
    );
}

#[test]
fn compounds() {
    let text = "elementclass C { $n, LIMIT $l | input -> q :: Queue($n, $l) -> [0] output; input [1] -> Discard }
        Source -> c :: C(7, LIMIT 9) -> Discard; Source -> [1] c";
    let got = flat(text);
    assert!(got.contains("c/q :: Queue(7, 9);"), "{got}");
    assert!(got.contains("Source@1 -> c/q -> Discard@3;"), "{got}");
    assert!(got.contains("Source@4 -> c/Discard@2;"), "{got}");
}

#[test]
fn overloads_and_extension() {
    let text = "elementclass Q { $a | input -> Queue($a) -> output || input -> Queue(9) -> output }
        elementclass Null { $x | input -> Counter($x) -> output || ... }
        Source -> Q(1) -> Q -> Null(5) -> Null -> Discard";
    let got = flat(text);
    for part in [
        "Q@2/Queue@1 :: Queue(1);",
        "Q@3/Queue@1 :: Queue(9);",
        "Null@4/Counter@1 :: Counter(5);",
        "Null@5 :: Null;",
    ] {
        assert!(got.contains(part), "{part} in {got}");
    }
}

#[test]
fn scopes_and_rest() {
    let text = "define($x 1); elementclass A { $y, __REST__ $r | define($z $x$y);
          -> Queue($x, $y, $z, $r) -> } Source -> A(2, 3, k 4) -> Null($G ${x-7} ${none-8}) -> Discard";
    let got = flat(text);
    assert!(got.contains("Queue(1, 2, 12, 3, k 4)"), "{got}");
    assert!(got.contains("Null(global 1 8)"), "{got}");
}

#[test]
fn inline_compounds_and_groups() {
    let got = flat(
        "Source -> { -> Counter -> } -> (Null, Queue; ) -> Discard"
            .replace("(Null, Queue; )", "( -> Null -> )")
            .as_str(),
    );
    assert!(got.contains("@2/Counter@1 -> Null@"), "{got}");
    let got = flat("t :: Tee => ( [0] -> Null -> d :: Discard; [1] -> Queue -> d )");
    assert!(
        got.contains("t -> Null@") && got.contains("t [1] -> Queue@"),
        "{got}"
    );
}

#[test]
fn strings_comments_and_line_directives() {
    let got = flat("a :: Null(\"(,)\" /* ) */, ') //', \\<41 )>) // )\n;");
    assert!(
        got.contains("a :: Null(\"(,)\" /* ) */, ') //', \\<41 )>);"),
        "{got}"
    );
    assert_eq!(
        errors("\n# 40 \"inner.click\"\n  x -> y;")[0]
            .split(": ")
            .next(),
        Some("inner.click:40:3")
    );
    assert_eq!(
        flat("# 1 \"x\"\na :: Null(\n# 7 \"y\"\n1)"),
        "a :: Null(1);\n"
    );
}

#[test]
fn every_error_in_one_pass_with_its_place() {
    let got =
        errors("a :: Conter;\nb :: Counter; b :: Queue;\nc -> d [x];\nb -> Counter(1 -> e;\n");
    let places: Vec<&str> = got.iter().map(|e| e.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        ["t.click:1:6", "t.click:2:15", "t.click:3:9", "t.click:4:13"],
        "{got:#?}"
    );
    assert!(
        got[0].ends_with("unknown element class 'Conter' (did you mean 'Counter'?)"),
        "{}",
        got[0]
    );
    assert!(
        got[1].contains("redeclaration of element 'b'\nt.click:2:1: element 'b' previously"),
        "{}",
        got[1]
    );
}

#[test]
fn errors_of_compounds() {
    assert!(
        errors("elementclass A { input [1] -> output } Source -> A -> Discard")[0]
            .contains("'A' input 0 unused")
    );
    assert!(
        errors("elementclass A { $a | -> Null -> } Source -> A -> Discard")[0]
            .contains("nothing fits 0 arguments, 1 input, 1 output; candidates: A($a)[1 input")
    );
    assert!(
        errors("elementclass A { -> Null -> } Source -> A [2] -> Discard")[0]
            .contains("no output 2")
    );
    assert!(
        errors("{ } } -> ;")
            .iter()
            .any(|e| e.contains("syntax error near '}'"))
    );
    assert!(errors("define(x 3)")[0].contains("expected a variable"));
    assert!(errors("require(library x)")[0].contains("libraries"));
}

#[test]
fn limits_are_errors() {
    let limits = Limits {
        elements: 10,
        connections: 10,
        config_bytes: 2000,
        ports: 4,
        ..Limits::default()
    };
    let check = |text: &str, part: &str| {
        let got = run(text, &limits).1;
        assert!(got.iter().any(|e| e.contains(part)), "{part}: {got:#?}");
    };
    check(&"Null;".repeat(11), "more than 10 elements");
    check(&" ".repeat(2001), "the limit is 2000");
    check("a :: Null; a [4] -> a", "limit of 4 ports");
    check(&"{".repeat(500), "nested deeper");
    check(
        "define($a xxxxxxxxxxxxxxxxxxxx, $b $a$a$a$a$a$a$a$a, $c $b$b$b$b$b$b$b$b, $d $c$c$c$c$c$c$c$c) Null($d)",
        "exceed",
    );
    check(
        "elementclass A { Null } elementclass B { A;A;A;A } elementclass C { B;B;B;B } C",
        "more than 10 elements",
    );
}

#[test]
fn nested_instances_are_bounded() {
    let mut text = String::from("elementclass A0 { Null }\n");
    (1..200).for_each(|n| text += &format!("elementclass A{n} {{ A{} }}\n", n - 1));
    assert!(errors(&(text + "A199"))[0].contains("nested deeper than 64"));
}

#[test]
fn unavailable_classes_are_left_to_the_registry() {
    assert_eq!(
        flat("Source -> ToDump(x)"),
        "Source@1 :: Source;\nToDump@2 :: ToDump(x);\nSource@1 -> ToDump@2;\n"
    );
}

#[test]
fn one_mistake_is_one_error() {
    let got = errors("a :: Zebra(1); Zebra(2) -> Zebra -> a; x -> x -> a(3)");
    assert_eq!(got.len(), 3, "{got:#?}");
    assert!(got[2].ends_with("undeclared element 'x'"), "{got:#?}");
    assert!(got[1].ends_with("unknown class 'Zebra'"), "{got:#?}");
}

#[test]
fn names_that_cannot_be() {
    for (text, part) in [
        ("7 :: Null", "element name '7' has all-digit component"),
        ("a/7 :: Null", "all-digit component"),
        ("Null :: Counter", "class 'Null' used as element name"),
        ("a :: Null; a(3)", "configuration string ignored"),
    ] {
        assert!(errors(text)[0].contains(part), "{text}");
    }
}

#[test]
fn flat_text_is_clicks() {
    let text =
        "require(package \"a b\", compact_config); a :: Tee -> b :: Null -> c :: Null; a [1] -> c;
        x :: Null -> x";
    let want = "require(package \"a b\", compact_config);\n\na :: Tee;\nb :: Null;\nc :: Null;\nx :: Null;\n
a -> b\n    -> c;\na [1] -> c;\nx -> x;\n";
    assert_eq!(run(text, &Limits::default()).0.to_string(), want);
}

#[test]
fn comments_at_the_end_of_a_configuration_string_stay_closed() {
    for text in ["a :: Null(x // y\n);", "a :: Null(\"//\" /* // */);"] {
        let once = flat(text);
        assert_eq!(flat(&once), once, "{text}");
    }
    assert_eq!(flat("a :: Null(x // y\n);"), "a :: Null(x // y\n);\n");
}

fn library(name: &str, from: &str) -> Result<(String, String), String> {
    let text = match name {
        "lib" => "require(library inner)\nelementclass A { b :: B }",
        "inner" => "elementclass B { i :: Null } require(library lib)",
        "wrong" => "\n x -> y;",
        _ => return Err(format!("library '{name}' not found from {from}")),
    };
    Ok((format!("dir/{name}"), text.to_string()))
}

#[test]
fn libraries_are_read_once_and_errors_name_them() {
    let with = |text: &str| {
        let mut sources = Sources::new("main", text.to_string());
        sources.load_libraries(&library, &Limits::default());
        run_with(sources, &Limits::default())
    };
    let (flat, errors) = with("require(library lib, library inner)\na :: A;");
    assert_eq!(errors, Vec::<String>::new());
    assert_eq!(flat.elements[0].name, "a/b/i");
    let (_, errors) = with("require(library wrong, library none); z -> z");
    assert_eq!(
        errors,
        [
            "main:1:9: library 'none' not found from main",
            "main:1:39: undeclared element 'z'",
            "dir/wrong:2:2: undeclared element 'x'",
            "dir/wrong:2:7: undeclared element 'y'",
        ]
    );
    let (_, errors) = with("elementclass C { require(library lib) }");
    assert!(
        errors[0].contains("must be used at file scope"),
        "{errors:?}"
    );
}

#[test]
fn places_behind_directives() {
    let got =
        errors("a :: Null(\n# 100 \"f\"\n1);\nb :: Zebra; # 3\nc;\n#line 7\nd;\n# 1 \"\" 2\ne;");
    let places: Vec<&str> = got.iter().map(|e| e.split(": ").next().unwrap()).collect();
    assert_eq!(
        places,
        ["f:101:6", "f:101:13", "f:7:1", "t.click:1:1"],
        "{got:#?}"
    );
    assert!(errors("\n#pragma x\n")[0].contains("t.click:2:1: unknown preprocessor directive"));
}

#[test]
fn chains_that_may_have_been_cut_are_warned_about() {
    let warned = |inside: &str| {
        let sources = Sources::new("f", format!("elementclass X {{\n{inside} }}"));
        let mut errors = Errors::default();
        flatten(
            &sources,
            &Known,
            &Scope::default(),
            &Limits::default(),
            &mut errors,
        );
        let warnings = errors.take_warnings().into_sorted(&sources);
        let lines: Vec<u32> = warnings.iter().map(|w| w.place.line).collect();
        assert!(
            warnings
                .iter()
                .all(|w| w.message.starts_with("warning: suggest 'input "))
        );
        lines
    };
    // behind what does not end with the output
    assert_eq!(warned("Null -> Null;\n-> Null"), [3]);
    assert_eq!(
        warned("n :: Null; elementclass Q { input -> output }\n=> n"),
        [3]
    );
    assert_eq!(warned("input -> Null -> output, Null;\n-> Null"), [3]);
    assert_eq!(
        warned("input -> (Null -> Null;\n-> Null ->) -> output"),
        [3]
    );
    // first, behind the output, or from a port
    for right in [
        "-> Null",
        "Null -> [0] output; -> Null",
        "Null ->; -> Null",
        "Null -> Null; [0] -> Null",
        "Null -> Null; input -> Null",
    ] {
        assert_eq!(warned(right), Vec::<u32>::new(), "{right}");
    }
}

/// `count` levels, each of which uses the one below `fan` times.
fn nested(
    count: usize,
    fan: usize,
    level: impl Fn(usize, &str) -> String,
    use_of: impl Fn(usize) -> String,
) -> String {
    let below = |n: usize| match n {
        0 => String::new(),
        n => use_of(n - 1).repeat(fan),
    };
    (0..count).map(|n| level(n, &below(n))).collect()
}

fn nested_defines(count: usize, fan: usize) -> String {
    let defines = nested(
        count,
        fan,
        |n, value| format!("define($v{n} {value});\n"),
        |n| format!("$v{n}"),
    );
    let last = count - 1;
    format!("{defines}a :: Counter($v{last});")
}

fn nested_classes(count: usize, inside: &str, fan: usize) -> String {
    let class = |n: usize, body: &str| format!("elementclass C{n} {{ {inside} {body} }}\n");
    let last = count - 1;
    format!(
        "{}C{last};",
        nested(count, fan, class, |n| format!("C{n};"))
    )
}

#[test]
fn small_texts_do_not_make_large_work() {
    let limits = Limits::default();
    let compound = |inside: String| format!("elementclass A {{ {inside} }} A;");
    let formals: String = (0..100_000).map(|n| format!("$a{n},")).collect();
    let loops = "t -> t;".repeat(5000);
    let taken: String = (0..4000)
        .map(|n| format!("Null@{} :: Null; Null;", n + 4000))
        .collect();
    for (what, text) in [
        ("steps of work", nested_defines(11, 12)),
        ("exceed", nested_classes(39, "", 2)),
        ("elements, and ports", nested_classes(9, "", 4)),
        (
            "elements, and ports",
            nested_classes(9, "input -> output;", 4),
        ),
        (
            "steps of work",
            format!("a :: Counter({});", "${".repeat(40_000)),
        ),
        (
            "more than 1024 ports",
            format!("a :: Counter; a[{}0] -> a;", "0-1023,".repeat(40_000)),
        ),
        ("more than", "a[0-1023],".repeat(40_000)),
        (
            "more than 256 parameters",
            compound(format!("{formals} $z | Counter")),
        ),
        (
            "connections",
            compound(format!("t :: {{ input -> output }}; Null -> t; {loops}")),
        ),
        (
            "steps of work",
            compound("(->);".repeat(4000) + &"n :: Null; n -> n[1];".repeat(8000)),
        ),
        (
            "names and expanded",
            format!("{} :: {{ {} }}", "n".repeat(200_000), "Null;".repeat(2000)),
        ),
        ("more than 4096 elements", "();".repeat(100_000)),
        ("more than", taken),
    ] {
        assert!(text.len() <= 1 << 20, "{what}");
        let (flat, errors) = run(&text, &limits);
        let found = errors.iter().any(|e| e.contains(what));
        assert!(found, "{what}: {:?}", errors.first());
        assert!(errors.iter().all(|e| e.len() < 5000), "{what}");
        assert!(flat.elements.len() <= limits.elements, "{what}");
    }
}

#[test]
fn an_exhausted_budget_names_place_construct_and_limit() {
    let (_, errors) = run(&nested_defines(11, 12), &Limits::default());
    let text = "'a': expanding its arguments takes more than 16777216 steps of work, the limit";
    assert_eq!(errors, [format!("t.click:12:1: {text}")]);
}

#[test]
fn large_honest_configurations_fit_the_budget() {
    let limits = Limits::default();
    let rules: String = (0..10_000).map(|n| format!("allow src host 10.{}.{}.1 && tcp dst port {n} && ip ttl > 3 && src port 10000-{},\n", n / 250, n % 250, n + 10_000)).collect();
    let elements: String = (0..2000)
        .map(|n| format!("c{n} :: Counter(COUNT_CALL $limit stop); Idle -> c{n} -> Discard;\n"))
        .collect();
    let defines: String = (0..10_000)
        .map(|n| format!("define($host{n} 10.{}.{}.1);\n", n / 250, n % 250))
        .collect();
    let hosts: String = (0..10_000)
        .map(|n| format!("allow src host $host{n},\n"))
        .collect();
    let deep = nested_classes(60, "input -> Counter -> output;", 1);
    for text in [
        format!("Idle -> f :: IPFilter({rules} deny all) -> Discard;"),
        format!("define($rules {rules} deny all); Idle -> f :: IPFilter($rules) -> Discard;"),
        format!("define($limit 1000);{}", &elements),
        format!("{defines} Idle -> IPFilter({hosts} deny all) -> Discard;"),
        deep,
        format!("elementclass F {{ $rules | input -> IPFilter($rules) -> output }} Idle -> F({rules} deny all) -> Discard").replace(",\n", "\n").replace(" deny all", ""),
    ] {
        assert!(text.len() <= 1 << 20, "{}", text.len());
        let (_, errors) = run(&text, &limits);
        assert!(!errors.iter().any(|e| e.contains("more than") || e.contains("exceed")), "{:?}", errors.first());
    }
}

#[test]
fn memory_that_runs_out_is_one_error_with_place_and_limit() {
    thread_local!(static LEFT: Cell<usize> = const { Cell::new(0) });
    let memory = Memory {
        reserve: 1 << 20,
        has_room: |_| LEFT.replace(LEFT.get().saturating_sub(1)) > 0,
    };
    let limits = Limits {
        memory,
        ..Limits::default()
    };
    let words = "x".repeat(10_000);
    let elements = "Source -> Counter($a) -> Discard; {Source -> Discard};".repeat(20);
    let text = format!("define($a {words}, $b 1); require(package click); {elements}");
    let mut succeeded = 0;
    // Each question to the allocator is the first one that fails, once.
    for asked in 0.. {
        LEFT.set(asked);
        let (_, errors) = run(&text, &limits);
        let of_memory =
            |e: &&String| e.ends_with("leaves less than 1024 KiB of the memory, the limit");
        succeeded = asked;
        if errors.is_empty() {
            break;
        }
        assert_eq!(
            errors.iter().filter(of_memory).count(),
            1,
            "{asked}: {:?}",
            errors.first()
        );
    }
    assert!(succeeded > 10, "{succeeded}");
}
