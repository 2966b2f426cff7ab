# SPDX-License-Identifier: Apache-2.0
"""clickos-api, and clickos-agent for each host."""

import base64
import os

from clickos_lab.config import hosts
from clickos_lab.config import options
from clickos_lab.config import rabbit
from clickos_lab.config import site as _site
from clickos_lab.host import underlay
from clickos_lab.xen import cable


#: Of HTTP: 32 wait for guests, 4 for slow ones, and 4 never wait.
_THREADS = 40


def _tunnel(site, host):
    """Return the options of a host that another one reaches.

    The networks that this machine and a Xen host share have cables of their
    own (host/uplinks.py), so only hosts of one kind have mappings.
    """
    if len(site.compute_hosts) < 2:
        return {}
    other = hosts.SECOND_XEN if host.is_xen else hosts.SECOND
    has_other = other in site.compute_hosts
    if not host.is_xen and has_other:
        between = underlay.Underlay(site.state)
        address, interface = between.address(host), between.interface(host)
    else:
        address = cable.Cable(site.state).address(host)
        interface = cable.INTERFACE
    network = options.DEFAULTS['CLICKOS_PHYSICAL_NETWORK']
    mappings = {'interface_mappings': f'{network}:{interface}'}
    return {'clickos_agent': {
        'tunnel_ip': address, **(mappings if has_other else {})}}


def _key(site):
    """Return the file of the key of secrets; the database needs it again.

    The account's number changes when another account is added.
    """
    path = site.state.etc / 'clickos/secret.key'
    key = path.read_text() if path.exists() else (
        base64.urlsafe_b64encode(os.urandom(32)).decode())
    site.write('clickos/secret.key', key, 'clickos')
    return path


def write(site):
    """Write the configurations of the API service and of the agents."""
    site.write_ini('clickos/clickos-api.conf', options.merged({
        'clickos_api': {'agent_transport_url': site.rabbit_url(
            'clickos', 'clickos-{host}'),
            'catalog_path': str(site.state.catalog),
            'secret_key_files': _key(site)},
        'database': site.database('clickos'),
        'keystone_authtoken': site.authtoken('clickos'),
        'nova': site.auth('clickos'),
        'oslo_messaging_rabbit': rabbit.options(site)},
        options.of('api', REGION_NAME=_site.REGION)), 'clickos')
    site.write_uwsgi('clickos-api', 'clickos', 'clickos_api.wsgi:application',
                     _THREADS)
    for host in site.compute_hosts:
        name = f'clickos-agent{host.suffix}'
        socket = str(site.state.run / host.agent_socket)
        site.write_ini(f'clickos/{name}.conf', options.merged({
            'DEFAULT': {'transport_url': site.rabbit_url(
                            name, rabbit.vhost(host)),
                        'host': host.name},
            'clickos_agent': {
                'neutron_transport_url': site.rabbit_url(name, 'neutron'),
                'state_dir': site.folder(name)},
            'oslo_messaging_rabbit': rabbit.options(site)},
            _tunnel(site, host),
            options.of('agent', CLICKOS_COSMOSD_SOCKET=socket)), name)
