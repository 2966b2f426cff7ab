// SPDX-License-Identifier: Apache-2.0
//! Golden refusals: the answers of a daemon to bad requests, word by word.
//!
//! `interfaces/golden/requests/DAEMON.jsonl` has good requests (`"good": true`), and bad ones that
//! no rule makes. A verb without a good request uses that of a verb with the same arguments.
//! `interfaces/golden/DAEMON.jsonl` has these, variants of the good ones, and the outcome of each. A
//! test of each daemon holds its answers against that file. With `UPDATE_GOLDEN=1` the test makes
//! the requests again and writes the file.
use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::compact::{expanded, repeated};
use crate::mutation::{doubles, singles};

/// Refusals by these codes depend on nothing but the request and the roles of the peer.
const REFUSALS: [&str; 3] = ["bad-request", "forbidden", "too-long"];
/// The outcome of all other requests.
const ACCEPTED: &str = "accepted";
/// Requests with two faults, for each good one.
const DOUBLES: usize = 8;
/// Accepted variants of a verb that are kept. Each is carried out.
const MAX_ACCEPTED: usize = 2;
/// More bytes than a request of a small verb may have.
const LONG: usize = 1 << 16;

/// Asks a daemon with the line of a peer with these roles; an error has code and message.
pub trait Ask: FnMut(&[String], &[u8]) -> Result<(), (String, String)> {}

impl<F: FnMut(&[String], &[u8]) -> Result<(), (String, String)>> Ask for F {}

/// Fails unless `daemon`, with these verbs and roles, answers as its golden file says.
///
/// # Panics
/// An answer differs, a verb has no line in the file, or a file cannot be used.
pub fn hold(daemon: &str, verbs: &[&str], roles: &[&str], mut ask: impl Ask) {
    let golden = path(&format!("{daemon}.jsonl"));
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let lines = golden_lines(&requests(daemon, verbs, roles), &mut ask);
        std::fs::write(&golden, lines).unwrap_or_else(|e| panic!("{}: {e}", golden.display()));
    }
    let kept = read(&golden);
    for request in &kept {
        let (was, is) = (&request["outcome"], outcome(request, &mut ask));
        assert!(
            *was == is,
            "{}: the daemon answers differently to\n{request}\n was {was}\n  is {is:?}\n\
             `UPDATE_GOLDEN=1 cargo test golden` writes the file; read the difference",
            golden.display()
        );
    }
    let known: HashSet<_> = kept.iter().filter_map(|r| r["verb"].as_str()).collect();
    for verb in verbs {
        assert!(known.contains(verb), "{}: lacks {verb}", golden.display());
    }
}

/// The lines of the golden file: the given requests, and of the variants the first of each class.
fn golden_lines(requests: &[Value], ask: &mut impl Ask) -> String {
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines = String::new();
    for request in requests {
        let mut request = request.clone();
        let is_variant = request.as_object_mut().and_then(|r| r.remove("variant"));
        let outcome = outcome(&request, ask);
        let verb = request["verb"].as_str().unwrap_or_default();
        let (class, most) = match &*outcome {
            ACCEPTED => (verb.to_owned(), MAX_ACCEPTED),
            refused => (class(refused, verb), 1),
        };
        let count = counts.entry(class).or_default();
        *count += 1;
        if is_variant.is_none() || *count <= most {
            request["outcome"] = outcome.into();
            lines.push_str(&format!("{request}\n"));
        }
    }
    lines
}

/// A refusal without its verb, and without what it quotes of the request.
fn class(refused: &str, verb: &str) -> String {
    let text = refused.replacen(&format!(": {verb}: "), ": ", 1);
    // Each place can have a wrong type, so the expected one is enough.
    let text = match (text.find("invalid "), text.find(", expected ")) {
        (Some(from), Some(to)) if from < to => &text[to..],
        _ => &text,
    };
    let unquoted: String = text.split('"').step_by(2).collect();
    unquoted.replace(|c: char| c.is_ascii_digit(), "")
}

fn outcome(request: &Value, ask: &mut impl Ask) -> String {
    let roles = match request["roles"].as_array() {
        Some(roles) => roles.iter().filter_map(Value::as_str).collect(),
        None => vec!["operator"],
    };
    let roles: Vec<String> = roles.into_iter().map(str::to_owned).collect();
    match ask(&roles, &line(request)) {
        Err((code, message)) if REFUSALS.contains(&&*code) => format!("{code}: {message}"),
        _ => ACCEPTED.to_owned(),
    }
}

fn line(request: &Value) -> Vec<u8> {
    if let Some(line) = request["line"].as_str() {
        return line.as_bytes().to_vec();
    }
    let (verb, args) = (&request["verb"], expanded(&request["args"]));
    let line = json!({"v": 1, "id": 1, "verb": verb, "args": args});
    line.to_string().into_bytes()
}

fn path(name: &str) -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.with_file_name("golden").join(name)
}

fn read(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path);
    let text = text.unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"));
    text.lines().map(parse).collect()
}

/// All requests that may enter the golden file, in a fixed order.
fn requests(daemon: &str, verbs: &[&str], roles: &[&str]) -> Vec<Value> {
    let path = path(&format!("requests/{daemon}.jsonl"));
    let mut good = BTreeMap::new();
    let mut all = Vec::new();
    for mut request in read(&path) {
        let is_good = request.as_object_mut().and_then(|r| r.remove("good"));
        if is_good.is_some() {
            let verb = request["verb"].as_str().unwrap_or_default().to_owned();
            all.extend(variants(&verb, &request["args"], all.len() as u64));
            good.entry(verb).or_insert(request["args"].clone());
        }
        all.push(request);
    }
    let contract: Value = serde_json::from_str(&crate::text()).unwrap_or_default();
    let shape = |verb: &str| &contract[daemon][verb]["args"];
    for verb in verbs {
        let own = good.get(*verb);
        let alike = || good.iter().find(|(other, _)| shape(other) == shape(verb));
        let args = own.or_else(|| alike().map(|(_, args)| args));
        let args = args.unwrap_or_else(|| panic!("{}: no good request of {verb}", path.display()));
        if own.is_none() {
            all.push(json!({"verb": verb, "args": args}));
        }
        all.extend(of_peers(verb, args, roles));
    }
    all
}

fn variants(verb: &str, args: &Value, seed: u64) -> Vec<Value> {
    let ones = singles(args).into_iter();
    let all = ones.chain(doubles(args, DOUBLES, seed));
    all.map(|args| json!({"verb": verb, "args": args, "variant": true}))
        .collect()
}

/// A good request by peers of each role and of none, and one that is long.
fn of_peers(verb: &str, args: &Value, roles: &[&str]) -> Vec<Value> {
    let one = |role: &&str| json!({"verb": verb, "args": args, "roles": [role]});
    let mut all: Vec<Value> = roles.iter().map(one).collect();
    all.push(json!({"verb": verb, "args": args, "roles": []}));
    let long = json!({"nonsense": repeated(json!("a"), LONG)});
    all.push(json!({"verb": verb, "args": long}));
    all
}
