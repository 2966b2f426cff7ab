# SPDX-License-Identifier: Apache-2.0
"""What the lab keeps in OpenStack. Everything here may be run again."""

from clickos_lab.cloud import catalog
from clickos_lab.cloud import compute
from clickos_lab.cloud import image
from clickos_lab.cloud import openrc
from clickos_lab.cloud import sessions
from clickos_lab.cloud import tenant
from clickos_lab.cloud import vim
from clickos_lab import stamps


def fill_catalog(state, settings):
    """Bootstrap keystone, once: users, roles, services, endpoints."""
    stamp = state.data / 'catalog.stamp'
    wanted = stamps.digest([state.settings], repr(catalog.SERVICES))
    if stamps.fresh(stamp, wanted):
        return
    catalog.bootstrap(state, settings)
    catalog.fill(sessions.admin(settings), settings)
    stamp.write_text(wanted)


def ensure(state, settings, hosts):
    """Make hosts known, and their images, flavor, tenant and VIM."""
    admin = sessions.admin(settings)
    demo = sessions.demo(settings)
    openrc.write(state, settings)
    for host in hosts:
        image.ensure(state, admin, host)
    compute.ensure_flavor(admin)
    tenant.ensure_networks(demo)
    vim.ensure(demo, settings)
    # Last: nova-compute reports 5 s after its start.
    for host in hosts:
        compute.ensure_host(state, admin, host)
    if len({host.zone for host in hosts}) > 1:
        compute.ensure_zones(admin, hosts)
