// SPDX-License-Identifier: Apache-2.0
//! Small texts that ask for much, and the error that each has to get.

/// The error of a router that runs.
const RUNS: &str = "";
const MEMORY: &str = "leaves less than 1024 KiB of the memory, the limit";
const STEPS: &str = "takes more than 16777216 steps of work, the limit";

/// A configuration, and what its first error says in a guest of 8 MiB and in a check.
pub struct Case {
    pub name: &'static str,
    pub in_guest: &'static str,
    pub in_check: &'static str,
    pub text: String,
}

impl Case {
    /// Describes an error that is not the expected one. The error is empty if the router runs.
    pub fn wrong(&self, expected: &str, error: &str) -> Option<String> {
        let shown: String = error.chars().take(300).collect();
        let right = match expected {
            RUNS => error.is_empty(),
            _ => error.starts_with("test.click:") && error.contains(expected),
        };
        (!right).then(|| format!("{}: expected {expected:?}, got {shown:?}", self.name))
    }
}

/// Bytes of text that a guest of 8 MiB takes.
const TEXT: usize = 500 << 10;

fn repeated(part: &str) -> String {
    part.repeat(TEXT / part.len())
}

fn numbered(count: usize, part: impl Fn(usize) -> String) -> String {
    (1..=count).map(part).collect()
}

/// An element with this configuration string, between a source and a sink.
fn element(class: &str, config: &str) -> String {
    format!("Idle -> {class}({config}) -> Discard;")
}

fn filled(class: &str, part: &str) -> String {
    element(class, &repeated(part))
}

/// Rules whose automaton takes all memory that an installation may use.
pub fn crossed_rules() -> String {
    numbered(1000, |n| {
        format!("deny host 10.{}.{}.0 or port {n},", n / 250, n % 250)
    })
}

/// A text with all values of a byte: an automaton finds no bytes that are alike.
pub fn each_byte(bytes: usize) -> String {
    let values = (0..bytes).map(|n| format!("{:02x}", (n * 7 + n / 256) % 256));
    format!("\"\\<{}>\"", values.collect::<String>())
}

fn passive(code: &str) -> String {
    format!("s :: Script(TYPE PASSIVE, {code});")
}

