# SPDX-License-Identifier: Apache-2.0
"""The client of Tacker: VIMs, packages (SOL005), life cycle (SOL003 v1)."""

from clickos_tempest_plugin.services import base

PACKAGES = 'vnfpkgm/v1/vnf_packages'
INSTANCES = 'vnflcm/v1/vnf_instances'
OPERATIONS = 'vnflcm/v1/vnf_lcm_op_occs'


class TackerClient(base.Client):
    """The part of Tacker's API that the tests use."""

    def create_vim(self, **vim):
        """Register a VIM."""
        return self.call('POST', 'v1.0/vims', 201, {'vim': vim})[1]['vim']

    def delete_vim(self, vim_id):
        """Remove a VIM."""
        self.call('DELETE', f'v1.0/vims/{vim_id}', 204)

    def create_package(self):
        """Make an empty package."""
        return self.call('POST', PACKAGES, 201, {'userDefinedData': {}})[1]

    def upload_package(self, package_id, csar):
        """Upload a CSAR's bytes."""
        self.call('PUT', f'{PACKAGES}/{package_id}/package_content', 202,
                  csar, {'Content-Type': 'application/zip'})

    def show_package(self, package_id):
        """Show a package."""
        return self.call('GET', f'{PACKAGES}/{package_id}', 200)[1]

    def disable_package(self, package_id):
        """Take an onboarded package out of service."""
        self.call('PATCH', f'{PACKAGES}/{package_id}', 200,
                  {'operationalState': 'DISABLED'})

    def delete_package(self, package_id):
        """Delete a package that is disabled or not onboarded."""
        self.call('DELETE', f'{PACKAGES}/{package_id}', 204)

    def create_vnf(self, vnfd_id, name):
        """Make a VNF instance, not instantiated."""
        return self.call('POST', INSTANCES, 201, {
            'vnfdId': vnfd_id, 'vnfInstanceName': name})[1]

    def show_vnf(self, vnf_id):
        """Show a VNF instance."""
        return self.call('GET', f'{INSTANCES}/{vnf_id}', 200)[1]

    def delete_vnf(self, vnf_id):
        """Delete a VNF instance that is not instantiated."""
        self.call('DELETE', f'{INSTANCES}/{vnf_id}', 204)

    def update_vnf(self, vnf_id, **changes):
        """Change a VNF instance; Tacker does so after the answer."""
        self.call('PATCH', f'{INSTANCES}/{vnf_id}', 202, changes)

    def start(self, vnf_id, operation, **body):
        """Start instantiate, heal or terminate; return the occurrence's id."""
        headers, _ = self.call('POST', f'{INSTANCES}/{vnf_id}/{operation}',
                               202, body)
        return headers['location'].rpartition('/')[2]

    def show_operation(self, operation_id):
        """Show an operation occurrence."""
        return self.call('GET', f'{OPERATIONS}/{operation_id}', 200)[1]

    def list_operations(self, vnf_id):
        """List the operation occurrences of a VNF."""
        return [each for each in self.list_all_operations()
                if each['vnfInstanceId'] == vnf_id]

    def list_all_operations(self):
        """List the operation occurrences of all VNFs."""
        return self.call('GET', OPERATIONS, 200)[1]

    def retry_operation(self, operation_id):
        """Try an operation that is FAILED_TEMP once more."""
        self.call('POST', f'{OPERATIONS}/{operation_id}/retry', 202)

    def fail_operation(self, operation_id):
        """Give up an operation that is FAILED_TEMP."""
        self.call('POST', f'{OPERATIONS}/{operation_id}/fail', 200)
