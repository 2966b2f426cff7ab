# SPDX-License-Identifier: Apache-2.0
"""The command line."""
import argparse
import pathlib
import random
import re
import subprocess
import sys
import tempfile

from click_compare.configuration import configuration
from click_compare.packets import frame
from click_compare.packets import write_pcap

TIMEOUT_S = 20


def arguments():
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog='click_compare', description='Run random configurations with '
        'two programs and compare what they print and what handlers say.')
    parser.add_argument('--click', required=True, help='our click')
    parser.add_argument('--other', required=True, help="Click's click")
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--packets', type=int, default=60)
    parser.add_argument('--keep', type=pathlib.Path, metavar='DIR',
                        help='where configurations that differ are kept')
    return parser.parse_args()


def run(program, config, handlers, dump):
    """Return the exit status, or what it did instead, and lines of output."""
    dump.unlink(missing_ok=True)
    command = [program, '--simtime', str(config)]
    for handler in handlers:
        command += ['-h', handler]
    try:
        done = subprocess.run(command, capture_output=True,
                              timeout=TIMEOUT_S, check=False)
    except subprocess.TimeoutExpired:
        return 'hangs', []
    if done.returncode < 0:
        return 'crashes', []
    dumped = dump.read_bytes() if dump.exists() else b''
    texts = (done.stderr, dumped, done.stdout)
    return done.returncode, [line for text in texts for line in lines(text)]


def lines(output):
    """Return what counts: no warnings, and not who complains."""
    text = output.decode('latin1').split('\n')
    hidden = re.compile('.*(While configuring|warning:|expensive |'
                        'no (gw|route) for)|!')
    who = re.compile(r'^\S+ :: (?=[A-Z])|^\S+: (?=\w+ header check)')
    return [who.sub('', line) for line in text if not hidden.match(line)]


def compare(options, number, folder):
    """Return how one random configuration went."""
    rng = random.Random(f'{options.seed}.{number}')
    trace, dump = folder / 'in.pcap', folder / 'dump'
    config = folder / 'c.click'
    write_pcap(trace, [frame(rng) for _ in range(options.packets)])
    text, handlers = configuration(rng, trace, dump)
    config.write_text(text)
    ours = run(options.click, config, handlers, dump)
    other = run(options.other, config, handlers, dump)
    if 'Unqueue' in text:
        # in which turn tasks run is not said anywhere
        ours, other = ((status, sorted(found)) for status, found
                       in (ours, other))
    if isinstance(other[0], str):
        return f'other {other[0]}'
    if ours == other:
        return 'same' if ours[0] == 0 else 'both refuse'
    if ours[0] and other[0] and not isinstance(ours[0], str):
        return 'both refuse'
    tell(options, number, ours, other)
    keep(options, number, text, trace, dump)
    return 'differ'


def tell(options, number, ours, other):
    """Print the first line that differs."""
    print(f'{options.seed}.{number}: exit status {ours[0]}, other {other[0]}')
    pairs = zip([*ours[1], '(end)'], [*other[1], '(end)'])
    for at, (line, wanted) in enumerate(pairs):
        if line != wanted:
            print(f'  line {at}: {line}\n     other: {wanted}')
            return


def keep(options, number, text, trace, dump):
    """Copy what made a difference."""
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        name = options.keep / f'{options.seed}.{number}'
        copy = pathlib.Path(f'{name}.pcap')
        copy.write_bytes(trace.read_bytes())
        pathlib.Path(f'{name}.click').write_text(
            text.replace(str(trace), str(copy)).replace(str(dump), '-'))


def main():
    """Run, and tell how many went how."""
    options = arguments()
    outcomes = {}
    with tempfile.TemporaryDirectory() as folder:
        for number in range(options.count):
            outcome = compare(options, number, pathlib.Path(folder))
            outcomes[outcome] = outcomes.get(outcome, 0) + 1
    print(', '.join(f'{count} {what}' for what, count in outcomes.items()))
    return 'differ' in outcomes


if __name__ == '__main__':
    sys.exit(main())
