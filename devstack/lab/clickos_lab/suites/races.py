# SPDX-License-Identifier: Apache-2.0
"""``make soak PARTS=races``: threads of ``click`` under ThreadSanitizer.

Needs Rust's nightly toolchain. Its standard library is not compiled for
the sanitizer, so what a Condvar, a contended Mutex or the fence of Arc's
last drop orders looks like a race: messages between threads, the list of
free buffers and those drops are left out; packets and counters of queues
are not.
"""

import os
import subprocess
import sys
import tempfile

from clickos_lab import paths
from clickos_lab import prereq
from clickos_lab import rust

#: Code whose data a Mutex guards, and the last drop of an Arc.
LEFT_OUT = ('click_packet::depot', 'click_packet::claims', 'letters::Shared',
            'Threads>::call', 'Engine>::read_elsewhere',
            'member::Member>::serve', 'sync::Arc<*>>::drop_slow')
_PACKETS = 5000
_TARGET = 'x86_64-unknown-linux-gnu'
_FLAGS = '-Zsanitizer=thread -Cunsafe-allow-abi-mismatch=sanitizer'
_SOURCE = (f'InfiniteSource(LIMIT {_PACKETS}) '
           '-> UDPIPEncap(1.0.0.1, 9, 2.0.0.2, 9)')
_END = 'Script(label more, wait 0.1s, goto more $(lt {} {}), stop)'
#: Name, threads, configuration.
CASES = (
    ('one sender', 2,
     f'i :: {_SOURCE} -> CheckIPHeader -> Queue(100) -> u :: Unqueue '
     '-> DecIPTTL -> c :: Counter -> Discard; StaticThreadSched(i 1); '
     + _END.format('$(c.count)', _PACKETS)),
    ('shared buffers', 3,
     f'i :: {_SOURCE} -> t :: Tee; t[0] -> Queue(9999) -> u :: Unqueue '
     '-> DecIPTTL -> c :: Counter -> Discard; t[1] -> Queue(9999) '
     '-> v :: Unqueue -> DecIPTTL -> d :: Counter -> Discard; '
     'StaticThreadSched(i 1, v 2); '
     + _END.format('$(add $(c.count) $(d.count))', 2 * _PACKETS)),
    ('there and back', 2,
     f'i :: {_SOURCE} -> Queue(50) -> u :: Unqueue -> DecIPTTL '
     '-> Queue(9999) -> v :: Unqueue -> c :: Counter -> Discard; '
     'StaticThreadSched(u 1, i 0, v 0); '
     + _END.format('$(c.count)', _PACKETS)),
    ('two senders', 3,
     f'i :: {_SOURCE} -> a :: Counter -> q :: SimpleQueue(20); '
     f'j :: {_SOURCE} -> b :: Counter -> q; q -> u :: Unqueue -> Discard; '
     'StaticThreadSched(i 1, j 2); '
     + _END.format('$(add $(a.count) $(b.count))', 2 * _PACKETS)))


def report(name, status, errors):
    """Return what is wrong with a run, or None."""
    if 'ThreadSanitizer' in errors:
        return f'{name}: data race\n{errors}'
    if status:
        return f'{name}: status {status}\n{errors}'


def _build(environment):
    """Build click for the sanitizer; return its path, or None."""
    flags = {'RUSTFLAGS': _FLAGS,
             'CARGO_TARGET_DIR': f'{environment["CARGO_TARGET_DIR"]}/races'}
    built = subprocess.run(
        [prereq.rust_tool('cargo') or 'cargo', '+nightly', 'build',
         '--package', 'click-run', '--bin', 'click', '--target', _TARGET],
        cwd=paths.REPO, env={**environment, **flags})
    program = f'{flags["CARGO_TARGET_DIR"]}/{_TARGET}/debug/click'
    return None if built.returncode else program


def main(program=None):
    """Run all cases, with a program that is built already if it is named."""
    program = program or _build(rust.environment(paths.State()))
    if not program:
        return 1
    with tempfile.NamedTemporaryFile('w', suffix='.txt') as suppressions:
        suppressions.writelines(f'race:{text}\n' for text in LEFT_OUT)
        suppressions.flush()
        options = f'exitcode=66 suppressions={suppressions.name}'
        wrong = [_run(program, options, *case) for case in CASES]
    return 1 if any(wrong) else 0


def _run(program, options, name, threads, config):
    """Run a case; print and return what is wrong."""
    try:
        done = subprocess.run(
            [program, '-j', str(threads), '-e', config], timeout=600,
            capture_output=True, text=True,
            env={**os.environ, 'TSAN_OPTIONS': options})
        wrong = report(name, done.returncode, done.stderr)
    except subprocess.TimeoutExpired:
        wrong = f'{name}: not finished after 600 s'
    print(wrong or f'{name}: no race', flush=True)
    return wrong


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:2]))
