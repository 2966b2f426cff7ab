# SPDX-License-Identifier: Apache-2.0
"""The command line."""

import argparse
import os
import pathlib
import sys

from click_bench import classes
from click_bench import configurations
from click_bench import floor
from click_bench import measure
from click_bench import table
from click_bench import traces
from click_bench import vpp

OURS = 'clickos'


def arguments():
    """Return the parsed command line."""
    parser = argparse.ArgumentParser(
        prog='click_bench', description='Compare engines of the Click '
        'language: nanoseconds of processor time a packet.')
    parser.add_argument('--click', required=True, help='our click')
    parser.add_argument('--engine', action='append', default=[],
                        metavar='NAME=PATH', help='another engine')
    parser.add_argument('--only', default='', metavar='PREFIX,…',
                        help='configurations whose names begin so')
    parser.add_argument('--runs', type=int, default=3)
    parser.add_argument('--cpu', type=int, metavar='N',
                        default=max(os.sched_getaffinity(0)))
    parser.add_argument('--work', type=pathlib.Path, required=True,
                        help='folder for traces and configurations')
    return parser.parse_args()


def chosen(only):
    """Return the configurations whose names begin with one of the words."""
    prefixes = tuple(filter(None, only.split(',')))
    found = {**configurations.all_of_them(), **classes.all_of_them(prefixes)}
    if not prefixes:
        return found
    return {name: made for name, made in found.items()
            if name.startswith(prefixes)}


def write(folder, found):
    """Write traces and configuration files."""
    print('writing traces and %d configurations to %s'
          % (len(found), folder), flush=True)
    traces.generate(folder / 'traces')
    for name, made in found.items():
        (folder / (name + '.click')).write_text(made.text)
    vpp.write(folder, found)


def yield_to_nobody():
    """Ask for the processor before everybody else, where that is allowed."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, -15)
    except PermissionError:
        print('not root: other processes may disturb the figures')


def main():
    """Compare; the exit status is 1 if our engine failed anywhere."""
    options = arguments()
    try:
        engines = [measure.Engine.parse(text) for text in
                   [OURS + '=' + options.click] + options.engine]
    except ValueError as error:
        sys.exit('click_bench: %s' % error)
    found = chosen(options.only)
    if not found:
        sys.exit('click_bench: no configuration begins with %s'
                 % options.only)
    write(options.work, found)
    yield_to_nobody()
    floors = floor.measure(options.work, options.cpu)
    for name, ns in floors.items():
        print('floor: %-40s %8.2f ns' % (name, ns))
    unit = floors[floor.UNIT]
    print(table.header([engine.name for engine in engines]), flush=True)
    results = {}
    for name, made in found.items():
        results[name] = measure.compare(
            engines, options.work / (name + '.click'), made, options.runs,
            options.cpu)
        print(table.row(name, results[name], OURS, unit), flush=True)
    print(table.summary(results, OURS))
    sys.exit(any(not isinstance(times[OURS], float)
                 for times in results.values()))


if __name__ == '__main__':
    main()