/// Name, error in a guest of 8 MiB, error in a check, text.
type Row = (&'static str, &'static str, &'static str, String);

/// All cases, by what they are about.
#[rustfmt::skip]
pub fn groups() -> Vec<Vec<Case>> {
    let rows = [expansions(), graphs(), syntax(), rules(), arguments(), sizes(), scripts()];
    let case = |(name, in_guest, in_check, text)| Case { name, in_guest, in_check, text };
    rows.into_iter().map(|rows| rows.into_iter().map(case).collect()).collect()
}

#[rustfmt::skip]
fn expansions() -> Vec<Row> {
    let empty = numbered(10, |n| format!("define($v{n} {});", format!("$v{}", n - 1).repeat(12)));
    let classes = numbered(38, |n| format!("elementclass C{n} {{ C{0}; C{0} }}", n - 1));
    let overloads = numbered(16, |n| format!("elementclass O{n} {{ $a | O{0}($a); O{0}($a) || $a, $b | O{0}($b); O{0}($a) }}", n - 1));
    let doubled = numbered(10, |n| format!("define($d{n} $d{0}$d{0}$d{0}$d{0});", n - 1));
    vec![
        ("nested defines", STEPS, STEPS, format!("define($v0 ); {empty} a :: Counter($v10);")),
        ("nested classes", "more than 8192 elements", "exceed 4194304 bytes", format!("elementclass C0 {{}} {classes} C38;")),
        ("nested overloads", "more than 512 elements", "more than 4096 elements", format!("elementclass O0 {{ $a | Idle; }} {overloads} O16(1);")),
        ("doubled text", MEMORY, "exceed 4194304 bytes", format!("define($d0 {}); {doubled} {}", "x".repeat(1000), element("Print", "$d10"))),
        ("long define", MEMORY, RUNS, format!("define($a {}); {}", repeated("x"), element("Print", "$a"))),
        ("define used often", MEMORY, "exceed 4194304 bytes", format!("define($a {}); {}", "x".repeat(100_000), element("Print", &"$a".repeat(1000)))),
        ("defines at once", MEMORY, RUNS, format!("define({});", numbered(TEXT / 12, |n| format!("$a{n} b,")))),
        ("references to nothing", STEPS, STEPS, filled("Print", "${")),
        ("requirements", MEMORY, STEPS, format!("provide({}); require({});", "a,".repeat(80_000), "b,".repeat(80_000))),
        ("words of a requirement", "the limit is 4096", "the limit is 4096", format!("require({});", repeated("a "))),
        ("long names", "exceed 2097152 bytes", "exceed 4194304 bytes", format!("{} :: {{ {} }}", "n".repeat(200_000), "Idle;".repeat(100))),
    ]
}

#[rustfmt::skip]
fn graphs() -> Vec<Row> {
    vec![
        ("elements", "more than 512 elements", "more than 4096 elements", repeated("Idle;")),
        ("compounds", "more than 512 elements", "more than 4096 elements", repeated("{Idle};")),
        ("groups", "more than 512 elements", "more than 4096 elements", repeated("();")),
        ("terms", "more than 6144 elements and", "more than 41984 elements and", repeated("a[0-1023],")),
        ("port lists", "more than 1024 ports", "more than 1024 ports", format!("a[{}0] -> b", repeated("0-1023,"))),
        ("fan-out of tuples", "more than 2048 connections", "more than 16384 connections", "Idle[0-1023] => [0-1023]Idle;".repeat(20)),
        ("crossed tuples", "many-to-many", "many-to-many", format!("{} -> {}", "Idle,".repeat(200) + "Idle", "Discard,".repeat(200) + "Discard")),
        ("wide elements", MEMORY, "output 0 unused", format!("d :: Discard; {}", "Idle[1023] -> d;".repeat(300))),
        ("port beyond all", "port 2147483648 is beyond the limit of 1024", "port 2147483648 is beyond the limit of 1024", "Idle[2147483648] -> Discard".into()),
        ("input beyond all", "port 4294967296 is beyond", "port 4294967296 is beyond", "Idle -> [4294967296] Discard".into()),
        ("chain", "more than 6144 elements and", "more than 41984 elements and", format!("Idle {} -> Discard", repeated("-> Null"))),
        ("circle of compounds", RUNS, RUNS, "elementclass A { input -> output } a :: A -> b :: A -> a".into()),
        ("agnostic line", RUNS, RUNS, format!("Idle {} -> Discard", "-> Null ".repeat(370))),
    ]
}

#[rustfmt::skip]
fn syntax() -> Vec<Row> {
    let (unmatched, deep) = ("has no matching", "nested deeper than 64");
    let long = |n: usize| format!("{}{n} :: Queue(x);", "m".repeat(4000));
    vec![
        ("braces", unmatched, unmatched, repeated("{")),
        ("parentheses", unmatched, unmatched, repeated("(")),
        ("brackets", "syntax error near '['", "syntax error near '['", repeated("[")),
        ("closing braces", "syntax error near '}'", "syntax error near '}'", repeated("}")),
        ("open classes", deep, deep, repeated("elementclass A{")),
        ("classes", "more than 512 element classes", "more than 4096 element classes", repeated("elementclass A{}")),
        ("open comment", RUNS, RUNS, format!("Idle; /*{}", repeated("*"))),
        ("open comments", "syntax error near '*'", "syntax error near '*'", repeated("/*")),
        ("open string", unmatched, unmatched, format!("Idle -> Print(\"{}", repeated("\\\""))),
        ("open hex", unmatched, unmatched, format!("Idle -> Print({}", repeated("\\<"))),
        ("line directives", "more than 512 line directives", "more than 4096 line directives", repeated("\n# 1\n")),
        ("file names in errors", "syntax error", "syntax error", format!("\n# 1 \"{}\"\n{}", "f".repeat(200_000), "a->;".repeat(200))),
        ("names in errors", "mmm", "mmm", numbered(100, long)),
        ("one name in errors", "nnn", "nnn", format!("elementclass A {{ {} }} {} :: A", "Queue(x);".repeat(20), "n".repeat(20_000))),
        ("errors", "syntax error", "syntax error", repeated("a->;")),
        ("bars", "more than 6144 elements and", "more than 41984 elements and", format!("{{{}}}", repeated("||"))),
        ("parameters", "more than 256 parameters", "more than 256 parameters", format!("elementclass A {{ {} | Idle }}", numbered(60_000, |n| format!("$a{n},")))),
    ]
}

#[rustfmt::skip]
fn rules() -> Vec<Row> {
    let rule = |n: usize| format!("allow src net 10.{}.{}.0/24 && dst host 1.2.3.4 && tcp dst port {n},", n / 250, n % 250);
    let of_one_rule = "the limit of one rule is 65536";
    vec![
        ("empty rules", "the limit is 8192", "the limit is 65536", filled("IPFilter", "a,")),
        ("rules", MEMORY, RUNS, element("IPFilter", &numbered(5000, rule))),
        ("one rule often", "the limit is 8192", RUNS, filled("IPFilter", "allow tcp,")),
        ("conjunctions", MEMORY, of_one_rule, element("IPFilter", &format!("allow {} tcp", repeated("(src port 1 or dst port 2) && ")))),
        ("conjunctions of a rule", RUNS, RUNS, element("IPFilter", &format!("allow {} tcp", "(src port 1 or dst port 2) && ".repeat(1000)))),
        ("parentheses of a filter", "nested deeper", "nested deeper", element("IPClassifier", &format!("{0}tcp{1}", "(".repeat(30_000), ")".repeat(30_000)))),
        ("nots", "nested deeper", "nested deeper", element("IPClassifier", &format!("{} tcp", "not ".repeat(10_000)))),
        ("ternaries", "nested deeper", "nested deeper", element("IPClassifier", &format!("{} tcp", "tcp ? udp : ".repeat(4000)))),
        ("patterns", "the limit is 8192", "the limit is 65536", filled("Classifier", "0/1,")),
        ("long pattern", MEMORY, "the limit is 65536", filled("Classifier", "0/01 ")),
        ("far pattern", "expected OFFSET", "expected OFFSET", element("Classifier", "4000000000/01")),
        ("routes", "the limit is 8192", RUNS, filled("RadixIPLookup", "1.2.3.4/32 0,")),
        ("different routes", RUNS, RUNS, element("RadixIPLookup", &numbered(6000, |n| format!("10.{}.{}.0/24 0,", n / 250, n % 250)))),
        ("route to a port", "output 2147483648 does not exist", "output 2147483648 does not exist", element("RadixIPLookup", "1.2.3.4/32 2147483648")),
        ("long string", "the limit is 8192", RUNS, element("StringMatcher", &each_byte(8000))),
        ("strings", MEMORY, "the limit is 65536", filled("StringMatcher", "abcdefgh ")),
        ("regular expression", "needs more than", "needs more than", element("RegexClassifier", &format!("\"{}\"", "(a{1000}){1000}".repeat(10)))),
        ("nested expression", "too long for the memory", "nested parentheses", element("RegexClassifier", &format!("\"{}a{}\"", "(".repeat(20_000), ")".repeat(20_000)))),
        ("long expression", "too long for the memory", RUNS, element("RegexClassifier", &format!("\"{}\"", "a".repeat(60_000)))),
        ("many expressions", "patterns for 1 outputs", "patterns for 1 outputs", element("RegexClassifier", &"\"[a-z]{50}[0-9]{50}\",".repeat(500))),
        ("crossed rules", RUNS, RUNS, element("IPFilter", &crossed_rules())),
    ]
}

#[rustfmt::skip]
fn arguments() -> Vec<Row> {
    vec![
        ("addresses", "the limit is 8192", RUNS, format!("AddressInfo({});", repeated("a 1.2.3.4,"))),
        ("names of one address", RUNS, RUNS, format!("AddressInfo({});", numbered(5000, |n| format!("a{n} 1.2.3.4 5.6.7.8,")))),
        ("words of an address", MEMORY, "expected an address", format!("AddressInfo(a {});", repeated("b "))),
        ("schedule", "the limit is 8192", "the limit is 65536", format!("ScheduleInfo({});", repeated("a 1,"))),
        ("arguments of a compound", "the limit is 16384", "the limit is 16384", format!("elementclass A {{ __REST__ $a | Idle($a) }} A({});", repeated("a,"))),
        ("digits", MEMORY, "expected a number", filled("Queue", "9")),
        ("data", MEMORY, RUNS, format!("InfiniteSource(DATA {}) -> Discard;", repeated("\\<00>"))),
    ]
}

#[rustfmt::skip]
fn sizes() -> Vec<Row> {
    let flows = "1, 10, 60, 0:0:0:0:0:1, 1.1.1.1, 0:0:0:0:0:2, 2.2.2.2";
    let range = "is out of range";
    let clipboard = |n: usize| format!("c{n} :: Clipboard(0/65535) -> d; Idle -> c{n}; Idle -> [1] c{n} [1] -> d;");
    vec![
        ("queue", RUNS, RUNS, element("Queue", "4000000000")),
        ("queue of 2^31", RUNS, RUNS, element("Queue", "2147483648")),
        ("queues", RUNS, RUNS, element("Queue", "60000").repeat(100)),
        ("flows", range, range, format!("FastUDPFlows({flows}, 4000000000, 10) -> Discard;")),
        ("many flows", RUNS, RUNS, format!("FastUDPFlows({flows}, 6000, 10) -> Discard;").repeat(100)),
        ("source", RUNS, RUNS, "InfiniteSource(LENGTH 4000000000, LIMIT 0) -> Discard;".into()),
        ("sources", MEMORY, RUNS, "InfiniteSource(LENGTH 65535, LIMIT 0) -> Discard;".repeat(180)),
        ("ranges", "the limit of all ranges", "the limit of all ranges", format!("c :: Clipboard({}) -> Discard; Idle -> c; Idle -> [1] c [1] -> Discard", "0/65535,".repeat(200))),
        ("clipboards", MEMORY, RUNS, format!("d :: Discard; {}", numbered(120, clipboard))),
        ("aggregates", range, range, element("AggregateCounter", "CAPACITY 4000000000")),
        ("random addresses", range, range, element("SetRandIPAddress", "1.0.0.0/8, 4000000000")),
        ("many random addresses", RUNS, RUNS, element("SetRandIPAddress", "1.0.0.0/8, 6000").repeat(100)),
        ("hosts", range, range, "s :: EtherSwitch(CAPACITY 4000000000); Idle -> s -> Discard; Idle -> [1] s [1] -> Discard".into()),
        ("alignment", "expected 2, 4 or 8", "expected 2, 4 or 8", element("Align", "4000000000, 0")),
        ("padding", RUNS, RUNS, element("Pad", "4000000000")),
        ("delay", "expected a time", "expected a time", element("DelayShaper", "1e300")),
        ("tickets", RUNS, RUNS, "Idle -> s :: StrideSched(4000000000) -> Discard".into()),
        ("thresholds", range, range, "Idle -> Queue -> RED(4000000000, 4000000001, 0.1) -> Discard".into()),
    ]
}

#[rustfmt::skip]
fn scripts() -> Vec<Row> {
    let grown = numbered(10, |n| format!("init x{n} $x{0}$x{0}$x{0}$x{0},", n - 1));
    let x = "x".repeat(30_000);
    let call = |n: usize| format!("s{n} :: Script(TYPE PASSIVE, label a, set x $(s{}.run), goto a);", n + 1);
    let copies = |n: usize| format!("init y $x$x$x$x,init z{n} 1,");
    vec![
        ("instructions", "the limit is 8192", RUNS, passive(&repeated("set x 1,"))),
        ("open expressions", "too much work", "too much work", passive(&format!("init x \"{}\", init y 1", "$(".repeat(20_000)))),
        ("nested expressions", RUNS, RUNS, passive(&format!("init x {}1{}", "$(add 1 ".repeat(2000), ")".repeat(2000)))),
        ("large variables", RUNS, RUNS, passive(&format!("init x0 {}, {grown} init y $x10", "x".repeat(1000)))),
        ("variables", "limit of all variables", "limit of all variables", passive(&format!("init x {x}, {}", numbered(1000, |n| format!("init y{n} $x,"))))),
        ("copies", "too much work", "too much work", passive(&format!("init x {}, {}", "x".repeat(7000), numbered(800, copies)))),
        ("loop", RUNS, RUNS, "s :: Script(TYPE ACTIVE, label a, goto a);".into()),
        ("slow loop", RUNS, RUNS, format!("s :: Script(TYPE ACTIVE, set x {x}, label a, set y $x, goto a);")),
        ("growth", RUNS, RUNS, "s :: Script(TYPE ACTIVE, set x xxxxxxxxxxxxxxxx, label a, set x $x$x$x$x$x$x$x$x, goto a);".into()),
        ("calls", RUNS, RUNS, numbered(20, call) + "t :: Script(TYPE ACTIVE, set x $(s1.run));"),
    ]
}
