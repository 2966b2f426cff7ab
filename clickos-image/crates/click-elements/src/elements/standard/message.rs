// SPDX-License-Identifier: Apache-2.0
//! Prints a line when the configuration starts.
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
        let (message, kind) = (
            a.need::<String>("TEXT"),
            a.or("KIND", "MESSAGE".to_string())?,
        );
        match kind.to_ascii_uppercase().as_str() {
            "MESSAGE" => Some(Box::new(Message { text: message? })),
            "WARNING" => Some(Box::new(Message {
                text: format!("warning: {}", message?),
            })),
            "ERROR" => {
                a.error("TEXT", message?);
                None
            }
            _ => {
                a.error(
                    "KIND",
                    format!("expected MESSAGE, WARNING or ERROR, got \"{kind}\""),
                );
                None
            }
        }
    },
    ..Class::DEFAULT
};

struct Message {
    text: String,
}

impl Element for Message {
    fn initialize(&mut self, ctx: &mut Context<'_>) -> Result<(), String> {
        ctx.print(&self.text);
        Ok(())
    }
}
