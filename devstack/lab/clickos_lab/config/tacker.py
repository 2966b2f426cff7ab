# SPDX-License-Identifier: Apache-2.0
"""Tacker: the v1 interface with our infra and management drivers."""

import sys

from clickos_lab.config import heat
from clickos_lab.config import options
from clickos_lab.config import rabbit
from clickos_lab import paths
from clickos_lab import rust
from clickos_lab import shell

_PASTE = 'tacker-plugin/tacker_clickos/paste.py'
#: Copied, because its account cannot enter the repository.
_SERVER = paths.REPO / 'devstack/lab/clickos_lab/tacker_server.py'


def write(site):
    """Write tacker.conf; make the folders of its keys and packages."""
    endpoint = site.settings.url('tacker')
    site.write('tacker/server.py', _SERVER.read_text(), 'tacker')
    shared = options.of(
        'tacker', CLICKOS_TACKER_PASTE=str(_write_paste(site)),
        CLICKOS_CHECKER=str(site.state.binary(rust.CHECKER)),
        CLICKOS_KEYSTONE_URL=site.settings.url('keystone', '/v3'),
        CLICKOS_VIM_KEYS=str(site.folder('tacker', 'vim-keys')))
    site.write_ini('tacker/tacker.conf', options.merged(shared, {
        'DEFAULT': {
            **site.base('tacker'), 'auth_strategy': 'keystone',
            'service_plugins': 'nfvo,vnfm',
            'api_workers': 0, 'conductor_workers': 1},
        'database': site.database('tacker'),
        'keystone_authtoken': site.authtoken('tacker'),
        'oslo_concurrency': site.lock('tacker'),
        'oslo_messaging_rabbit': rabbit.options(site),
        # Seconds; a demonstration of a dead guest waits so long.
        'clickos': {'watch_interval': 2, 'stale_operation_timeout': 10},
        'glance_store': {
            'filesystem_store_datadir': site.folder('tacker', 'csar'),
            'stores': 'file', 'default_store': 'file'},
        'vnf_package': {
            'vnf_package_csar_path': site.folder('tacker', 'packages')},
        'vnf_lcm': {'endpoint_url': endpoint},
        'v2_vnfm': {'endpoint': endpoint, 'vnfm_id': 'tacker'}},
        heat.tacker(site)), 'tacker')


def _write_paste(site):
    """Write what the command clickos-tacker-paste shows operators."""
    return site.write('tacker/api-paste.ini',
                      shell.output([sys.executable, '-I',
                                    options.source(_PASTE)]),
                      'tacker')
