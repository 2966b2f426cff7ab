# SPDX-License-Identifier: Apache-2.0
"""Running a program, and what counts of its output."""
import collections
import re
import struct
import subprocess

_TIMEOUT_S = 6
_SHOWN = 8
_MAGIC = (b'\xd4\xc3\xb2\xa1', b'\x4d\x3c\xb2\xa1')
_HIDDEN = re.compile('.*(While configuring|warning:|expensive |'
                     'no (gw|route) for|DropBroadcasts: dropped|'
                     'Unqueue2 is dep)|!')
# in simulated time Click counts a nanosecond for each look at the clock
_NANOSECONDS = re.compile(r'\b(\d{9,}\.\d{6})\d{3}\b')
_WHO = re.compile(r'^\S+ :: (?=[A-Z])|^\S+: (?=\w+ header check)')


def run(program, config, handlers, dumps, folder=None):
    """Return the exit status, or what it did instead, and lines of output."""
    for dump in dumps:
        dump.unlink(missing_ok=True)
    command = [program, '--simtime', str(config)]
    for handler in handlers:
        command += ['-h', handler]
    try:
        done = subprocess.run(command, capture_output=True, cwd=folder,
                              stdin=subprocess.DEVNULL, timeout=_TIMEOUT_S,
                              check=False)
    except subprocess.TimeoutExpired:
        return 'hangs', []
    if done.returncode < 0:
        return 'crashes', []
    dumped = [dump.read_bytes() for dump in dumps if dump.exists()]
    texts = (done.stderr, *map(_shown, dumped), _named(done.stdout))
    return done.returncode, [line for text in texts for line in lines(text)]


def _shown(dumped):
    """Return a dump as text: packets without their times."""
    if dumped[:4] not in _MAGIC:
        return dumped
    at, shown = 24, []
    while at + 16 <= len(dumped):
        length, whole = struct.unpack_from('<II', dumped, at + 8)
        packet = dumped[at + 16:at + 16 + length]
        shown.append(f'{whole} {packet.hex()}\n')
        at += 16 + length
    return ''.join(shown).encode()


def _named(values):
    """Return handlers' values with their names in each line."""
    name, named = b'', []
    for line in values.split(b'\n'):
        if re.fullmatch(rb'[\w@/]+\.\w+:', line):
            name = line + b' '
        else:
            named.append(name + line)
    return b'\n'.join(named)


def only_one_has(ours, other):
    """Return the first lines that only one has, or that order differs."""
    mine = collections.Counter(ours) - collections.Counter(other)
    theirs = collections.Counter(other) - collections.Counter(ours)
    shown = [*(f'  - {line}' for line in [*mine][:_SHOWN]),
             *(f'  + {line}' for line in [*theirs][:_SHOWN])]
    return '\n'.join(shown or ['  another order'])


def lines(output):
    """Return what counts: no warnings, and not who complains."""
    text = output.decode('latin1').split('\n')
    return [_NANOSECONDS.sub(r'\1', _WHO.sub('', line)).rstrip()
            for line in text if line.strip() and not _HIDDEN.match(line)]
