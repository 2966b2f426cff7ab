// SPDX-License-Identifier: Apache-2.0
//! The Click configuration language: lexer, parser, flattening, unparsing.
//!
//! [`Sources`] holds the text, [`flatten`] turns it into plain elements and connections;
//! [`parse`] makes a syntax tree for those who want one. Both report every error they
//! find, with its place, and never panic; [`Limits`] bounds what a configuration can
//! make them use.
#![no_std]
#![forbid(unsafe_code)]
extern crate alloc;
#[cfg(test)]
extern crate std;

pub mod archive;
pub mod ast;
mod body;
mod error;
mod expand;
mod flat;
mod flatten;
mod lexer;
mod parser;
mod ports;
mod resolve;
pub mod sort;
mod source;
mod suggest;
pub mod text;
mod unparse;

pub use error::{ConfigError, Errors, Limits, Memory, Phase, Subject, tidy};
pub use expand::{Room, Scope, TooMuch};
pub use flat::{Flat, FlatConnection, FlatElement, Requirement};
pub use flatten::flatten;
pub use parser::parse;
pub use resolve::Classes;
pub use source::{Directive, FindLibrary, Located, SourcePos, Sources};
pub use suggest::{did_you_mean, suggest};
