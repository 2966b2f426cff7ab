# SPDX-License-Identifier: Apache-2.0
"""Every service's configuration, written into the state folder.

One module a service, each with ``write(site)``.
"""

from clickos_lab.config import clickos_api
from clickos_lab.config import daemons
from clickos_lab.config import front
from clickos_lab.config import glance
from clickos_lab.config import heat
from clickos_lab.config import horizon
from clickos_lab.config import hosts
from clickos_lab.config import keystone
from clickos_lab.config import neutron
from clickos_lab.config import neutron_agents
from clickos_lab.config import nova
from clickos_lab.config import placement
from clickos_lab.config import rabbit
from clickos_lab.config import site as _site
from clickos_lab.config import tacker
from clickos_lab.config import tls

_MODULES = (tls, rabbit, keystone, glance, placement, neutron, neutron_agents,
            nova, tacker, heat,
            clickos_api, horizon, daemons, front)


def write(state, settings, compute_hosts=hosts.ALL, has_heat=False):
    """Write all configurations; the same settings give the same files.

    :param compute_hosts: those that the lab has
    :param has_heat: whether it has Heat and a host for its servers
    """
    site = _site.Site(state, settings, compute_hosts, has_heat)
    for module in _MODULES:
        module.write(site)
