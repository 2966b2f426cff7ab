# SPDX-License-Identifier: Apache-2.0
"""The guest a command is about."""

from clickos_client import api
from keystoneauth1 import adapter
from osc_lib import exceptions

from clickos_osc import shown

VNF_INSTANCES = '/vnflcm/v1/vnf_instances'


def add_arguments(parser):
    """Add <guest> and how it is named."""
    kind = parser.add_mutually_exclusive_group()
    kind.add_argument(
        '--server', dest='kind', action='store_const', const='server',
        default='server', help='<guest> is a server of Nova (the default)')
    kind.add_argument(
        '--vnf', dest='kind', action='store_const', const='vnf',
        help='<guest> is a VNF instance of Tacker')
    parser.add_argument(
        '--vnfc', metavar='<vnfc>',
        help='VDU or VNFC id of the guest, if the VNF has several')
    parser.add_argument('guest', metavar='<guest>', help='Name or ID')


def find(manager, args):
    """Return the api.Server or api.Vnf that the arguments name.

    :param manager: openstackclient's client manager
    """
    if args.kind == 'vnf':
        ids = vnf_ids(manager, args.guest)
        return api.Vnf(only_vnf(ids, args.guest), args.vnfc)
    if args.vnfc:
        raise exceptions.CommandError('--vnfc goes with --vnf')
    return api.Server(_find_server(manager, args.guest))


def _find_server(manager, name):
    compute = manager.sdk_connection.compute
    return compute.find_server(name, ignore_missing=False).id


def vnf_ids(manager, name):
    """Return the ids of the VNF instances with a name, or with this id."""
    tacker = adapter.Adapter(
        manager.session, service_type='nfv-orchestration',
        region_name=manager.region_name, interface=manager.interface)
    vnfs = tacker.get(VNF_INSTANCES).json()
    if any(vnf['id'] == name for vnf in vnfs):
        return [name]
    return [vnf['id'] for vnf in vnfs if vnf.get('vnfInstanceName') == name]


def only_vnf(ids, name):
    """Return the one id of a VNF instance."""
    if not ids:
        raise exceptions.CommandError(
            f'No VNF instance found for {shown.line(name)}')
    if len(ids) > 1:
        raise exceptions.CommandError(
            f'More than one VNF instance is called {shown.line(name)}; use'
            f' an ID: {", ".join(ids)}')
    return ids[0]
