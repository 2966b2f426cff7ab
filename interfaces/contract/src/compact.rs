// SPDX-License-Identifier: Apache-2.0
//! Long values in few characters: `{"$times": 3, "of": VALUE}` is a list of three, or a text
//! three times as long.
use serde_json::{Value, json};

const TIMES: &str = "$times";

/// The short form of `times` repetitions.
pub fn repeated(value: Value, times: usize) -> Value {
    json!({TIMES: times, "of": value})
}

/// Writes each repetition out.
pub fn expanded(value: &Value) -> Value {
    match value {
        Value::Array(entries) => entries.iter().map(expanded).collect(),
        Value::Object(members) => match members.get(TIMES).and_then(Value::as_u64) {
            Some(times) => written_out(&expanded(&members["of"]), times as usize),
            None => {
                let pairs = members.iter();
                Value::Object(pairs.map(|(k, v)| (k.clone(), expanded(v))).collect())
            }
        },
        plain => plain.clone(),
    }
}

fn written_out(value: &Value, times: usize) -> Value {
    match value.as_str() {
        Some(text) => text.repeat(times).into(),
        None => vec![value.clone(); times].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_form_becomes_a_list_or_a_text() {
        let short = json!({"a": [repeated(json!("ab"), 2), repeated(json!([1]), 3)]});
        assert_eq!(expanded(&short), json!({"a": ["abab", [[1], [1], [1]]]}));
    }
}
