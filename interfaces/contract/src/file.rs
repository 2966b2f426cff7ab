// SPDX-License-Identifier: Apache-2.0
//! The file of the contract: all verbs with their types, for programs that are not in Rust.
use std::fmt::Write as _;
use std::path::PathBuf;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

/// The file, which is in git: a controller installs our wheel without a Rust compiler.
pub fn path() -> PathBuf {
    let here = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    here.with_file_name("clickos_client").join("contract.json")
}

/// The text of the file: sorted keys, and one line for each verb, definition and group of limits.
pub fn text() -> String {
    let mut generator = SchemaGenerator::default();
    let mut text = String::from("{\n");
    let cosmosd = group(
        "cosmosd",
        &json!(cosmos_proto::verb::contract(&mut generator)),
    );
    let valed = group("valed", &json!(vale_proto::verb::contract(&mut generator)));
    let definitions: Map<_, _> = generator.take_definitions(true).into_iter().collect();
    let definitions = group("$defs", &Value::Object(definitions));
    let _ = writeln!(
        text,
        "{definitions},\n{cosmosd},\n\"limits\": {},\n{valed}\n}}",
        limits()
    );
    text
}

fn group(name: &str, members: &Value) -> String {
    let line = |(key, value): (&String, &Value)| format!("{}: {value}", json!(key));
    let lines = members.as_object().into_iter().flatten().map(line);
    let lines: Vec<_> = lines.collect();
    format!("\"{name}\": {{\n{}\n}}", lines.join(",\n"))
}

/// Sizes that several parts check.
fn limits() -> Value {
    json!({
        "chain_hops": vale_proto::MAX_HOPS,
        "config_bytes": cosmos_proto::MAX_CONFIG,
        "handler_name_bytes": cosmos_proto::MAX_NAME,
        "line_bytes": control_socket::MAX_LINE,
        "mtu_bytes": vale_proto::MTU_RANGE.end(),
        "parameter_bytes": cosmos_proto::MAX_PARAM,
        "reads": cosmos_proto::MAX_READS,
        "writes": cosmos_proto::MAX_WRITES,
    })
}

/// Compares the file with the types.
///
/// # Errors
/// The first line that differs, and the cure.
pub fn check() -> Result<(), String> {
    let (path, is) = (path(), text());
    let was = std::fs::read_to_string(&path).unwrap_or_default();
    if was == is {
        return Ok(());
    }
    let mut pairs = is.lines().zip(was.lines().chain(std::iter::repeat("")));
    let (line, _) = pairs.find(|(is, was)| is != was).unwrap_or(("", ""));
    Err(format!(
        "{}: differs from the types, first at\n{line:.200}\n\
         `cargo run -p contract` writes it; read the difference",
        path.display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_that_of_the_types() {
        check().unwrap_or_else(|e| panic!("{e}"));
    }

    #[test]
    fn each_definition_has_its_own_name() {
        let contract: Value = serde_json::from_str(&text()).unwrap();
        // schemars numbers the second type of one name.
        let twins = contract["$defs"].as_object().unwrap().keys();
        let twins: Vec<_> = twins
            .filter(|name| name.ends_with(|c: char| c.is_ascii_digit()))
            .collect();
        assert!(twins.is_empty(), "two types have one name: {twins:?}");
    }
}
