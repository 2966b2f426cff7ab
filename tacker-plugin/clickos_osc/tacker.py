# SPDX-License-Identifier: Apache-2.0
"""What the commands ask Tacker for."""

from clickos_client import vnf
from keystoneauth1 import adapter
from osc_lib import exceptions

from clickos_osc import shown

_INSTANCES = '/vnflcm/v1/vnf_instances'
_OPERATIONS = '/vnflcm/v1/vnf_lcm_op_occs'
#: Tacker gives the first 100 of a list otherwise.
_ALL = '?all_records=yes'


class Tacker:
    """VNF instances and operations, with the caller's token.

    :param manager: openstackclient's client manager
    """

    def __init__(self, manager):
        self._adapter = adapter.Adapter(
            manager.session, service_type='nfv-orchestration',
            region_name=manager.region_name, interface=manager.interface)

    def ids(self, name):
        """Return the ids of the VNF instances with a name, or with this id."""
        vnfs = self._get(_INSTANCES + _ALL)
        if any(each['id'] == name for each in vnfs):
            return [name]
        return [each['id'] for each in vnfs
                if each.get('vnfInstanceName') == name]

    def vnf(self, vnf_id):
        """Return a vnf.Vnf with its last operation.

        :param vnf_id: from ids()
        """
        body = self._get(f'{_INSTANCES}/{vnf_id}')
        return vnf.Vnf.of(body, next(iter(self.operations(vnf_id)), None))

    def operations(self, vnf_id):
        """List the operations of a VNF, the newest first."""
        bodies = self._get(_OPERATIONS + _ALL + '&fields=error'
                           f'&filter=(eq,vnfInstanceId,{vnf_id})')
        found = [vnf.Operation.of(body) for body in bodies
                 if body['vnfInstanceId'] == vnf_id]
        return sorted(found, key=lambda o: o.began, reverse=True)

    def operation(self, vnf_id, operation_id):
        """Return an operation of a VNF; the newest without an id."""
        for each in self.operations(vnf_id):
            if operation_id in (None, each.id):
                return each
        raise exceptions.CommandError(
            f'VNF instance {vnf_id}: Tacker has no operation {operation_id}')

    def scale(self, vnf_id, aspect, steps):
        """Ask for steps of an aspect, below 0 to scale in.

        :returns: the operation's id, or None if Tacker names none
        :raises exceptions.CommandError: with Tacker's reason
        """
        answer = self._adapter.post(
            f'{_INSTANCES}/{vnf_id}/scale', raise_exc=False, json={
                'type': 'SCALE_OUT' if steps > 0 else 'SCALE_IN',
                'aspectId': aspect, 'numberOfSteps': abs(steps)},
            headers={'Version': '2.0.0'})
        if answer.status_code >= 400:
            raise exceptions.CommandError(
                f'{_reason(answer)} (HTTP {answer.status_code})')
        place = answer.headers.get('Location') or ''
        return place.rpartition('/')[2] or None

    def _get(self, path):
        return self._adapter.get(path, headers={'Version': '2.0.0'}).json()


def _reason(answer):
    """Return the reason in a refusal of Tacker."""
    try:
        body = answer.json()
        return shown.text(str(body.get('detail') or body))
    except (ValueError, AttributeError):
        return shown.text(answer.text[:400])
