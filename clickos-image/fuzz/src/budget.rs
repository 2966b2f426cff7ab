// SPDX-License-Identifier: Apache-2.0
//! Work and memory of an installation. The allocator counts, so one input runs at a time.
use click_core::{Environment, Router, text};
use click_lang::{Errors, Limits, Memory, Scope, Sources, flatten};
use clickos_control::limits;
use peak_alloc::PeakAlloc;

use crate::Capitals;
use crate::router::{choose, class, registry};

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// The memory of a small guest.
const HEAP: usize = 8 << 20;
/// Bytes that the engine asks for without arguments, and those of a router.
const FIXED: usize = 192 << 10;
/// The largest text that an input stands for.
const TEXT: usize = HEAP / 16;

/// Bytes in use before the guest began.
static BEFORE: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);

fn in_use() -> usize {
    let before = BEFORE.load(std::sync::atomic::Ordering::Relaxed);
    ALLOCATOR.current_usage().saturating_sub(before)
}

/// Begins a guest; gives the peak of its memory so far whenever it is called.
fn begin() -> impl Fn() -> usize {
    let before = ALLOCATOR.current_usage();
    BEFORE.store(before, std::sync::atomic::Ordering::Relaxed);
    ALLOCATOR.reset_peak_usage();
    move || ALLOCATOR.peak_usage().saturating_sub(before)
}

/// Makes a text of the input's parts between NUL bytes: a start, a part to repeat, and an end.
fn long(data: &[u8], most: usize) -> String {
    let mut parts = data.splitn(3, |b| *b == 0).map(String::from_utf8_lossy);
    let mut next = || parts.next().unwrap_or_default();
    let (first, piece, last) = (next(), next(), next());
    let room = most.saturating_sub(first.len() + last.len());
    let count = room / piece.len().max(1);
    [&first, piece.repeat(count).as_str(), &last].concat()
}

/// Flattens a long configuration as a guest of 8 MiB. It keeps the limit of steps, and never takes
/// memory that the guest does not have.
pub fn installation(data: &[u8]) {
    let text = long(data, TEXT);
    let guest = limits(HEAP as u64);
    let limits = Limits {
        config_bytes: guest.config_bytes,
        elements: guest.elements,
        connections: guest.connections,
        ports: guest.ports,
        steps: guest.steps,
        memory: Memory {
            reserve: guest.reserve_bytes,
            has_room: |bytes| in_use() + bytes <= HEAP,
        },
    };
    let (shown, peak) = (text.chars().take(200).collect::<String>(), begin());
    let (sources, mut errors) = (Sources::new("fuzz", text), Errors::default());
    let flat = flatten(&sources, &Capitals, &Scope::default(), &limits, &mut errors);
    let steps = errors.steps();
    assert!(
        steps <= limits.steps || errors.is_exhausted(),
        "{steps} steps: {shown}"
    );
    let _ = errors.into_sorted(&sources);
    drop(flat);
    assert!(peak() <= HEAP, "{} bytes: {shown}", peak());
}

/// An element with long arguments takes no more memory than the engine looks for.
pub fn elements(data: &[u8]) {
    // A regular expression asks the allocator for more by itself.
    let Some((class, rest)) = class(data).filter(|(c, _)| c.name != "RegexClassifier") else {
        return;
    };
    let (many, rest) = choose(rest, 2).unwrap_or_default();
    let config = long(rest, [1 << 10, 1 << 15][many]);
    let limits = limits(HEAP as u64);
    // The texts exist before the engine asks, and the bytes that it asks for count as used.
    let most = limits.reserve_bytes + text::bytes_to_build(&config) + 4 * config.len() + FIXED;
    let text = format!("e :: {}({config});", class.name);
    let environment = Environment {
        limits,
        ..Environment::new()
    };
    let (registry, peak) = (registry(), begin());
    let _ = Router::build("fuzz", &text, &registry, environment, 1);
    let shown = text.chars().take(200).collect::<String>();
    assert!(peak() <= most, "{} bytes, {most} expected: {shown}", peak());
}
