// SPDX-License-Identifier: Apache-2.0
//! What is around a configuration: libraries, archives, and the programs that do not run it.
use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

/// A folder of its own, gone at the end.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let own = format!("click-tools-{}-{name}", std::process::id());
        let path = std::env::temp_dir().join(own);
        fs::create_dir_all(path.join("conf")).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, data: impl AsRef<[u8]>) -> String {
        let path = self.0.join(name);
        fs::write(&path, data).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn run(program: &str, args: &[&str]) -> Output {
    Command::new(program).args(args).output().unwrap()
}

const CLICK: &str = env!("CARGO_BIN_EXE_click");
const COMBINE: &str = env!("CARGO_BIN_EXE_click-combine");
const UNCOMBINE: &str = env!("CARGO_BIN_EXE_click-uncombine");
const FLATTEN: &str = env!("CARGO_BIN_EXE_click-flatten");
const PRETTY: &str = env!("CARGO_BIN_EXE_click-pretty");

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn libraries_are_found_beside_the_file_and_in_clickpath() {
    let folder = Folder::new("libraries");
    folder.write("conf/far.click", "elementclass Far { -> Null -> }");
    folder.write("near.click", "elementclass Near { -> Null -> }");
    let main = folder.write(
        "main.click",
        "require(library near.click, library far.click) Idle -> Near -> Far -> Discard",
    );
    let path = folder.0.display().to_string();
    let found = run(CLICK, &["-q", "-C", &path, "-h", "list", &main]);
    assert_eq!(out(&found).lines().next(), Some("4"), "{}", err(&found));
    let missing = run(CLICK, &["-q", &main]);
    let expected = format!("{main}:1:9: library 'far.click' not found in CLICKPATH/conf\n");
    assert!(err(&missing).contains(&expected), "{}", err(&missing));
}

/// A member of an archive.
fn member(name: &str, data: &[u8]) -> Vec<u8> {
    let (name, size) = (format!("{name}/"), data.len());
    let header = format!("{name:<16}{0:<12}{0:<6}{0:<6}{1:<8}{size:<10}`\n", 0, 644);
    let padding = &b"\n"[..size % 2];
    [header.as_bytes(), data, padding].concat()
}

#[test]
fn a_guest_is_checked_with_the_files_of_its_archive() {
    let folder = Folder::new("guest");
    let check = |config: &[u8]| {
        let dump = [&b"\xd4\xc3\xb2\xa1\x02\0\x04"[..], &[0; 17]].concat();
        let members = [member("config", config), member("in.pcap", &dump)].concat();
        let file = folder.write("g.click", [b"!<arch>\n", &members[..]].concat());
        run(CLICK, &["--check", "--guest", &file])
    };
    let right = check(b"FromDump(in.pcap) -> ToDump(out.pcap)");
    assert!(right.status.success(), "{}", err(&right));
    let wrong = check(b"FromDump(none.pcap) -> ToDump(/etc/out.pcap)");
    assert!(
        err(&wrong)
            .contains("FILENAME: \"none.pcap\" is not a member of the configuration's archive"),
        "{}",
        err(&wrong)
    );
    let wrong = check(b"Idle -> ToDump(/etc/out.pcap)");
    assert!(
        err(&wrong).contains("ToDump: \"/etc/out.pcap\" has a folder; a guest keeps files without"),
        "{}",
        err(&wrong)
    );
}

#[test]
fn an_archive_is_its_configuration() {
    let folder = Folder::new("archive");
    let config = member("config", b"Idle -> Discard");
    let file = folder.write("a.click", [b"!<arch>\n", &config[..]].concat());
    let list = run(CLICK, &["-q", "-h", "list", &file]);
    assert_eq!(out(&list), "2\nIdle@1\nDiscard@2\n", "{}", err(&list));
}

#[test]
fn each_tool_has_the_options_of_click() {
    let folder = Folder::new("files");
    let one = folder.write("one.click", "Idle -> Discard;");
    for tool in [FLATTEN, PRETTY] {
        assert_eq!(out(&run(tool, &["-f", &one])), out(&run(tool, &[&one])));
        assert!(!run(tool, &["-f", &one, &one]).status.success());
        for option in ["-v", "-V", "--version"] {
            let version = out(&run(tool, &[option]));
            assert!(version.contains(env!("CARGO_PKG_VERSION")), "{version}");
        }
    }
}

#[test]
fn click_pretty_draws_the_same_picture_each_time() {
    let config = "a :: Any(\"<x>\") -> b :: { -> Inner -> } -> c :: Last; a [1] -> c";
    let picture = run(PRETTY, &["-e", config]);
    let text = out(&picture);
    assert!(
        text.starts_with("<svg ") && text.ends_with("</svg>\n"),
        "{text}"
    );
    for part in [
        "b/Inner@1",
        "Any(&quot;&lt;x&gt;&quot;)",
        "<title>c :: Last()</title>",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert_eq!(text.matches("marker-end").count(), 3);
    assert_eq!(out(&run(PRETTY, &["-e", config])), text);
    assert!(!run(PRETTY, &["-e", "a ->"]).status.success());
}

fn lines_with<'a>(text: &'a str, word: &str) -> Vec<&'a str> {
    text.lines().filter(|line| line.contains(word)).collect()
}

