# SPDX-License-Identifier: Apache-2.0
"""What a second thread gains where FlowThreadSched spreads work.

Run from devstack/lab on an idle machine with two processors:
``python -m tests.figures.threads CLICK``, where CLICK is a program that
``make click`` built. Two threads send the packets of 100 flows through the
same configuration as one; a Counter behind the work tells the rate.
"""

import argparse
import statistics
import subprocess

from tests.figures import table

_ROUNDS = 5
_SECONDS = 3
_TIMEOUT_S = 60
_CONFIG = '''
FlowThreadSched(work);
FastUDPFlows(0, -1, 1400, 2:0:0:0:0:1, 10.0.0.1, 2:0:0:0:0:2, 10.0.0.2,
             100, 1000000000)
    -> Unqueue(BURST 32) -> Strip(14) -> CheckIPHeader
    -> work :: { input -> %s -> output }
    -> out :: Counter -> Discard;
DriverManager(wait %ds, print out.count, stop);
'''
_CRC = 'SetCRC32 -> CheckCRC32'
#: What each packet goes through, by its name in the table.
WORK = {'SetCRC32, CheckCRC32': _CRC,
        'the same four times': ' -> '.join([_CRC] * 4),
        'IPCompress': 'IPCompress'}


def rate(click, elements, threads):
    """Return the packets per second of a number of threads."""
    config = _CONFIG % (elements, _SECONDS)
    done = subprocess.run(
        [click, '-j', str(threads)], input=config, text=True,
        capture_output=True, timeout=_TIMEOUT_S)
    if done.returncode:
        raise SystemExit(f'{click}: {done.stderr}')
    return int(done.stdout) / _SECONDS


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('click', metavar='CLICK', help='a program click')
    click = parser.parse_args().click
    found = table.Table()
    for name, elements in WORK.items():
        rates = [[rate(click, elements, threads) for threads in (1, 2)]
                 for _ in range(_ROUNDS)]    # in turn
        one, two = map(statistics.median, zip(*rates))
        found.add(f'{name}, one thread', one, 'packets/s', one)
        found.add(f'{name}, two threads', two, 'packets/s', one)


if __name__ == '__main__':
    main()
