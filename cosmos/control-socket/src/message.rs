// SPDX-License-Identifier: Apache-2.0
//! The lines of the protocol as plain structs.
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::VERSION;

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

/// One call. Unknown fields are refused so that a typing error is not silently ignored.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub v: u32,
    pub id: u64,
    pub verb: String,
    #[serde(default)]
    pub args: Value,
}

impl Request {
    pub fn parse(line: &[u8]) -> Result<Self, ApiError> {
        let request: Self = serde_json::from_slice(line)
            .map_err(|e| ApiError::bad_request(format!("request: {e}")))?;
        if request.v != VERSION {
            let message = format!(
                "request: version {} is not spoken here, only {VERSION}",
                request.v
            );
            return Err(ApiError::bad_request(message));
        }
        Ok(request)
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
        assert!(
            Request::parse(br#"{"v":1,"id":7,"verb":"hello"}"#)
                .unwrap()
                .args
                .is_null()
        );
        let wrong = Request::parse(br#"{"v":2,"id":7,"verb":"hello"}"#).unwrap_err();
        assert_eq!(wrong.code, "bad-request");
        assert!(wrong.message.contains("version 2"));
        for bad in [
            "",
            "[]",
            "{}",
            r#"{"v":1,"id":-1,"verb":"x"}"#,
            r#"{"v":1,"id":1,"verb":"x","arg":1}"#,
        ] {
            assert!(Request::parse(bad.as_bytes()).is_err(), "{bad}");
        }
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
