# SPDX-License-Identifier: Apache-2.0
"""The table of a comparison."""

import statistics

WANTED = 1.5


def cell(value, unit):
    """Return a time as text, in nanoseconds and in floors."""
    if isinstance(value, float):
        return '%9.1f %6.1f' % (value, value / unit)
    return '%9s %6s' % ('-', '')


def ratio(times, ours):
    """Return how many times as fast ours is as the fastest other."""
    others = [value for name, value in times.items()
              if name != ours and isinstance(value, float)]
    if not others or not isinstance(times[ours], float):
        return None
    return min(others) / times[ours]


def header(names):
    """Return the head of the table."""
    columns = ['%9s %6s' % (name[:9], 'floors') for name in names]
    return '%-34s %s %7s' % ('ns a packet', ' '.join(columns), 'ratio')


def row(name, times, ours, unit):
    """Return a line of the table."""
    gain = ratio(times, ours)
    columns = ' '.join(cell(value, unit) for value in times.values())
    last = '%7.2f' % gain if gain else '%7s' % ''
    errors = ['\n    %s: %s' % (engine, value)
              for engine, value in times.items()
              if not isinstance(value, float)]
    return '%-34s %s %s%s' % (name, columns, last, ''.join(errors))


def summary(results, ours):
    """Return geometric mean and what misses the mark; '' for one engine."""
    gains = {name: ratio(times, ours) for name, times in results.items()}
    found = {name: gain for name, gain in gains.items() if gain}
    if not found:
        return ''
    missed = ['%s %.2f' % (name, gain) for name, gain in found.items()
              if gain < WANTED]
    return ('%d configurations compared: geometric mean %.2f\n'
            'below %.1f: %s' % (
                len(found), statistics.geometric_mean(found.values()),
                WANTED, ', '.join(missed) or 'none'))
