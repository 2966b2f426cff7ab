# SPDX-License-Identifier: Apache-2.0
"""Ports of the project, and the connection points that they are."""

import re

from clickos_client import chains
from openstack_dashboard import api

#: As Tacker's driver names a port: VDU, number of the guest, point.
_NAME = re.compile(r'.{1,200}?-\d{1,6}-(.{1,200})', re.DOTALL)
_MAC = re.compile(r'[0-9a-f]{2}(:[0-9a-f]{2}){5}')
_UUID = re.compile(r'[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}')


def of_project(request, **query):
    """List the ports of the project; others may name its servers, too."""
    project_id = request.user.tenant_id
    return [port for port in api.neutron.port_list(
        request, project_id=project_id, **query)
        if port.get('project_id', project_id) == project_id]


def vnf_of(port):
    """Return the id of the VNF that a port belongs to, or nothing.

    The owner of a port can describe it by any text.
    """
    text = port.get('description') or ''
    return _id(text.removeprefix(chains.VNF_MARK)) \
        if text.startswith(chains.VNF_MARK) else ''


def server_of(port):
    """Return the id of the server that has a port, or nothing."""
    return _id(port.get('device_id') or '')


def counted(ports):
    """Return 'server/MAC' of each port that a server has, for a script."""
    return ' '.join(f'{server_of(port)}/{port["mac_address"]}'
                    for port in ports if server_of(port)
                    and _MAC.fullmatch(port['mac_address']))


def _id(text):
    """Return a UUID as it is; nothing for another text."""
    return text if _UUID.fullmatch(text) else ''


def point_of(port):
    """Return the name of a port's connection point, or of the port."""
    name = port.get('name') or ''
    found = _NAME.fullmatch(name) if vnf_of(port) else None
    return found[1] if found else name or port['id']


def names(request, server_id):
    """Return {MAC address: name} of the connection points of a guest."""
    return {port['mac_address']: point_of(port)
            for port in of_project(request, device_id=server_id)}
