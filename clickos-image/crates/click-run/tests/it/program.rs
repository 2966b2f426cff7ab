// SPDX-License-Identifier: Apache-2.0
//! The program from outside: options, output, exit codes.
use std::io::Write;
use std::process::{Command, Stdio};

/// Exit code, standard output, standard error.
fn click(args: &[&str], input: &str) -> (i32, String, String) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_click"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child
        .stdin
        .take()
        .unwrap()
        .write_all(input.as_bytes())
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (
        output.status.code().unwrap(),
        text(output.stdout),
        text(output.stderr),
    )
}

const SOURCE: &str = "InfiniteSource(LIMIT 5, STOP true) -> c :: Counter -> Discard";

#[test]
fn runs_and_prints_handlers() {
    assert_eq!(
        click(&["-e", SOURCE, "-h", "c.count"], ""),
        (0, "5\n".into(), String::new())
    );
    let both = click(&["-e", SOURCE, "-h", "c.count", "-h", "c.class"], "");
    assert_eq!(both.1, "c.count:\n5\n\nc.class:\nCounter\n\n");
    assert_eq!(
        click(&["-q", "-h", "c.count"], SOURCE).1,
        "0\n",
        "-q does not run"
    );
    assert_eq!(click(&["-e", SOURCE, "-h", "c.nothing"], "").0, 1);
}

#[test]
fn options_may_be_repeated_and_taken_back() {
    let flags = [
        "-q",
        "-q",
        "-ww",
        "-R",
        "--no-allow-reconfigure",
        "--no-cpu",
        "-j1",
        "-j1",
    ];
    let args = [&flags[..], &["-e", "Idle -> Discard"]].concat();
    assert_eq!(click(&args, ""), (0, String::new(), String::new()));
    let (code, _, error) = click(&["-t", "-e", SOURCE], "");
    let numbers = error.trim_end().split([' ', '.', ':', 'u', 's']);
    let count = numbers.filter(|n| n.parse::<u32>().is_ok()).count();
    assert_eq!((code, count), (0, 7), "{error}");
}

