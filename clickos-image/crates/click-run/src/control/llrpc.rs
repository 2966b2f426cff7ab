// SPDX-License-Identifier: Apache-2.0
//! Click's low-level calls that some programs use besides handlers: numbers in, numbers out, in
//! this machine's byte order. Each stands for a handler.
use super::{Service, code};

/// A call: its number, the handler that stands for it, and whether it is written.
struct Call {
    number: u32,
    handler: &'static str,
    sets: bool,
}

const CALLS: [Call; 2] = [
    // a switch's output, Click's CLICK_LLRPC_GET_SWITCH and CLICK_LLRPC_SET_SWITCH
    Call {
        number: 0x4004_C005,
        handler: "switch",
        sets: false,
    },
    Call {
        number: 0x8004_4006,
        handler: "switch",
        sets: true,
    },
];

/// Calls `ELEMENT#NUMBER`.
///
/// # Errors
/// Code and text.
pub fn call(
    name: &str,
    data: &[u8],
    read_only: bool,
    service: &mut dyn Service,
) -> Result<Vec<u8>, (u16, String)> {
    let syntax = || (code::SYNTAX, format!("Syntax error in LLRPC name '{name}'"));
    let (element, number) = name.split_once('#').ok_or_else(syntax)?;
    let number = u32::from_str_radix(number, 16).map_err(|_| syntax())?;
    let call = CALLS.iter().find(|c| c.number == number);
    let call = call.ok_or_else(|| {
        (
            code::UNIMPLEMENTED,
            format!("Cannot call LLRPC '{name}' remotely"),
        )
    })?;
    if call.sets && read_only {
        return Err((code::PERMISSION, format!("Permission denied for '{name}'")));
    }
    let handler = format!("{element}.{}", call.handler);
    if call.sets {
        set(name, &handler, data, service)
    } else {
        get(name, &handler, service)
    }
}

fn set(
    name: &str,
    handler: &str,
    data: &[u8],
    service: &mut dyn Service,
) -> Result<Vec<u8>, (u16, String)> {
    let number = data.first_chunk::<4>().copied().map(i32::from_ne_bytes);
    let needs = || {
        (
            code::LLRPC_ERROR,
            format!("LLRPC '{name}' requires 4 bytes input data"),
        )
    };
    let number = number.ok_or_else(needs)?;
    service.write(handler, number.to_string().as_bytes())?;
    Ok(Vec::new())
}

fn get(name: &str, handler: &str, service: &mut dyn Service) -> Result<Vec<u8>, (u16, String)> {
    let value = service.read(handler, "")?;
    let text = String::from_utf8_lossy(&value);
    let number: Result<i32, _> = text.trim().parse();
    match number {
        Ok(number) => Ok(number.to_ne_bytes().to_vec()),
        Err(_) => Err((code::LLRPC_ERROR, format!("LLRPC '{name}' error"))),
    }
}
