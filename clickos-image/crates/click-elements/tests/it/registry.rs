// SPDX-License-Identifier: Apache-2.0
//! An element counts when cases give each of its arguments and use each of its ports: this test walks the registry and
//! looks at the elements that the configurations of the corpus consist of.
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use click_conformance::{Case, Step};
use click_core::class::ArgKind;
use click_core::text::{shift_word, split_args};
use click_core::{
    Class, Device, Entry, Environment, HandlerInfo, Host, Kind, MemoryDevice, ReadFile, Router,
    ServerSocket, Tun, TunRequest, WriteFile,
};

/// An element of a case.
struct Instance {
    class: &'static str,
    /// Names of the arguments that are given.
    given: BTreeSet<&'static str>,
    ports: [usize; 2],
}

/// The files of a case by name, and a configuration.
pub struct Bench {
    pub files: BTreeMap<String, Vec<u8>>,
    pub config: String,
}

/// The configurations of the corpus, with the files of their cases.
pub fn benches() -> Vec<Bench> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let children = |dir: &Path| std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let groups: Vec<PathBuf> = children(&root).filter(|p| p.is_dir()).collect();
    let paths = groups.iter().flat_map(|group| children(group));
    let cases = paths.map(|p| Case::parse("", &std::fs::read_to_string(p).unwrap()));
    cases.flat_map(|case| benches_of(&case)).collect()
}

/// The configuration a case begins with, and those of hot swaps.
fn benches_of(case: &Case) -> Vec<Bench> {
    let steps = |what| case.steps.iter().filter(move |step| step.arg(0) == what);
    let content = |step: &Step| bytes(&step.text());
    let files = steps("file").map(|step| (format!("/{}", step.arg(1)), content(step)));
    let files: BTreeMap<_, _> = files.collect();
    let swapped = steps("swap").map(Step::text);
    let configs = std::iter::once(case.config.clone()).chain(swapped);
    let bench = |config: String| Bench {
        files: files.clone(),
        config: config.replace("$DIR", ""),
    };
    configs.map(bench).collect()
}

/// The bytes of hexadecimal text.
fn bytes(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    pairs.map(byte).collect()
}

/// The files of a case, in memory; what is written is not kept, and no program connects.
struct Files(BTreeMap<String, Vec<u8>>);

struct Reader(std::io::Cursor<Vec<u8>>);

impl ReadFile for Reader {
    fn read(&mut self, into: &mut [u8]) -> Result<usize, String> {
        std::io::Read::read(&mut self.0, into).map_err(|e| e.to_string())
    }
}

struct Forgets;

impl WriteFile for Forgets {
    fn write(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
}

impl Host for Files {
    fn print(&self, _: &str) -> bool {
        true
    }

    fn open_file(&self, path: &str) -> Result<Box<dyn ReadFile>, String> {
        let content = self.0.get(path).cloned();
        let content = content.ok_or_else(|| format!("{path}: no such file"))?;
        Ok(Box::new(Reader(std::io::Cursor::new(content))))
    }

    fn create_file(&self, _: &str, _: bool) -> Result<Box<dyn WriteFile>, String> {
        Ok(Box::new(Forgets))
    }

    fn open_tun(&self, request: &TunRequest) -> Result<Tun, String> {
        Ok(Tun {
            name: request.name.clone().unwrap_or_default(),
            device: Rc::new(RefCell::new(MemoryDevice::new([0; 6]))),
        })
    }

