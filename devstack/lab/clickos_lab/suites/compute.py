# SPDX-License-Identifier: Apache-2.0
"""Tempest's own tests of Nova and Neutron, on process hosts or a Xen host.

``python -m clickos_lab.suites.compute [--xen] [ARGUMENT ...]`` starts the
services and runs all; on a Xen host those of Nova, with one worker. Arguments
of ``tempest run`` replace the selection of tests. With ``--ours REGEX`` it
runs tests of our plugin on process hosts.
"""

import argparse
import contextlib
import os
import sys

from clickos_lab.cloud import compute
from clickos_lab.cloud import image
from clickos_lab.cloud import sessions
from clickos_lab.config import hosts
from clickos_lab.config import site as _site
from clickos_lab.config import tempest as tempest_conf
from clickos_lab import lab as _lab
from clickos_lab import paths
from clickos_lab import prepare
from clickos_lab import settings as _settings
from clickos_lab.suites import on_lab
from clickos_lab.suites import tempest_run
from clickos_lab.xen import image as _guest

FOLDER = paths.REPO / 'tempest-tests/lists'
#: Tests that cannot pass, each with its reason.
EXCLUDED = FOLDER / 'compute-excluded.txt'
_ALL = ['--regex', r'^tempest\.api\.(compute|network)\.']
_ON_XEN = ['--regex', r'^tempest\.api\.compute\.']
#: Tempest's word for a few tests of what every cloud must do. Our own tests
#: use ports, routers and floating addresses.
_SMOKE = r'^tempest\.api\.compute\b.*\[.*\bsmoke\b'
#: Tests that skip themselves: a guest has no disk, and no shell.
_SKIPPED = r'BootFromVolume|UnderV243'
_NAME = 'tempest-compute'
_IMAGES = ('image', 'image_alt')
_INTERFACE = 'network:router_interface'
#: Servers of these tests have no user_data: the image has a configuration.
_CONFIG = 'Idle -> Discard;'
_CIDRS = {'public': '172.24.5.0/24', 'shared': '10.101.0.0/16'}


def main(arguments):
    """Start the services, run the tests, stop the services."""
    chosen, others = _parser().parse_known_args(arguments)
    if chosen.ours is not None:
        others = ['--regex', chosen.ours, *others]
    tempest_run.require_known(others)
    state = paths.State()
    if chosen.xen:
        return on_lab.run(
            _lab.Lab(state, (hosts.SECOND, hosts.XEN)),
            lambda: run(state, others or _ON_XEN, 'XEN'),
            lambda: prepare.xen(state))
    work = run if chosen.ours is None else tempest_run.run
    return on_lab.run(_lab.Lab(state, (hosts.SECOND,)),
                      lambda: work(state, others or _ALL))


def _parser():
    parser = argparse.ArgumentParser(
        prog='clickos_lab.suites.compute', allow_abbrev=False,
        description=__doc__.partition('\n')[0],
        epilog='Further arguments are those of tempest run.')
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument('--xen', action='store_true',
                      help='run those of Nova, on a Xen host')
    kind.add_argument('--ours', metavar='REGEX',
                      help='run tests of our plugin, on process hosts')
    return parser


def run(state, arguments, kind='PROCESS'):
    """Run tests on a lab that is up, with a second host or not.

    :param kind: of the hosts that run the servers, ``PROCESS`` or ``XEN``
    :returns: the exit status of ``tempest run``
    """
    settings = _settings.Settings.load(state)
    admin, is_xen = sessions.admin(settings), kind == 'XEN'
    with _one_zone(admin) as number, _resources(
            state, admin, kind) as found:
        return tempest_run.run(
            state, ['--exclude-list', str(EXCLUDED), *arguments],
            lambda workspace: tempest_conf.write_own(
                _site.Site(state, settings), workspace,
                {**found, 'hosts': 1 if is_xen else number}),
            workers=1 if is_xen else tempest_run.WORKERS)


def smoke(state):
    """Run the tests of the basic operations, on a lab that is up."""
    return run(state, ['--regex', _SMOKE, '--exclude-regex', _SKIPPED])


