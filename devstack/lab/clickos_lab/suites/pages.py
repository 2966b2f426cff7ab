# SPDX-License-Identifier: Apache-2.0
"""``python -m clickos_lab.suites.pages [VNFS [LAUNCHED]]``: times of pages.

Starts the lab, makes VNFS firewalls (100 by default), and launches LAUNCHED
of them (all by default) as process guests. Then asks for each page of the
dashboard as their tenant. Prints a table of the time until the whole page
was there. Fails if a page takes longer than LIMIT_S.
"""

import concurrent.futures
import os
import re
import signal
import statistics
import sys
import time

import requests

from clickos_lab.cloud import sessions
from clickos_lab.cloud import vim
from clickos_lab.demo import tacker
from clickos_lab import errors
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import say
from clickos_lab import settings as _settings
from clickos_lab.suites import progress
from clickos_lab.vnf import csar

VNFS = 100
LIMIT_S = 0.5
_REPEATS = 7
#: Operations of Tacker at once, and seconds for one of them.
_AT_ONCE, _PATIENCE_S = 2, 300
_TOKEN = re.compile(r'name="csrfmiddlewaretoken" value="([^"]+)"')
#: Page by page: its address, with {vnf} and {package}.
_PAGES = {
    'overview': '/clickos/',
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
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    state = paths.State()
    lab = _lab.Lab(state)
    try:
        lab.down()
        lab.up()
        return measure(state, count or VNFS, launched)
    except errors.LabError as e:
        print(f'error: {e}')
        return 1
    finally:
        lab.down()


def measure(state, count, number=None):
    """Measure on a lab that is up; return the exit status.

    :param count: of VNFs
    :param number: of those that are launched, None for all
    """
    number = number or count
    settings = _settings.Settings.load(state)
    demo = sessions.demo(settings)
    _lift_quotas(sessions.admin(settings), demo.current_project_id)
    launched = Launched(state, demo)
    try:
        launched.launch(count, number)
        rows = Dashboard(settings).times(launched.places())
    finally:
        tacker.Tacker(demo).sweep()
    return _print(rows, f'{count} VNFs, {number} launched')


def _lift_quotas(admin, project_id):
    admin.compute.update_quota_set(project_id, instances=-1, cores=-1, ram=-1)
    admin.network.update_quota(project_id, ports=-1)


class Launched:
    """Firewalls of the tenant, all of one package."""

    def __init__(self, state, demo):
        self._state = state
        self._demo = demo
        self._tacker = tacker.Tacker(demo)
        self._vnfs = []
        self._vim_id = vim.find(demo)

    def launch(self, count, number):
        """Make firewalls, and launch a number of them, some at once."""
        self._package_id = self._upload()
        vnfd_id = self._tacker.wait_package(self._package_id)
        with say.step(f'{count} VNFs, {number} launched'), \
                concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            vnfs = list(pool.map(
                lambda each: self._create(vnfd_id, each), range(count)))
            self._vnfs = vnfs[:number]
            list(pool.map(self._launch, self._vnfs))

    def places(self):
        """Return what the addresses of pages name."""
        return {'vnf': self._vnfs[0], 'package': self._package_id}

    def _upload(self):
        path = self._state.data / 'pages.csar'
        csar.build('firewall', path, '--fresh-id')
        package_id = self._tacker.ask('POST', tacker.PACKAGES, json={
            'userDefinedData': {tacker.MARK: 'pages'}})['id']
        self._tacker.ask(
            'PUT', f'{tacker.PACKAGES}/{package_id}/package_content',
            data=path.read_bytes(),
            headers={'Content-Type': 'application/zip'})
        return package_id

    def _create(self, vnfd_id, number):
        return self._tacker.ask('POST', tacker.INSTANCES, json={
            'vnfdId': vnfd_id,
            'vnfInstanceName': f'{tacker.MARK}-{number}'})['id']

    def _launch(self, vnf_id):
        self._tacker.ask(
            'POST', f'{tacker.INSTANCES}/{vnf_id}/instantiate', json={
                'flavourId': 'simple',
                'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                                       'vimId': self._vim_id}],
                'extVirtualLinks': [self._link(name)
                                    for name in ('left', 'right')]})
        self._tacker.wait_operation(vnf_id, 'INSTANTIATE', _PATIENCE_S)

    def _link(self, name):
        network = self._demo.network.find_network(name)
        return {'id': name, 'resourceId': network.id,
                'extCps': [{'cpdId': name, 'cpConfig': [{'cpProtocolData': [
                    {'layerProtocol': 'IP_OVER_ETHERNET'}]}]}]}


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
    print(f'{what}, {progress.commit()}, median of {_REPEATS} requests, '
          f'load average {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores')
    print('| page | median, ms | longest, ms | KB |\n|---|---|---|---|')
    for name, median_s, longest_s, size in rows:
        print(f'| {name} | {median_s * 1000:.0f} | {longest_s * 1000:.0f} '
              f'| {size / 1000:.0f} |')
    slow = [name for name, median_s, *_ in rows if median_s > LIMIT_S]
    if slow:
        print(f'slower than {LIMIT_S} s: {", ".join(slow)}')
    return 1 if slow else 0


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
