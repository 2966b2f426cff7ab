// SPDX-License-Identifier: Apache-2.0
//! The lines of the protocol as plain structs.
use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::bounded::{bounded, quoted};
use crate::{MAX_LINE, MAX_VALUES, VERSION};

/// The beginning of the message about a verb that the daemon does not have.
const UNKNOWN_VERB: &str = "unknown verb ";

/// A refused call: a code for programs, a message for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiError {
    pub code: String,
    pub message: String,
}

impl ApiError {
    pub fn new(code: &str, message: impl Into<String>) -> Self {
        Self {
            code: code.to_owned(),
            message: message.into(),
        }
    }

    /// An error with the code `bad-request`.
    pub fn bad_request(message: impl Into<String>) -> Self {
        Self::new("bad-request", message)
    }

    /// The error about a verb that the daemon does not have.
    pub(crate) fn unknown_verb(verb: &str) -> Self {
        Self::bad_request(format!("{UNKNOWN_VERB}{}", quoted(verb)))
    }

    /// True if the daemon does not have the verb: it is older than its client.
    pub fn is_unknown_verb(&self) -> bool {
        self.code == "bad-request" && self.message.starts_with(UNKNOWN_VERB)
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.message, self.code)
    }
}

impl std::error::Error for ApiError {}

/// A line a daemon sends on its own to those who subscribed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Event {
    pub event: String,
    #[serde(default)]
    pub data: Value,
}

/// One call, as a client sends it.
#[derive(Debug, Serialize)]
pub(crate) struct Request<'a, A> {
    pub v: u32,
    pub id: u64,
    pub verb: &'a str,
    pub args: A,
}

/// A line as a daemon reads it: its arguments stay text until the verb and the peer's role are
/// known. Unknown fields are refused so that a typing error is not silently ignored.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Call<'a> {
    v: u32,
    pub id: u64,
    #[serde(borrow)]
    pub verb: Cow<'a, str>,
    #[serde(borrow, default)]
    args: Option<&'a RawValue>,
}

impl<'a> Call<'a> {
    pub fn parse(line: &'a [u8]) -> Result<Self, ApiError> {
        let refused = |words: String| ApiError::bad_request(format!("request: {words}"));
        let text = std::str::from_utf8(line).map_err(|e| refused(e.to_string()))?;
        // A struct can be read from an array too, which no client should rely on.
        if !text.trim_start().starts_with('{') {
            return Err(refused("expected an object".to_owned()));
        }
        let call: Self = serde_json::from_str(text).map_err(|e| refused(bounded(&e)))?;
        if call.v != VERSION {
            let message = format!("version {} is not spoken here, only {VERSION}", call.v);
            return Err(refused(message));
        }
        Ok(call)
    }

    /// The arguments; none are an empty object.
    pub fn args(&self) -> &'a str {
        match self.args.map(RawValue::get) {
            None | Some("null") => "{}",
            Some(text) => text,
        }
    }
}

/// A line that a client reads: an answer (`Ok` or `Error`) or an event.
#[derive(Debug, Deserialize)]
pub(crate) struct Incoming {
    #[serde(default)]
    pub id: Option<u64>,
    pub ok: Option<Value>,
    pub error: Option<ApiError>,
    pub event: Option<String>,
    #[serde(default)]
    pub data: Value,
}

#[derive(Serialize)]
struct Answer<'a> {
    v: u32,
    id: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ok: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a ApiError>,
}

/// The answer to request `id`; without an id if the request could not be read. One that does not
/// fit into a line becomes an error.
pub(crate) fn answer(id: Option<u64>, result: Result<&Value, &ApiError>) -> Vec<u8> {
    let (ok, error) = (result.ok(), result.err());
    let v = VERSION;
    let line = json_line(&Answer { v, id, ok, error });
    if line.len() <= MAX_LINE {
        return line;
    }
    let message = format!("the answer is longer than {MAX_LINE} bytes; ask for less");
    answer(id, Err(&ApiError::new("too-long", message)))
}

pub(crate) fn event_line(event: &Event) -> Vec<u8> {
    json_line(&json!({"v": VERSION, "event": event.event, "data": event.data}))
}

fn json_line(line: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(line).expect("values with text as keys are JSON")
}

/// Fails for a line of more than [`MAX_VALUES`] values: each costs many times its bytes.
pub(crate) fn check_values(line: &[u8]) -> Result<(), String> {
    let (mut values, mut in_text, mut escaped) = (1, false, false);
    for byte in line {
        match (in_text, *byte) {
            (true, b'\\') if !escaped => {
                escaped = true;
                continue;
            }
            (_, b'"') if !escaped => in_text = !in_text,
            (false, b',' | b'[' | b'{') => values += 1,
            _ => (),
        }
        escaped = false;
    }
    match values {
        0..=MAX_VALUES => Ok(()),
        _ => Err(format!(
            "a line has {values} values, at most {MAX_VALUES} are read"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_checked() {
        let call = Call::parse(br#"{"v":1,"id":7,"verb":"hello"}"#).unwrap();
        assert_eq!((call.args(), &*call.verb), ("{}", "hello"));
        let call = Call::parse(br#"{"v":1,"id":7,"verb":"hell\u006f","args":null}"#).unwrap();
        assert_eq!((call.args(), &*call.verb), ("{}", "hello"));
        let wrong = Call::parse(br#"{"v":2,"id":7,"verb":"hello"}"#).unwrap_err();
        assert_eq!(wrong.code, "bad-request");
        assert!(wrong.message.contains("version 2"));
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"v":1,"id":-1,"verb":"x"}"#,
            r#"{"v":1,"id":1,"verb":"x","arg":1}"#,
            r#"{"v":1,"id":1,"id":2,"verb":"x"}"#,
            r#"{"v":1,"id":1e999,"verb":"x"}"#,
            r#"{"v":1,"id":1,"verb":7}"#,
            r#"{"v":1,"id":1,"verb":"x","args":[}"#,
            r#"[1,1,"x"]"#,
        ] {
            assert!(Call::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn bytes_that_are_no_text_are_refused_with_their_place() {
        let error = Call::parse(b"{\"v\":1,\"id\":1,\"verb\":\"\xff\"}").unwrap_err();
        assert!(error.message.contains("index 22"), "{error}");
    }

    #[test]
    fn an_answer_names_its_request() {
        let line = |id, result: Result<Value, ApiError>| -> Value {
            serde_json::from_slice(&answer(id, result.as_ref())).unwrap()
        };
        assert_eq!(
            line(Some(3), Ok(json!({}))),
            json!({"v": 1, "id": 3, "ok": {}})
        );
        let told = line(None, Err(ApiError::new("exists", "it is there")));
        assert_eq!(told["error"]["code"], "exists");
        assert!(told["id"].is_null());
        let long = line(Some(4), Ok(json!("x".repeat(MAX_LINE))));
        assert_eq!(long["id"], 4);
        assert_eq!(long["error"]["code"], "too-long");
    }

    #[test]
    fn a_client_reads_only_so_many_values() {
        let text = format!(
            r#"["{}\\\"{}"]"#,
            ",".repeat(MAX_VALUES),
            "[".repeat(MAX_VALUES)
        );
        assert_eq!(check_values(text.as_bytes()), Ok(()));
        let few = format!("[{}0]", "0,".repeat(MAX_VALUES - 2));
        assert_eq!(check_values(few.as_bytes()), Ok(()));
        let many = format!("[{}0]", "{},".repeat(MAX_VALUES / 2));
        let error = check_values(many.as_bytes()).unwrap_err();
        assert!(error.contains("262146 values, at most 262144"), "{error}");
    }
}