@contextlib.contextmanager
def _one_zone(admin):
    """Put all process hosts in one zone, so that servers move among them."""
    zones = {zone.name: zone for zone in admin.compute.aggregates()}
    first, second = (zones.get(host.zone) for host in hosts.PROCESSES)
    name = hosts.SECOND.name
    if second is None or name not in (second.hosts or ()):
        yield 1
        return
    admin.compute.remove_host_from_aggregate(second, name)
    admin.compute.add_host_to_aggregate(first, name)
    try:
        yield len(hosts.PROCESSES)
    finally:
        admin.compute.remove_host_from_aggregate(first, name)
        admin.compute.add_host_to_aggregate(second, name)


@contextlib.contextmanager
def _resources(state, admin, kind):
    """Make images, a second flavor and a public network for the tests.

    An earlier run that was killed, or whose tests left ports, has left its
    own: their names are taken.
    """
    _forget(admin)
    made = contextlib.ExitStack()
    with made:
        yield {**_images(state, admin, kind, made), **_flavors(admin, made),
               **_networks(admin.network, made),
               'extensions': ','.join(
                   each.alias for each in admin.network.extensions())}


def _forget(admin):
    """Remove what an earlier run has left."""
    for name in map(_image_name, _IMAGES):
        for each in admin.image.images(name=name):
            admin.image.delete_image(each)
    flavor = admin.compute.find_flavor(_NAME)
    if flavor:
        admin.compute.delete_flavor(flavor)
    for kind in _CIDRS:
        for each in admin.network.networks(name=f'{_NAME}-{kind}'):
            _delete_network(admin.network, each)


def _delete_network(network, found):
    """Delete a network with what tests left there."""
    for address in network.ips(floating_network_id=found.id):
        network.delete_ip(address)
    for port in network.ports(network_id=found.id):
        owner = port.device_owner or ''
        if owner.startswith('network:router'):
            _delete_router(network, port.device_id)
        elif not owner.startswith('network:'):    # Neutron's own go with it
            network.delete_port(port)
    network.delete_network(found)


def _delete_router(network, router_id):
    for port in network.ports(device_id=router_id, device_owner=_INTERFACE):
        network.remove_interface_from_router(router_id, port_id=port.id)
    network.delete_router(router_id)


def _image_name(key):
    return f'{_NAME}-{key}'


def _images(state, admin, kind, made):
    found = {}
    file = _guest.folder(state) / _guest.CLICKOS if kind == 'XEN' \
        else state.binary('clickos-process')
    for key in _IMAGES:
        each = image.upload(admin, _image_name(key), file, kind,
                            clickos_config=_CONFIG)
        made.callback(admin.image.delete_image, each)
        found[key] = each.id
    return found


def _flavors(admin, made):
    flavor = compute.make_flavor(
        admin, name=_NAME, ram=2 * compute.FLAVOR['ram'])
    made.callback(admin.compute.delete_flavor, flavor)
    return {'flavor': admin.compute.find_flavor(compute.FLAVOR['name']).id,
            'flavor_alt': flavor.id}


def _networks(network, made):
    """Make a public network, one that all projects share, a router between.

    A network and a router for each class of tests take longer than its tests.
    """
    public = _network(network, made, 'public', is_router_external=True)
    shared = _network(network, made, 'shared', is_shared=True)
    router = network.create_router(
        name=_NAME, external_gateway_info={'network_id': public.id})
    made.callback(network.delete_router, router)
    subnet = shared.subnet_ids[0]
    network.add_interface_to_router(router, subnet_id=subnet)
    made.callback(network.remove_interface_from_router, router,
                  subnet_id=subnet)
    return {'public': public.id, 'public_name': public.name,
            'shared': shared.name}


def _network(network, made, kind, **wanted):
    found = network.create_network(name=f'{_NAME}-{kind}', **wanted)
    made.callback(_delete_network, network, found)
    network.create_subnet(network_id=found.id, ip_version=4,
                          cidr=_CIDRS[kind], is_dhcp_enabled=False)
    return network.get_network(found.id)


if __name__ == '__main__':
    os.umask(0o077)
    sys.exit(main(sys.argv[1:]))
