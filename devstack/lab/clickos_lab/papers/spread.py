# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.papers.spread [PLACE ...]``.

A process sends frames of 60 bytes through the switch to another process, in
several runs. Prints the slowest and the fastest second of all runs, and the
counters that tell why: a rate alone depends on the other work of the machine.
"""

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from clickos_lab import paths

#: Processors of switch, sender and receiver; None leaves them to the kernel.
PLACES = {'one': (0, 0, 0), 'two': (0, 1, 1), 'free': (None, None, None)}
RUNS, SECONDS = 10, 2
_START_S = 10
_MAC = '02:00:00:00:00:{:02x}'

#: Figures of a second: a name, whose they are, and the names in ``top``.
_FIGURES = {
    'received': ('vale0:sink', 'tx'), 'lost': ('vale0:sink', 'drops'),
    'frames a burst': ('vale0:gen', 'frames_a_burst'),
    'kicks of sender': ('vale0:gen', 'kicks_received'),
    'kicks to sender': ('vale0:gen', 'kicks_sent'),
    'kicks to receiver': ('vale0:sink', 'kicks_sent'),
    'sleeps': ('0', 'sleeps'), 'yields': ('0', 'yields'),
    'rounds': ('0', 'rounds'), 'empty rounds': ('0', 'rounds_empty')}


def figures(look):
    """Return the figures of one second.

    :param look: what ``vale-ctl -o json top`` prints for it
    """
    rows = {row['name']: row for row in [*look['ports'], *look['workers']]}
    return {name: rows.get(of, {}).get(key, 0)
            for name, (of, key) in _FIGURES.items()}


def table(place, seconds):
    """Return the lines of a place.

    :param seconds: figures of each second of all runs
    """
    received = [second['received'] for second in seconds]
    least, most = min(received), max(received)
    lines = [f'{place}: {least / 1e6:.2f} to {most / 1e6:.2f} million frames '
             f'a second, slowest {least / max(most, 1):.2f} of the fastest']
    for name in _FIGURES:
        values = [second[name] for second in seconds]
        lines.append(f'  {name:18} {min(values):12,.0f} '
                     f'{statistics.median(values):12,.0f} '
                     f'{max(values):12,.0f}')
    return lines


def main(arguments):
    """Measure the places named, or all."""
    parser = argparse.ArgumentParser(prog='clickos_lab.papers.spread')
    parser.add_argument('places', nargs='*', metavar='PLACE',
                        help=', '.join(PLACES))
    parser.add_argument('--programs', type=pathlib.Path,
                        default=paths.State().target / 'release',
                        help='folder of valed, vale-ctl and pkt-gen')
    parser.add_argument('--runs', type=int, default=RUNS)
    parser.add_argument('--seconds', type=int, default=SECONDS,
                        help='of a run')
    parser.add_argument('--backpressure', action='store_true',
                        help='frames wait for a full receiver')
    found = parser.parse_args(arguments)
    for place in found.places or PLACES:
        if place not in PLACES:
            parser.error(f'{place}: no such place')
        seconds = []
        for _ in range(found.runs):
            seconds += _run(found, PLACES[place])
        print(*table(place, seconds), sep='\n', flush=True)
    return 0


def _run(found, cpus):
    """Return the figures of each second of one run."""
    with tempfile.TemporaryDirectory() as folder:
        socket = f'{folder}/valed.sock'
        config = pathlib.Path(folder, 'valed.toml')
        config.write_text(f'socket = "{socket}"\n')
        switch = _start(found, cpus[0], 'valed', '--config', config)
        programs = [switch]
        try:
            _wait(lambda: os.path.exists(socket))
            for function, name, cpu in (('rx', 'sink', cpus[2]),
                                        ('tx', 'gen', cpus[1])):
                programs.append(_start(
                    found, cpu, 'pkt-gen', '-f', function, '-i',
                    f'vale0:{name}', '--socket', socket, '--mac',
                    _MAC.format(1 + (function == 'rx')), '-D', _MAC.format(2),
                    *(['--backpressure'] if found.backpressure
                      and function == 'tx' else [])))
                _wait(lambda name=name: name in _ctl(found, socket, 'ports'))
            # The first second touches the pages of all slots.
            out = _ctl(found, socket, 'top', '--count',
                       str(found.seconds + 1))
        finally:
            for program in reversed(programs):
                program.kill()
                program.wait()
    return [figures(json.loads(line)) for line in out.splitlines()[1:]]


def _start(found, cpu, program, *arguments):
    pin = [] if cpu is None else ['taskset', '-c', str(cpu)]
    return subprocess.Popen(
        [*pin, found.programs / program, *arguments],
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)


def _ctl(found, socket, *arguments):
    return subprocess.run(
        [found.programs / 'vale-ctl', '--socket', socket, '-o', 'json',
         *arguments], check=True, text=True, stdout=subprocess.PIPE).stdout


def _wait(is_done):
    end_s = time.monotonic() + _START_S
    while not is_done():
        if time.monotonic() > end_s:
            raise TimeoutError(f'no port within {_START_S} s')
        time.sleep(0.02)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
