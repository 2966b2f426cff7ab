# SPDX-License-Identifier: Apache-2.0
"""The command line."""
import argparse
import collections
import pathlib
import random
import shutil
import sys
import tempfile

from click_compare.configuration import configuration
from click_compare.files import compare_file
from click_compare.packets import frame
from click_compare.packets import write_pcap
from click_compare.programs import only_one_has
from click_compare.programs import run


def program(name):
    """Return where a program is, from everywhere."""
    found = shutil.which(name)
    if not found:
        raise argparse.ArgumentTypeError(f'no program {name}')
    return str(pathlib.Path(found).resolve())


def arguments():
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog='click_compare', description='Run random configurations with '
        'two programs and compare what they print and what handlers say.')
    parser.add_argument('--click', required=True, type=program,
                        help='our click')
    parser.add_argument('--other', required=True, type=program,
                        help="Click's click")
    parser.add_argument('--count', type=int, default=100)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--packets', type=int, default=60)
    parser.add_argument('--keep', type=pathlib.Path, metavar='DIR',
                        help='where configurations that differ are kept')
    parser.add_argument('--files', type=pathlib.Path, nargs='+', default=[],
                        help='configurations to run instead of random ones; '
                        'files take the places of their devices')
    return parser.parse_args()


def compare(options, number, folder):
    """Return how one random configuration went."""
    rng = random.Random(f'{options.seed}.{number}')
    trace, dump = folder / 'in.pcap', folder / 'dump'
    config = folder / 'c.click'
    write_pcap(trace, [frame(rng) for _ in range(options.packets)])
    text, handlers = configuration(rng, trace, dump)
    config.write_text(text)
    ours = run(options.click, config, handlers, [dump])
    other = run(options.other, config, handlers, [dump])
    if 'Queue' in text or 'Source' in text:
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
    """Print what differs."""
    print(f'{options.seed}.{number}: exit status {ours[0]}, other {other[0]}')
    print(only_one_has(ours[1], other[1]))


def keep(options, number, text, trace, dump):
    """Copy what made a difference."""
    if options.keep:
        options.keep.mkdir(parents=True, exist_ok=True)
        name = options.keep / f'{options.seed}.{number}'
        copy = pathlib.Path(f'{name}.pcap')
        copy.write_bytes(trace.read_bytes())
        pathlib.Path(f'{name}.click').write_text(
            text.replace(str(trace), str(copy)).replace(str(dump), '-'))


def random_ones(options, folder):
    """Yield how each random configuration went."""
    for number in range(options.count):
        yield compare(options, number, folder)


def given_ones(options, folder):
    """Yield how each configuration that was given went."""
    for path in options.files:
        outcome, difference = compare_file(options, path.resolve(), folder)
        print(f'{path}: {outcome}', difference, sep='\n' * bool(difference))
        yield outcome


def main():
    """Run, and tell how many went how."""
    options = arguments()
    runs = given_ones if options.files else random_ones
    with tempfile.TemporaryDirectory() as folder:
        outcomes = collections.Counter(runs(options, pathlib.Path(folder)))
    print(', '.join(f'{count} {what}' for what, count in outcomes.items()))
    return 'differ' in outcomes


if __name__ == '__main__':
    sys.exit(main())
