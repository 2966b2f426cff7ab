# SPDX-License-Identifier: Apache-2.0
"""What the commands ask Tacker for."""

from keystoneauth1 import adapter
from osc_lib import exceptions

from clickos_osc import formatting
from clickos_osc import lazy

tacker = lazy.module('clickos_client.tacker')
vnf = lazy.module('clickos_client.vnf')

_ZIP = 'application/zip'


class Tacker:
    """Packages, VNF instances and operations, with the caller's token.

    Each method raises exceptions.CommandError with Tacker's reason.

    :param manager: openstackclient's client manager
    """

    def __init__(self, manager):
        self._adapter = adapter.Adapter(
            manager.session, service_type='nfv-orchestration',
            region_name=manager.region_name, interface=manager.interface)

    def ids(self, name):
        """Return the ids of the VNF instances with a name, or with this id."""
        vnfs = self._get(tacker.INSTANCES + tacker.ALL)
        if any(each['id'] == name for each in vnfs):
            return [name]
        return [each['id'] for each in vnfs
                if each.get('vnfInstanceName') == name]

    def vnfs(self):
        """List the VNFs as vnf.Vnf, each with its last operation."""
        return tacker.vnfs(self._get(tacker.INSTANCES + tacker.ALL),
                           self.operations())

    def vnf(self, vnf_id):
        """Return a vnf.Vnf with its last operation.

        :param vnf_id: from ids()
        """
        body = self._get(f'{tacker.INSTANCES}/{vnf_id}')
        return vnf.Vnf.of(body, next(iter(self.operations(vnf_id)), None))

    def operations(self, vnf_id=None):
        """List the operations of a VNF, or all; the newest first."""
        return tacker.operations(
            self._get(tacker.operations_path(vnf_id)), vnf_id)

    def operation(self, vnf_id, operation_id):
        """Return an operation of a VNF; the newest without an id.

        :returns: None if it is not there, for example not yet
        """
        for each in self.operations(vnf_id):
            if operation_id in (None, each.id):
                return each

    def create(self, vnfd_id, name, description=''):
        """Make a VNF that is not instantiated; return its id."""
        return self._ask('POST', tacker.INSTANCES, json={
            'vnfdId': vnfd_id, 'vnfInstanceName': name,
            'vnfInstanceDescription': description}).json()['id']

    def start(self, vnf_id, verb, **body):
        """Start instantiate, heal, scale, terminate or change_ext_conn.

        :returns: the operation's id, or None if Tacker names none
        """
        return _operation_id(self._ask(
            'POST', f'{tacker.INSTANCES}/{vnf_id}/{verb}', json=body))

    def modify(self, vnf_id, **body):
        """Change properties, description or package; as start()."""
        return _operation_id(self._ask(
            'PATCH', f'{tacker.INSTANCES}/{vnf_id}', json=body))

    def delete(self, vnf_id):
        """Delete a VNF that is not instantiated."""
        self._ask('DELETE', f'{tacker.INSTANCES}/{vnf_id}')

    def decide(self, operation_id, verb):
        """Retry an operation that waits for a decision, or fail it."""
        self._ask('POST', f'{tacker.OPERATIONS}/{operation_id}/{verb}')

    def vims(self):
        """List the VIMs of the project, the default one first."""
        return tacker.vims(self._get(tacker.VIMS))

    def packages(self):
        """List the VNF packages."""
        return self._get(tacker.PACKAGES + tacker.ALL + '&all_fields=')

    def package(self, package_id):
        """Return a VNF package."""
        return self._get(f'{tacker.PACKAGES}/{package_id}')

    def package_content(self, package_id):
        """Return the bytes of a CSAR."""
        path = f'{tacker.PACKAGES}/{package_id}/package_content'
        return self._ask('GET', path, headers={'Accept': _ZIP}).content

    def create_package(self, marks):
        """Make an empty package; return its id.

        :param marks: its userDefinedData, a dictionary of texts
        """
        return self._ask('POST', tacker.PACKAGES,
                         json={'userDefinedData': marks}).json()['id']

    def upload(self, package_id, content):
        """Upload a CSAR, which Tacker reads after its answer."""
        self._ask('PUT', f'{tacker.PACKAGES}/{package_id}/package_content',
                  data=content, headers={'Content-Type': _ZIP})

    def delete_package(self, package_id):
        """Take a package out of service and delete it."""
        path = f'{tacker.PACKAGES}/{package_id}'
        if self._get(path).get('operationalState') == 'ENABLED':
            self._ask('PATCH', path, json={'operationalState': 'DISABLED'})
        self._ask('DELETE', path)

    def _get(self, path):
        return self._ask('GET', path).json()

    def _ask(self, method, path, headers=(), **options):
        answer = self._adapter.request(
            path, method, raise_exc=False,
            headers={**tacker.HEADERS, **dict(headers)}, **options)
        if answer.status_code >= 400:
            raise exceptions.CommandError(
                f'{_reason(answer)} (HTTP {answer.status_code})')
        return answer


def _operation_id(answer):
    place = answer.headers.get('Location') or ''
    return place.rpartition('/')[2] or None


def _reason(answer):
    return formatting.text(tacker.reason(answer) or answer.text[:400]
                           or 'Tacker gives no reason')