#[test]
fn routers_combine_and_come_apart_again() {
    let folder = Folder::new("combine");
    let a = folder.write(
        "a.click",
        "FromDevice(0) -> c :: Counter -> Queue(7) -> out :: ToDevice(eth0, BURST 4);",
    );
    let b = folder.write(
        "b.click",
        "FromDevice(eth1) -> c :: Counter -> Queue -> ToDevice(\"1\");",
    );
    let (a_is, b_is) = (format!("A={a}"), format!("B={b}"));
    let whole = run(COMBINE, &[&a_is, &b_is, "A.out=B.eth1", "B.1=A.0"]);
    let text = out(&whole);
    assert!(whole.status.success(), "{}", err(&whole));
    assert_eq!(lines_with(&text, ":: RouterLink").len(), 2, "{text}");
    assert!(lines_with(&text, ":: ToDevice").is_empty(), "{text}");
    assert_eq!(lines_with(&text, "/c :: Counter").len(), 2, "{text}");
    let file = folder.write("whole.click", &text);
    for (name, own) in [("A", &a), ("B", &b)] {
        let part = run(UNCOMBINE, &["-n", name, &file]);
        assert_eq!(sorted(&out(&part)), sorted(&flat(own)), "{}", err(&part));
    }
}

fn flat(file: &str) -> String {
    out(&run(FLATTEN, &[file]))
}

/// The statements of a flat configuration; a component's devices come last in it.
fn sorted(text: &str) -> Vec<&str> {
    let mut statements: Vec<&str> = text.split(';').map(str::trim).collect();
    statements.sort_unstable();
    statements
}

#[test]
fn one_link_may_have_several_ends() {
    let folder = Folder::new("shared");
    let one = folder.write("one.click", "FromDevice(0) -> Queue -> ToDevice(0);");
    let [a, b, c] = ["A", "B", "C"].map(|name| format!("{name}={one}"));
    let whole = run(COMBINE, &[&a, &b, &c, "-l", "A.0=B.0", "-l", "A.0=C.0"]);
    let text = out(&whole);
    let links = lines_with(&text, ":: RouterLink");
    assert_eq!(links.len(), 1, "{text}{}", err(&whole));
    for end in ["A/ToDevice", "B/FromDevice", "C/FromDevice"] {
        assert!(links[0].contains(end), "{text}");
    }
}

