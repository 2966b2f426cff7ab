// SPDX-License-Identifier: Apache-2.0
//! Tells something when the configuration is read.
//!
//! # Synopsis
//! `Message(TEXT [, KIND])`: KIND is MESSAGE (default), WARNING or ERROR; ERROR refuses the configuration.
//! # Ports
//! 0/0.
//! # Handlers
//! None of its own.
//! # Example
//! `Message("the firewall of tenant 7");`
use crate::prelude::*;

pub static ELEMENT: Class = Class {
    name: "Message",
    ports: "0/0",
    args: &[mandatory("TEXT"), optional("KIND")],
    build: |a| {
        let message = a.need::<String>("TEXT");
        let kind = a.or("KIND", "MESSAGE".to_string())?;
        let message = message?;
        match kind.to_ascii_uppercase().as_str() {
            "MESSAGE" => a.notice(message),
            "WARNING" => a.notice(format!("warning: {message}")),
            "ERROR" => a.error("TEXT", message),
            _ => {
                let kind = kind.shown();
                let expected = format!("expected MESSAGE, WARNING or ERROR, got \"{kind}\"");
                a.error("KIND", expected);
            }
        }
        Some(Box::new(Message))
    },
    ..Class::DEFAULT
};

struct Message;

impl Element for Message {}
