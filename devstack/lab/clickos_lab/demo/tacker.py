# SPDX-License-Identifier: Apache-2.0
"""Waiting for Tacker, and removing what a demonstration has made.

The demonstration's steps are CLI commands; these calls only look.
"""

import concurrent.futures
import functools
import json
import time

from clickos_lab import errors
from clickos_lab import log

#: Marks packages and VNF instances of the demonstration.
MARK = 'clickos-demo'
_ENDPOINT = {'service_type': 'nfv-orchestration', 'interface': 'public'}
PACKAGES = '/vnfpkgm/v1/vnf_packages'
INSTANCES = '/vnflcm/v1/vnf_instances'
_OPERATIONS = '/vnflcm/v1/vnf_lcm_op_occs'
#: Tacker gives the first 100 of a list otherwise.
_ALL = '?all_records=yes'
_UNDER_WAY = ('STARTING', 'PROCESSING')
#: VNFs that are removed at once.
_AT_ONCE = 4


class Tacker:
    """Tacker's API with the tenant's session."""

    def __init__(self, connection):
        self._connection = connection
        self._session = connection.session

    def ask(self, method, path, **options):
        """Return Tacker's answer, or None if it is empty.

        :raises LabError: with Tacker's reason if it refuses
        """
        answer = self._session.request(
            path, method, endpoint_filter=_ENDPOINT, raise_exc=False,
            **options)
        if answer.status_code >= 400:
            raise errors.LabError(f'{method} {path}: {answer.text}')
        return answer.json() if answer.content else None

    def _get(self, path):
        return self.ask('GET', path)

    def wait_package(self, package_id, timeout_s=60):
        """Wait until a package is on-boarded; return its VNFD's id."""
        path = f'{PACKAGES}/{package_id}'
        package = _until(lambda: self._get(path),
                         lambda p: p['onboardingState'] == 'ONBOARDED',
                         timeout_s, f'package {package_id} is on-boarded')
        return package['vnfdId']

    def wait_operation(self, vnf_id, operation, timeout_s=90):
        """Wait for the end of the last operation of a kind.

        :raises LabError: with Tacker's reason if it failed
        """
        def last():
            return max((o for o in self._operations(vnf_id)
                        if o['operation'] == operation),
                       key=lambda o: o['startTime'], default=None)

        done = _until(last, lambda o: o and o['operationState']
                      not in _UNDER_WAY, timeout_s,
                      f'{operation} of {vnf_id}')
        if done['operationState'] != 'COMPLETED':
            raise errors.LabError(
                f'{operation} of VNF {vnf_id}: {done["operationState"]}: '
                f'{(done.get("error") or {}).get("detail")}')

    def _operations(self, vnf_id):
        return self._get(f'{_OPERATIONS}{_ALL}&fields=error'
                         f'&filter=(eq,vnfInstanceId,{vnf_id})')

    def show(self, vnf_id):
        """Return a VNF instance."""
        return self._get(f'{INSTANCES}/{vnf_id}')

    def server_id(self, vnf_id):
        """Return the server of a VNF of one guest."""
        info = self.show(vnf_id)['instantiatedVnfInfo']
        return info['vnfcResourceInfo'][0]['computeResource']['resourceId']

    def wait_verdict(self, vnf_id, wanted, timeout_s=30):
        """Wait for the verdict on an update of the properties."""
        def seen():
            metadata = self.show(vnf_id).get('metadata') or {}
            return json.loads(metadata.get('clickosUpdate', 'null'))

        return _until(seen, lambda v: v and v['request'] == wanted,
                      timeout_s, f'a verdict on {wanted}')

    def sweep(self):
        """Remove every VNF and package of the demonstration."""
        vnfs = [vnf['id'] for vnf in self._get(INSTANCES + _ALL)
                if vnf.get('vnfInstanceName', '').startswith(MARK)]
        with concurrent.futures.ThreadPoolExecutor(_AT_ONCE) as pool:
            for remove in (self.remove_vnf, self._remove_remains):
                list(pool.map(functools.partial(self._try, remove), vnfs))
        for package in self._get(PACKAGES):
            if (MARK in (package.get('userDefinedData') or {})
                    or package.get('vnfProductName', '').startswith(MARK)):
                self._try(self.remove_package, package)

    def remove_packages(self, product):
        """Remove the packages of a product."""
        for package in self._get(PACKAGES):
            if package.get('vnfProductName') == product:
                self.remove_package(package)

    def _try(self, remove, what):
        """Go on with the rest if one thing cannot be removed."""
        try:
            remove(what)
        except Exception as e:
            log.warn(f'not removed: {what}: {e}')

    def remove_vnf(self, vnf_id):
        """Terminate and delete a VNF, in whatever state it is."""
        path = f'{INSTANCES}/{vnf_id}'
        _until(lambda: self._operations(vnf_id), lambda operations: not any(
            o['operationState'] in _UNDER_WAY for o in operations),
            60, f'operations on {vnf_id} are over')
        for operation in self._operations(vnf_id):
            if operation['operationState'] == 'FAILED_TEMP':
                self.ask('POST', f'{_OPERATIONS}/{operation["id"]}/fail')
        if self.show(vnf_id)['instantiationState'] == 'INSTANTIATED':
            self.ask('POST', f'{path}/terminate',
                     json={'terminationType': 'FORCEFUL'})
            self.wait_operation(vnf_id, 'TERMINATE')
        self.ask('DELETE', path)

    def _remove_remains(self, vnf_id):
        """Remove what Tacker cannot, if it was killed in an operation."""
        cloud = self._connection
        for server in cloud.compute.servers():
            if server.name.endswith(vnf_id):
                cloud.compute.delete_server(server)
                cloud.compute.wait_for_delete(server, interval=1, wait=30)
        for port in cloud.network.ports(description=f'clickos-vnf:{vnf_id}'):
            cloud.network.delete_port(port)

    def remove_package(self, package):
        """Disable and delete a package, as Tacker lists it."""
        path = f'{PACKAGES}/{package["id"]}'
        if package['operationalState'] == 'ENABLED':
            self.ask('PATCH', path, json={'operationalState': 'DISABLED'})
        self.ask('DELETE', path)


def _until(look, good, timeout_s, what):
    deadline_s = time.monotonic() + timeout_s
    while not good(seen := look()):
        if time.monotonic() > deadline_s:
            raise errors.LabError(
                f'{what}: not so after {timeout_s} s; last seen: {seen}')
        time.sleep(0.2)
    return seen
