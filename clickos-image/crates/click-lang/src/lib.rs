// SPDX-License-Identifier: Apache-2.0
//! The Click configuration language: lexer, parser, flattening, unparsing.
#![forbid(unsafe_code)]