#[test]
fn the_command_line_overrules_what_the_configuration_defines() {
    let text = "define($L 1); elementclass C { define($L 3) input -> Print(\"$L\") -> output }
        Idle -> Print(\"$L\") -> C -> Discard;";
    let flat = |args: &[&str]| click(&[&["-q", "-o", "-", "-e", text][..], args].concat(), "").1;
    let has = |text: &str, label: u8| text.contains(&format!("Print(\"{label}\")"));
    assert!(has(&flat(&[]), 1) && has(&flat(&["L=7"]), 7));
    assert!(has(&flat(&["L=7"]), 3) && !has(&flat(&["L=7"]), 1));
}

#[test]
fn exit_codes() {
    assert_eq!(click(&["-e", SOURCE, "-x", "c.count"], "").0, 5);
    let (code, _, error) = click(&["-x", "c.class", "-e", SOURCE], "");
    assert_eq!(
        (code, error.as_str()),
        (1, "c.class: expected an exit status, got \"Counter\"\n")
    );
    assert_eq!(click(&["--nonsense"], "").0, 2);
    assert_eq!(click(&["/does/not/exist"], "").0, 1);
    assert_eq!(click(&["--version"], "").0, 0);
    assert!(click(&["--help"], "").1.contains("--handler"));
}

#[test]
fn checks_the_configuration_of_a_guest() {
    let config = "FromDevice(0) -> Strip($N) -> Queue -> ToDevice(1);";
    assert_eq!(
        click(&["--check", "--guest", "-e", config, "N=14"], ""),
        (0, String::new(), String::new())
    );
    let (code, _, error) = click(&["--check", "--guest", "--vifs", "1", "-e", config], "");
    assert_eq!(code, 1);
    assert_eq!(
        error,
        "config:1:18: Strip@2 :: Strip: LENGTH: expected a number, got \"$N\"\n\
         config:1:40: ToDevice@4 :: ToDevice: DEVID: no device 1, expected 0\n"
    );
    let (code, _, error) = click(&["--check", "--guest"], "\nIdle ->\n RawSocket(x);");
    assert_eq!(code, 1);
    let reason = "reaches the operating system and is not available in a guest";
    assert_eq!(
        error,
        format!("<stdin>:3:2: RawSocket@2 :: RawSocket: {reason}\n")
    );
}

#[test]
fn ten_million_flows_may_be_asked_for() {
    let config = |flows: u32| {
        format!(
            "Idle -> rw :: IPRewriter(pattern 10.0.0.1 1024-65535 - - 0 0, \
             MAPPING_CAPACITY {flows}) -> Discard"
        )
    };
    assert_eq!(
        click(&["-q", "-e", &config(10_000_000)], ""),
        (0, String::new(), String::new())
    );
    let (code, _, error) = click(&["-q", "-e", &config(20_000_000)], "");
    assert_eq!(code, 1);
    assert!(error.contains("MAPPING_CAPACITY"), "{error}");
}

#[test]
fn simulated_time_takes_none() {
    let config = "RatedSource(RATE 1, LIMIT 100, STOP true) -> c :: Counter -> Print(x, CONTENTS NONE) -> Discard";
    let (code, output, console) = click(&["--simtime", "-e", config, "-h", "c.count"], "");
    assert_eq!(
        (code, output.as_str(), console.lines().count()),
        (0, "100\n", 100)
    );
}

#[test]
fn the_flat_configuration_is_a_configuration() {
    let config = "elementclass A { $n | -> Queue($n) -> } Idle -> A(5) -> Idle;";
    let (code, flat, _) = click(&["-q", "-o", "-", "-e", config], "");
    assert_eq!(code, 0);
    assert!(flat.contains("A@2/Queue@1 :: Queue(5);"), "{flat}");
    assert_eq!(click(&["-q", "-o", "-"], &flat).1, flat);
}

#[test]
fn standard_output_comes_in_the_order_in_which_it_is_written() {
    let config =
        "RatedSource(abcd, LIMIT 2, RATE 1000, STOP true) -> d :: ToIPSummaryDump(-, FIELDS len)
        -> Discard; DriverManager(pause, print 'end');";
    let (code, out, _) = click(&["-e", config, "-h", "d.count", "-h", "d.filename"], "");
    let dump = "!IPSummaryDump 1.3\n!data ip_len\n4\n4\nend\n";
    let handlers = "d.count:\n2\n\nd.filename:\n-\n\n";
    assert_eq!((code, out), (0, format!("{dump}{handlers}")));
}

#[test]
fn click_flatten_prints_any_classes_flat() {
    let flatten = |args: &[&str]| {
        Command::new(env!("CARGO_BIN_EXE_click-flatten"))
            .args(args)
            .output()
            .unwrap()
    };
    let config = "elementclass Box { input -> Whatever(1) -> output } A -> Box -> B";
    let flat = flatten(&["-e", config]);
    let text = String::from_utf8(flat.stdout).unwrap();
    assert!(text.contains("Box@2/Whatever@1 :: Whatever(1);"), "{text}");
    assert!(
        text.contains("A@1 -> Box@2/Whatever@1\n    -> B@3;"),
        "{text}"
    );
    let wrong = flatten(&["-e", "a -> -> b"]);
    assert!(!wrong.status.success() && !wrong.stderr.is_empty());
    assert!(!flatten(&["/does/not/exist"]).status.success());
}

#[test]
fn simulated_time_ends_when_nothing_is_left_to_do() {
    for source in [
        "InfiniteSource(LIMIT 5)",
        "RatedSource(RATE 10, LIMIT 5)",
        "FromIPSummaryDump(DATA \"!data timestamp\\n1\\n2\\n3\\n4\\n5\", TIMING true)",
    ] {
        let config =
            format!("{source} -> Queue -> Unqueue -> Queue -> Unqueue -> c :: Counter -> Discard");
        let (code, out, error) = click(&["--simtime", "-e", &config, "-h", "c.count"], "");
        assert_eq!((code, out.as_str()), (0, "5\n"), "{source}: {error}");
    }
}

#[test]
fn scripts_of_a_guest_reach_no_files_of_the_machine() {
    let path = std::env::temp_dir().join(format!("click-guest-{}", std::process::id()));
    let name = path.display();
    let config = format!("Script(print >{name} \"x\", print $(cat {name}), print \"here\", stop)");
    let (code, out, error) = click(&["--guest", "-e", &config], "");
    assert_eq!(
        (code, out.as_str()),
        (0, ""),
        "standard output is not reached"
    );
    assert!(error.contains("print: \"/"), "{error}");
    assert!(
        error.contains("is not a member of the configuration's archive"),
        "{error}"
    );
    assert!(error.contains("here\n") && !path.exists(), "{error}");
    assert_eq!(click(&["-e", &config], "").1, "x\nhere\n");
    std::fs::remove_file(&path).unwrap();
    // it has files of its own
    let own = "Script(print >x \"y\", print $(cat x), stop)";
    assert_eq!(click(&["--guest", "-e", own], "").2, "y\n");
    assert!(!std::path::Path::new("x").exists());
}

#[test]
fn warnings_go_to_standard_error_and_change_nothing_else() {
    let config = "elementclass A { Idle -> Discard;\n -> Discard }";
    let warning = "config:2: warning: suggest 'input ->' or '[0] ->' to start connection\n";
    let run = |more: &[&str]| click(&[&["-q", "-e", config], more].concat(), "");
    assert_eq!(run(&[]), (0, String::new(), warning.to_string()));
    assert_eq!(run(&["-w"]), (0, String::new(), String::new()));
}

/// The processors that the process may use whose `/proc/PID/status` this is.
fn processors(status: &str) -> &str {
    let mut lines = status.lines();
    let list = lines.find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.unwrap().trim()
}

#[test]
fn the_program_runs_on_the_processor_it_is_told() {
    let own = std::fs::read_to_string("/proc/self/status").unwrap();
    let last = processors(&own).rsplit([',', '-']).next().unwrap();
    let config = "Script(print $(cat /proc/self/status), stop)";
    let (code, output, _) = click(&[&format!("--cpu={last}"), "-e", config], "");
    assert_eq!((code, processors(&output)), (0, last));
    let (code, _, errors) = click(&["-q", "--cpu=60000", "-e", ""], "");
    assert!(
        code == 0 && errors.contains("processor 60000: "),
        "{errors}"
    );
}

#[test]
fn a_check_for_guests_refuses_what_is_too_much_for_them() {
    let mut defines = String::new();
    for n in 1..11 {
        let value = format!("$v{}", n - 1).repeat(12);
        defines += &format!("define($v{n} {value});\n");
    }
    let text = format!("define($v0 );\n{defines}Idle -> Print($v10) -> Discard;");
    let (code, _, error) = click(&["--check", "--guest", "-e", &text], "");
    let want = "expanding its arguments takes more than 16777216 steps of work, the limit";
    assert_eq!(code, 1);
    assert!(
        error.contains("config:12:9: ") && error.contains(want),
        "{error}"
    );
    let many = "Idle -> Discard;".repeat(2500);
    let (_, _, error) = click(&["--check", "--guest", "-e", &many], "");
    assert!(error.contains("more than 4096 elements"), "{error}");
    assert_eq!(click(&["--check", "-e", &many], "").2, "");
}

#[test]
fn tells_the_groups_of_a_configuration() {
    let config = "elementclass Sealed { input -> w :: WireGuard($KEY) -> output }\n\
                  FromDevice($IN) -> Sealed -> c :: Counter -> Queue -> ToDevice($OUT);";
    assert_eq!(
        click(&["--groups", "--guest"], config),
        (
            0,
            "device FromDevice\nstandard Counter\nwireguard WireGuard\n".to_string(),
            String::new()
        )
    );
    for (wrong, reason) in [
        (
            "Idle -> Nope;",
            "<stdin>:1:9: undeclared element or unknown class 'Nope'\n",
        ),
        (
            "Idle -> RawSocket(x);",
            "<stdin>:1:9: RawSocket@2 :: RawSocket: reaches the operating system and is not available in a guest\n",
        ),
    ] {
        assert_eq!(
            click(&["--groups", "--guest"], wrong),
            (1, String::new(), reason.to_string())
        );
    }
}

#[test]
fn a_guests_configuration_reads_no_library_of_the_machine() {
    let path = std::env::temp_dir().join(format!("click-library-{}", std::process::id()));
    std::fs::write(&path, "secret words").unwrap();
    let config = format!("require(library {}); Idle -> Discard;", path.display());
    let (_, out, of_machine) = click(&["--check", "-e", &config], "");
    let (_, _, of_guest) = click(&["--check", "--guest", "-e", &config], "");
    std::fs::remove_file(&path).unwrap();
    assert_eq!(out, "");
    assert!(of_machine.contains("secret"), "{of_machine}");
    assert!(!of_guest.contains("secret"), "{of_guest}");
}

/// A configuration of the catalog as its package has it.
fn with_libraries(config: &str, catalog: &str) -> String {
    let mut whole = String::new();
    for line in config.lines() {
        let library = line
            .strip_prefix("require(library ")
            .and_then(|rest| rest.strip_suffix(");"));
        match library {
            Some(name) => {
                let path = format!("{catalog}/library/{name}");
                whole += &std::fs::read_to_string(path).unwrap();
            }
            None => whole += line,
        }
        whole.push('\n');
    }
    whole
}

#[test]
fn every_vnf_of_the_catalog_has_groups_that_guests_have() {
    let catalog = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../vnfd-templates");
    let mut count = 0;
    for folder in std::fs::read_dir(catalog).unwrap() {
        let folder = folder.unwrap().path();
        let name = folder.file_name().unwrap().to_str().unwrap();
        let file = folder.join(format!("Files/{name}.click"));
        if !file.exists() {
            continue;
        }
        let config = with_libraries(&std::fs::read_to_string(file).unwrap(), catalog);
        let (code, groups, error) = click(&["--groups", "--guest", "--file", "-"], &config);
        assert_eq!((code, error), (0, String::new()), "{name}");
        assert!(groups.contains("device "), "{name}: {groups}");
        assert_eq!(
            groups.contains("wireguard WireGuard"),
            name == "vpn-gateway"
        );
        count += 1;
    }
    assert!(count >= 19, "{count}");
}