#[test]
fn combine_names_what_is_wrong() {
    let folder = Folder::new("wrong");
    let one = folder.write("one.click", "FromDevice(0) -> Queue -> ToDevice(0);");
    let [a, c] = ["A", "C"].map(|name| format!("{name}={one}"));
    for (args, expected) in [
        (
            vec![&*a, "A.1=A.0"],
            "A.1: no such element, and no ToDevice of this device",
        ),
        (
            vec![&*a, "A.0=A.1"],
            "A.1: no such element, and no FromDevice or PollDevice",
        ),
        (
            vec![&*a, "A.0=B.0"],
            "B: no such component, expected one of A\n",
        ),
        (
            vec![&*a, &*c, "B.0=A.0"],
            "B: no such component, expected one of A, C\n",
        ),
        (
            vec![&*a, "-d", "B.0=7"],
            "B: no such component, expected one of A\n",
        ),
        (vec![&*a, &*a], "A: there are two components of this name"),
        (vec![&*a, "A.=A.0"], "\"A.\": expected COMPONENT.ELEMENT"),
        (vec![&*a, "/none/x"], "/none/x"),
        (vec!["a//b=x"], "\"a//b\": a component is named with"),
        (vec!["7=x"], "\"7\": a component is named with"),
        (
            vec!["-n", "B", &*a],
            "\"A\": the next component is named \"B\"",
        ),
        (vec!["A.0=A.0"], "expected components"),
        (vec!["A=/none"], "/none"),
        (vec![&*a, "-d", "A.7=0"], "A.7: no FromDevice or PollDevice"),
    ] {
        let failed = run(COMBINE, &args);
        assert_eq!(failed.status.code(), Some(1), "{args:?}");
        assert!(
            err(&failed).contains(expected),
            "{args:?}: {}",
            err(&failed)
        );
        assert_eq!(out(&failed), "");
    }
    let failed = run(UNCOMBINE, &["-n", "B", &one]);
    assert_eq!(
        err(&failed),
        "B: no such component; the configuration has none\n"
    );
    let both = run(COMBINE, &[&a, &format!("B={one}")]);
    let both = folder.write("both.click", out(&both));
    let failed = run(UNCOMBINE, &["-n", "C", &both]);
    assert_eq!(err(&failed), "C: no such component, expected one of A, B\n");
    let broken = folder.write(
        "broken.click",
        "Idle -> l :: RouterLink(x) -> A/d :: Discard;",
    );
    let failed = run(UNCOMBINE, &["-n", "A", &broken]);
    assert!(
        err(&failed).contains("l :: RouterLink: x: expected NAME CLASS"),
        "{}",
        err(&failed)
    );
}

#[test]
fn combine_takes_the_command_line_of_click() {
    let folder = Folder::new("options");
    let one = folder.write("one.click", "FromDevice(0) -> Queue -> ToDevice(0);");
    let named = [&format!("A={one}"), &format!("B:{one}"), "A.0=B.0", "-c"].map(String::from);
    let by_options = [
        "-n", "A", "-f", &one, "--name", "B", "--file", &one, "-l", "A.0=B.0",
    ];
    let text = "FromDevice(0) -> Queue -> ToDevice(0);";
    let by_text = [
        "--link",
        "A.0=B.0",
        "-n",
        "A",
        "-e",
        text,
        "-n",
        "B",
        "--expression",
        text,
    ];
    let whole = out(&run(COMBINE, &named.each_ref().map(String::as_str)));
    assert!(whole.contains("link1 :: RouterLink"), "{whole}");
    assert_eq!(out(&run(COMBINE, &by_options)), whole);
    assert_eq!(out(&run(COMBINE, &by_text)), whole);
    let unnamed = out(&run(COMBINE, &[&one, &one, "router1.0=router2.0"]));
    assert_eq!(
        unnamed.replace("router1", "A").replace("router2", "B"),
        whole
    );
    let whole = folder.write("whole.click", &whole);
    let component = out(&run(UNCOMBINE, &["-n", "B", &whole]));
    assert!(component.contains("FromDevice(0)"), "{component}");
    for args in [
        ["-f", &whole, "B"].as_slice(),
        &["--file", &whole, "--name", "B"],
        &[&whole, "B"],
    ] {
        assert_eq!(out(&run(UNCOMBINE, args)), component, "{args:?}");
    }
    for (args, status) in [(&[whole.as_str()][..], 1), (&[&whole, "B", "C"], 2)] {
        assert_eq!(run(UNCOMBINE, args).status.code(), Some(status), "{args:?}");
    }
}

/// A chain of three hops: a source that pushes, a firewall whose devices pull, a sink.
const HOPS: [&str; 3] = [
    "InfiniteSource(LIMIT 100) -> UDPIPEncap(10.0.0.1, 1, 10.0.0.2, 2) -> EtherEncap(0x0800, 1:1:1:1:1:1, 2:2:2:2:2:2) -> ToDevice(1); FromDevice(1) -> Discard;",
    "FromDevice(0) -> in :: Counter -> Strip(14) -> CheckIPHeader -> [0] rw :: IPRewriter(keep 0 1, drop) -> q :: Queue -> out :: Counter -> ToDevice(1);
     FromDevice(1) -> Strip(14) -> CheckIPHeader -> [1] rw [1] -> Queue -> ToDevice(0); Idle -> ICMPRewriter(rw) -> Discard;",
    "FromDevice(0) -> c :: Counter(COUNT_CALL 100 stop) -> Discard; Idle -> ToDevice(0);",
];

