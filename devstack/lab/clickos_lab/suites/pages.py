# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.pages [VNFS [LAUNCHED]]``: times of pages.

Starts the lab, makes VNFS firewalls (100 by default), and launches LAUNCHED
of them (all by default) as process guests. Then asks for each page of the
dashboard as their tenant. Prints a table of the time until the whole page
was there. Fails if the median of a page exceeds its bound.
"""

import os
import re
import statistics
import sys
import time

import requests

from clickos_lab import bounds
from clickos_lab import errors
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import settings as _settings
from clickos_lab.suites import firewalls
from clickos_lab.suites import on_lab
from clickos_lab.suites import progress

VNFS = 100
_REPEATS = 7
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
#: Page by page: its address, with {vnf} and {package}.
_PAGES = {
    'overview': '/clickos/',
    'topology': '/clickos/topology/',
    'packages': '/clickos/packages/',
    'catalog': '/clickos/packages/catalog',
    'package': '/clickos/packages/{package}/',
    'VNFs': '/clickos/vnfs/',
    'choose a package': '/clickos/vnfs/launch',
    'launch': '/clickos/vnfs/launch/{package}',
    'guests': '/clickos/guests/',
    'chains': '/clickos/chains/',
    **{f'VNF: {tab}': f'/clickos/vnfs/{{vnf}}/?tab=vnf__{tab}' for tab in (
        'state', 'graph', 'counters', 'handlers', 'configuration', 'events',
        'console', 'operations')}}


def main(arguments):
    """Start the lab, launch, measure, stop; return the exit status."""
    count, launched = [*map(int, arguments), *[None] * 2][:2]
    state = paths.State()
    return on_lab.run(_lab.Lab(state), lambda: measure(
        state, count or VNFS, launched))


def measure(state, count, number=None):
    """Measure on a lab that is up; return the exit status.

    :param count: of VNFs
    :param number: of those that are launched, None for all
    """
    number = number or count
    settings = _settings.Settings.load(state)
    launched = firewalls.Firewalls(state, settings)
    try:
        launched.launch(count, number)
        rows = Dashboard(settings).times(launched.places())
    finally:
        launched.sweep()
    return _print(rows, f'{count} VNFs, {number} launched')


class Dashboard:
    """Horizon as the tenant's browser asks it."""

    def __init__(self, settings):
        self._settings = settings
        self._browser = requests.Session()
        self._browser.verify = settings.authority or True
        self._browser.trust_env = False
        self._log_in()

    def _log_in(self):
        url = self._settings.url('horizon', '/auth/login/')
        token = _TOKEN.search(self._browser.get(url).text)[1]
        self._browser.post(url, headers={'Referer': url}, data={
            'csrfmiddlewaretoken': token, 'username': 'demo',
            'password': self._settings.passwords['demo'],
            'domain': 'default', 'region': 'default',
            'auth_type': 'credentials'})

    def times(self, places):
        """Return rows of (page, median in s, longest in s, bytes)."""
        return [self._row(name, path.format(**places))
                for name, path in _PAGES.items()]

    def _row(self, name, path):
        self._time(path)    # the first of a page fills caches
        found = [self._time(path) for _ in range(_REPEATS)]
        times = [seconds for seconds, _ in found]
        return name, statistics.median(times), max(times), found[0][1]

    def _time(self, path):
        url = self._settings.url('horizon', path)
        began_s = time.monotonic()
        answer = self._browser.get(url)
        seconds = time.monotonic() - began_s
        if answer.status_code != 200 or '/auth/login' in answer.url:
            raise errors.LabError(f'{path}: status {answer.status_code}')
        return seconds, len(answer.content)


def _print(rows, what):
    print(f'{what}, {progress.commit()}, median of {_REPEATS} requests')
    print('| page | median, ms | longest, ms | KB |\n|---|---|---|---|')
    for name, median_s, longest_s, size in rows:
        print(f'| {name} | {median_s * 1000:.0f} | {longest_s * 1000:.0f} '
              f'| {size / 1000:.0f} |')
    return int(any([_is_slow(name, median_s) for name, median_s, *_ in rows]))


def _is_slow(name, median_s):
    """Return whether the bound of a page is broken, and print it."""
    try:
        bounds.hold('max_page_seconds', median_s)
    except AssertionError as error:
        print(f'{name}: {error}')
        return True
    return False


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