    fn listen(&self, _: &ServerSocket) -> Result<String, String> {
        Ok(String::new())
    }
}

pub fn environment(files: BTreeMap<String, Vec<u8>>) -> Environment {
    let device = |n: u8| -> Rc<RefCell<dyn Device>> {
        Rc::new(RefCell::new(MemoryDevice::new([2, 0, 0, 0, 0, n])))
    };
    Environment {
        devices: (0..4u8)
            .map(|n| (u32::from(n), device(n)))
            .collect::<BTreeMap<_, _>>(),
        host: Some(Rc::new(Files(files))),
        ..Environment::new()
    }
}

/// The elements of all configurations that can be built.
fn instances() -> Vec<Instance> {
    let registry = click_elements_os::registry();
    let build = |bench: Bench| {
        let environment = environment(bench.files);
        Router::build("t", &bench.config, &registry, environment, 1).ok()
    };
    benches()
        .into_iter()
        .filter_map(build)
        .flat_map(elements)
        .collect()
}

fn elements(mut router: Router) -> Vec<Instance> {
    let handlers = router.handlers();
    let names = handlers
        .iter()
        .filter_map(|h| h.name.strip_suffix(".class"));
    let names: Vec<String> = names.map(String::from).collect();
    names
        .iter()
        .map(|name| instance(&mut router, name))
        .collect()
}

fn instance(router: &mut Router, name: &str) -> Instance {
    let mut read = |handler: &str| {
        let value = router.read_handler(&format!("{name}.{handler}"), "", 1);
        String::from_utf8(value.unwrap()).unwrap()
    };
    let registry = click_elements_os::registry();
    let class = registry.get(read("class").trim()).unwrap().class;
    let ports = read("ports");
    Instance {
        class: class.name,
        given: given(class, read("config").trim()),
        ports: ["input", "output"].map(|what| count(&ports, what)),
    }
}

/// The number in a line such as `2 inputs`.
fn count(ports: &str, what: &str) -> usize {
    let mut lines = ports.lines().filter_map(|line| line.split_once(' '));
    let line = lines.find(|(_, rest)| rest.trim_end_matches('s') == what);
    line.unwrap().0.parse().unwrap()
}

/// The arguments that `config` gives, by keyword and by position.
fn given(class: &'static Class, config: &str) -> BTreeSet<&'static str> {
    let args = split_args(config);
    let keyword = |text: &String| {
        let (word, value) = shift_word(text);
        let named = class
            .args
            .iter()
            .find(|a| a.name == word && a.kind != ArgKind::Rest);
        named.filter(|a| !value.is_empty() || a.kind == ArgKind::Keyword)
    };
    let mut given: BTreeSet<_> = args.iter().filter_map(keyword).map(|a| a.name).collect();
    let positional = |kind| matches!(kind, ArgKind::Mandatory | ArgKind::Optional);
    let free = class
        .args
        .iter()
        .filter(|a| positional(a.kind) && !given.contains(a.name));
    let free: Vec<_> = free.map(|a| a.name).collect();
    let bare = args
        .iter()
        .filter(|text| keyword(text).is_none() && !text.is_empty())
        .count();
    given.extend(free.iter().take(bare));
    let rest = class
        .args
        .iter()
        .filter(|a| a.kind == ArgKind::Rest && bare > free.len());
    given.extend(rest.map(|a| a.name));
    given
}

/// How many ports a class has at most, of those a case has to use: `1/1-2` and the like; without a limit two.
fn most_ports(spec: &str) -> [usize; 2] {
    let (inputs, outputs) = spec.split_once('/').unwrap_or((spec, spec));
    let most = |side: &str| match side.rsplit('-').next().unwrap_or(side) {
        "" | "=" => 2,
        number => number.trim_end_matches('+').parse().unwrap_or(2),
    };
    [most(inputs), most(outputs)]
}

fn gaps(entry: &Entry, instances: &[Instance]) -> Vec<String> {
    let class = entry.class;
    let own: Vec<_> = instances.iter().filter(|i| i.class == class.name).collect();
    let missing = |a: &&click_core::class::Arg| own.iter().all(|i| !i.given.contains(a.name));
    let arguments = class.args.iter().filter(missing);
    let mut gaps: Vec<_> = arguments
        .map(|a| format!("no case gives argument {}", a.name))
        .collect();
    for (side, most) in most_ports(class.ports).into_iter().enumerate() {
        let used = own.iter().map(|i| i.ports[side]).max().unwrap_or(0);
        if used < most {
            let what = ["inputs", "outputs"][side];
            gaps.push(format!("no case with {most} {what}, the most are {used}"));
        }
    }
    gaps
}

/// A class whose elements are always wrong.
const NEVER_BUILT: &str = "ErrorElement";

#[test]
fn cases_give_each_argument_and_use_each_port() {
    let instances = instances();
    assert!(instances.len() > 1000, "{} elements", instances.len());
    let entries = click_elements_os::entries();
    let lines = entries
        .filter(|e| e.class.name != NEVER_BUILT)
        .flat_map(|entry| {
            let name = entry.class.name;
            let gaps = gaps(entry, &instances).into_iter();
            gaps.map(move |gap| format!("{}/{name}: {gap}", entry.group))
        });
    let lines: Vec<String> = lines.collect();
    assert!(
        lines.is_empty(),
        "{} gaps\n{}",
        lines.len(),
        lines.join("\n")
    );
}

#[test]
fn documentation_begins_with_a_purpose_and_shows_the_class() {
    for entry in click_elements_os::entries() {
        let name = entry.class.name;
        let docs = entry.docs();
        let (purpose, rest) = docs.split_once("\n\n").unwrap_or_default();
        assert!(
            purpose.trim().ends_with('.'),
            "{name}: the purpose is a sentence"
        );
        let parts: Vec<_> = rest.split("# ").collect();
        for section in ["Synopsis", "Example"] {
            let text = parts.iter().find_map(|part| part.strip_prefix(section));
            assert!(
                text.is_some_and(|t| t.contains(name)),
                "{name}: {section} shows the class"
            );
        }
        let ports = parts.iter().find_map(|part| part.strip_prefix("Ports\n"));
        assert!(
            ports.is_some_and(|t| !t.trim().is_empty()),
            "{name}: Ports says which"
        );
    }
}

#[test]
fn positions_and_keywords_are_told_apart() {
    let registry = click_elements_os::registry();
    let class = registry.get("IPEncap").unwrap().class;
    let names = |config| given(class, config).into_iter().collect::<Vec<_>>();
    assert_eq!(names("4, DST 1.2.3.4, 5.6.7.8"), ["DST", "PROTO", "SRC"]);
    assert_eq!(most_ports("2/1-2"), [2, 2]);
    assert_eq!(most_ports("-/="), [2, 2]);
    assert_eq!(most_ports("0"), [0, 0]);
}

/// The names of handlers that do something once, in Click and here.
const COMMANDS: [&str; 17] = [
    "block_new_flows",
    "clear",
    "disconnect",
    "flush",
    "goto",
    "hold",
    "merge",
    "reset",
    "reset_count",
    "reset_counts",
    "reset_hits",
    "reset_timing",
    "run",
    "send",
    "state",
    "step",
    "stop",
];
/// The names of handlers that change a part of a table.
const EDITS: [&str; 7] = [
    "add",
    "add_user",
    "ctrl",
    "delete",
    "insert",
    "remove",
    "remove_user",
];

/// A guest that starts again gets the values that were written last. With a command or an edit
/// among them it would stop again, or lack what an earlier edit added.
#[test]
fn no_command_and_no_edit_counts_as_a_value() {
    let registry = click_elements_os::registry();
    let mut seen = BTreeSet::new();
    for (name, entry) in registry.iter() {
        let class = entry.class;
        for handler in class.handlers.iter().filter(|handler| handler.write) {
            let expected = match handler.name {
                known if COMMANDS.contains(&known) => Kind::Command,
                known if EDITS.contains(&known) => Kind::Edit,
                _ => continue,
            };
            assert_eq!(handler.kind, expected, "{name}.{}", handler.name);
            seen.insert(handler.name);
        }
    }
    let all = COMMANDS.iter().chain(&EDITS).copied();
    assert_eq!(seen, all.collect());
}

/// The names of the handlers that the source of the elements makes with this function.
fn made_with(function: &str) -> BTreeSet<String> {
    let (mut names, call) = (BTreeSet::new(), format!("{function}("));
    for path in sources(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src")) {
        let text = std::fs::read_to_string(path).unwrap();
        let calls = text.split(&call).skip(1);
        let quoted = calls.filter_map(|call| call.trim_start().strip_prefix('"')?.split_once('"'));
        names.extend(quoted.map(|(name, _)| name.to_string()));
    }
    names
}

fn sources(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = paths.partition(|path| path.is_dir());
    let below = folders.iter().flat_map(|folder| sources(folder));
    files.into_iter().chain(below).collect()
}

/// The kind of a handler follows from its name, so a new name has to be known there.
#[test]
fn the_kind_of_a_name_is_that_of_the_function_which_makes_the_handler() {
    let (commands, edits) = (made_with("command"), made_with("edit"));
    assert!(commands.contains("reset_log") && edits.contains("remove"));
    let all = [(commands, Kind::Command), (edits, Kind::Edit)];
    for (name, kind) in all
        .iter()
        .flat_map(|(names, kind)| names.iter().map(move |n| (n, kind)))
    {
        assert_eq!(Kind::of(name), *kind, "{name}");
    }
}

/// A script that answers for other elements passes on what is written, a `reset` too.
#[test]
fn a_script_for_any_handler_has_the_kinds_of_their_names() {
    let config = "c :: Counter; p :: Script(TYPE PROXY, write c.$0); Idle -> c -> Discard;";
    let registry = click_elements_os::registry();
    let router = Router::build("t", config, &registry, Environment::new(), 1).unwrap();
    let kinds = ["reset", "insert", "rate"].map(|name| router.handler_kind(&format!("p.{name}")));
    assert_eq!(kinds, [Kind::Command, Kind::Edit, Kind::Value]);
}

/// A guest that moves to another host writes there what it has read here (docs/adr/0070).
#[test]
fn what_an_element_reads_can_be_written() {
    let registry = click_elements_os::registry();
    let mut refused = BTreeSet::new();
    for bench in benches() {
        let environment = environment(bench.files);
        let Ok(mut router) = Router::build("t", &bench.config, &registry, environment, 1) else {
            continue;
        };
        let both = |h: &HandlerInfo| h.read && h.write && h.name.contains('.');
        for handler in router.handlers().into_iter().filter(both) {
            let name = handler.name;
            let Ok(value) = router.read_handler(&name, "", 1) else {
                continue;
            };
            if let Err(error) = router.write_handlers(&[(&name, &value)], 1) {
                let (element, handler) = name.rsplit_once('.').unwrap();
                let class = router.read_handler(&format!("{element}.class"), "", 1);
                let class = String::from_utf8(class.unwrap()).unwrap();
                let value = String::from_utf8_lossy(&value).into_owned();
                refused.insert(format!("{}.{handler}: {value:?}: {error}", class.trim()));
            }
        }
    }
    assert!(refused.is_empty(), "{refused:#?}");
}