#[test]
fn a_fused_chain_runs_and_keeps_the_counters_of_each_hop() {
    let folder = Folder::new("fuse");
    let names = ["src", "fw", "dst"];
    let hops = names.iter().zip(HOPS);
    let mut args: Vec<String> = hops
        .map(|(name, text)| format!("{name}={}", folder.write(&format!("{name}.click"), text)))
        .collect();
    args.extend(
        [
            "src.1=fw.0",
            "fw.1=dst.0",
            "dst.0=fw.1",
            "fw.0=src.1",
            "--fuse",
        ]
        .map(String::from),
    );
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let fused = run(COMBINE, &args);
    let text = out(&fused);
    assert!(!text.contains("Link"), "{text}{}", err(&fused));
    assert_eq!(lines_with(&text, ":: Unqueue").len(), 1, "{text}");
    let reads = [
        "fw/in.count",
        "fw/out.count",
        "fw/rw.table_size",
        "dst/c.count",
    ];
    let reads = reads.iter().flat_map(|name| ["-h", name]);
    let ran = run(CLICK, &reads.chain(["-e", &text]).collect::<Vec<_>>());
    let values: Vec<String> = out(&ran).lines().map(str::to_string).collect();
    for value in ["100", "1"] {
        assert!(
            values.iter().any(|line| line == value),
            "{values:?} {}",
            err(&ran)
        );
    }
    assert_eq!(
        values.iter().filter(|line| *line == "100").count(),
        3,
        "{values:?}"
    );
}

/// Fuses A to B; the ends are devices 0 and 1.
fn fuse_two(folder: &Folder, a: &str, b: &str) -> String {
    let [a, b] = [("A", a), ("B", b)]
        .map(|(name, text)| format!("{name}={}", folder.write(&format!("{name}.click"), text)));
    let fused = run(
        COMBINE,
        &[
            &a, &b, "A.4=B.5", "B.5=A.4", "-d", "A.5=0", "-d", "B.4=1", "--fuse",
        ],
    );
    assert!(fused.status.success(), "{}", err(&fused));
    out(&fused)
}

#[test]
fn an_unnamed_queue_is_gone_where_nothing_waits() {
    let folder = Folder::new("queues");
    let wire = "FromDevice(5) -> Queue -> tx :: Counter -> ToDevice(4);
                FromDevice(4) -> Queue -> ToDevice(5);";
    let text = fuse_two(&folder, wire, wire);
    assert_eq!(lines_with(&text, ":: Queue").len(), 2, "{text}");
    assert_eq!(lines_with(&text, ":: Unqueue").len(), 0, "{text}");
    for end in [
        "FromDevice(0)",
        "ToDevice(0)",
        "FromDevice(1)",
        "ToDevice(1)",
    ] {
        assert_eq!(lines_with(&text, end).len(), 1, "{text}");
    }
    let check = run(CLICK, &["--check", "--guest", "--vifs", "2", "-e", &text]);
    assert!(check.status.success(), "{}", err(&check));

    let named = wire
        .replace("-> Queue", "-> q :: Queue")
        .replacen("q ::", "p ::", 1);
    let text = fuse_two(&folder, &named, &named);
    assert_eq!(lines_with(&text, ":: Unqueue").len(), 2, "{text}");

    let mirror = "FromDevice(5) -> Queue -> ToDevice(5); FromDevice(4) -> Queue -> ToDevice(4);";
    let text = fuse_two(&folder, mirror, mirror);
    assert_eq!(lines_with(&text, ":: Unqueue").len(), 1, "{text}");
}

#[test]
fn a_link_with_several_receivers_does_not_run() {
    let folder = Folder::new("several");
    let one = folder.write("one.click", "FromDevice(0) -> Queue -> ToDevice(0);");
    let [a, b, c] = ["A", "B", "C"].map(|name| format!("{name}={one}"));
    let failed = run(COMBINE, &[&a, &b, &c, "A.0=B.0", "A.0=C.0", "--fuse"]);
    assert!(
        err(&failed).contains("link1: several receivers"),
        "{}",
        err(&failed)
    );
}
