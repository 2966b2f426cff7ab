// SPDX-License-Identifier: Apache-2.0
//! The lines of the protocol as plain structs.
use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::VERSION;
use crate::verb::bounded;

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

/// What a client may read: an answer (`ok` or `error`) or an event.
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

/// The answer to request `id`; without an id if the request could not be read.
pub(crate) fn answer(id: Option<u64>, result: Result<&Value, &ApiError>) -> Value {
    match result {
        Ok(value) => json!({"v": VERSION, "id": id, "ok": value}),
        Err(error) => json!({"v": VERSION, "id": id, "error": error}),
    }
}

pub(crate) fn event_line(event: &Event) -> Value {
    json!({"v": VERSION, "event": event.event, "data": event.data})
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
        assert_eq!(
            answer(Some(3), Ok(&json!({}))),
            json!({"v": 1, "id": 3, "ok": {}})
        );
        let error = ApiError::new("exists", "it is there");
        let line = answer(None, Err(&error));
        assert_eq!(line["error"]["code"], "exists");
        assert!(line["id"].is_null());
    }
}
