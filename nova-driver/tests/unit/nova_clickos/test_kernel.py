# SPDX-License-Identifier: Apache-2.0
"""Servers whose image is a kernel that is not Click's."""

import base64
import hashlib
import json
from unittest import mock

from nova import exception as nova_exception

from nova_clickos import exception
from tests.unit.nova_clickos import base

RAMDISK = 'cccccccc-2222-4333-8444-555555555555'
#: Image: (disk_format, bytes).
FILES = {base.IMAGE: ('aki', b'kernel'), RAMDISK: ('ari', b'070701')}
SUMS = {image_id: hashlib.sha256(content).hexdigest()
        for image_id, (_format, content) in FILES.items()}


def server(**values):
    """A server as Nova makes it of a kernel with a RAM disk."""
    properties = {'disk_format': 'aki', **values.pop('properties', {})}
    return base.instance(**{
        'user_data': None, 'ramdisk_id': RAMDISK,
        'system_metadata': {f'image_{name}': value for name, value
                            in properties.items()}, **values})


def nics():
    """One port, whose network has a subnet."""
    nic = base.vif()
    nic['network']['subnets'] = [{
        'version': 4, 'cidr': '10.0.1.0/24', 'ips': [{'address': '10.0.1.5'}],
        'gateway': {'address': '10.0.1.1'}}]
    return base.network_info(nic)


class KernelTestCase(base.DriverTestCase):

    def setUp(self):
        super().setUp()
        self.cosmosd.host_kind = 'xen'
        self.cosmosd.engine_sha256 = None
        self.files = dict(FILES)
        self.glance.get.side_effect = self._get
        self.glance.download.side_effect = \
            lambda _context, image_id: iter((self.files[image_id][1],))

    def _get(self, _context, image_id):
        if image_id not in self.files:
            raise nova_exception.ImageNotFound(image_id=image_id)
        disk_format, content = self.files[image_id]
        return {'disk_format': disk_format, 'size': len(content),
                'os_hash_algo': 'sha256',
                'os_hash_value': hashlib.sha256(content).hexdigest()}

    def refused(self, *parts, cls=exception.GuestNotStarted, **values):
        """Check that a server does not start, and with which words."""
        error = self.assertRaises(cls, self.spawn, server(**values))
        for part in parts:
            self.assertIn(part, error.format_message())
        self.assertNotIn('create', self.cosmosd.verbs())

    def created(self):
        """Return what cosmosd was asked to make."""
        return self.cosmosd.args('create')


class StartTest(KernelTestCase):

    def test_a_host_gets_kernel_and_ramdisk(self):
        self.spawn(server())
        self.assertEqual({SUMS[base.IMAGE]: b'kernel',
                          SUMS[RAMDISK]: b'070701'}, self.cosmosd.images)
        args = self.created()
        self.assertEqual(SUMS[base.IMAGE], args['image_sha256'])
        self.assertEqual({'command_line': 'console=hvc0',
                          'ramdisk_sha256': SUMS[RAMDISK]}, args['kernel'])
        self.assertEqual(('', [], False), (args['config'], args['writes'],
                                           args['hold']))

    def test_a_kernel_needs_no_ramdisk(self):
        self.spawn(server(ramdisk_id=''))
        self.assertEqual({'command_line': 'console=hvc0'},
                         self.created()['kernel'])

    def test_a_later_start_has_the_same_files_and_asks_no_other_service(self):
        made = server()
        self.spawn(made)
        self.cosmosd.images.clear()
        self.driver.reboot(mock.sentinel.context, made, base.network_info(),
                           'HARD')
        self.assertEqual({*SUMS.values()}, {*self.cosmosd.images})
        self.assertEqual(SUMS[RAMDISK],
                         self.created()['kernel']['ramdisk_sha256'])
        self.confirmed.assert_not_called()

    def test_a_rebuild_without_a_ramdisk_has_none(self):
        made = server()
        self.spawn(made)
        made.ramdisk_id = ''
        self.spawn(made)
        self.assertNotIn('ramdisk_sha256', self.created()['kernel'])

    def test_a_command_line_knows_the_addresses_of_ports(self):
        self.spawn(server(properties={
            'os_command_line': 'quiet net0=$PORT0_NET gw0=${PORT0_GW} $HOME'}),
            nics())
        self.assertEqual('quiet net0=10.0.1.5/24 gw0=10.0.1.1 $HOME',
                         self.created()['kernel']['command_line'])

    def test_user_data_is_for_the_metadata_service(self):
        zipped = base64.b64encode(b'\x1f\x8b\xff').decode()
        for user_data in base.b64('#cloud-config'), zipped:
            self.spawn(server(user_data=user_data))
            self.assertEqual('', self.created()['config'])

    def test_a_ramdisk_that_takes_the_place_of_its_kernel(self):
        store, sent = self.cosmosd.images, self.glance.download.side_effect

        def download(context, image_id):
            if image_id == RAMDISK:
                store.clear()    # the host has room for few
            return sent(context, image_id)
        self.glance.download.side_effect = download
        self.spawn(server())
        self.assertEqual({*SUMS.values()}, {*store})

    def test_a_resize_to_less_memory_leaves_the_guest_alone(self):
        made = server()
        self.spawn(made)
        error = self.assertRaises(
            nova_exception.InstanceFaultRollback,
            self.driver.migrate_disk_and_power_off, mock.sentinel.context,
            made, '192.0.2.1', base.flavor(made.flavor.memory_mb - 1), nics())
        self.assertIn('flavor: memory', str(error.inner_exception))

    def starts_kernels(self, kind):
        """Tell whether Nova knows that a host starts kernels."""
        self.cosmosd.host_kind = kind
        self.driver.init_host('compute1')
        return self.driver.capabilities_as_traits()['COMPUTE_IMAGE_TYPE_AKI']

    def test_a_xen_host_says_that_it_starts_kernels(self):
        self.assertTrue(self.starts_kernels('xen'))

    def test_a_process_host_does_not(self):
        self.assertFalse(self.starts_kernels('process'))


class RefusalTest(KernelTestCase):

    def test_a_process_host(self):
        self.cosmosd.host_kind = 'process'
        self.refused('disk_format aki', 'trait:CUSTOM_CLICKOS_XEN=required')

    def test_a_kernel_besides_the_image(self):
        self.refused(f'kernel_id {RAMDISK}', 'ramdisk_id', kernel_id=RAMDISK)

    def test_a_configuration(self):
        self.refused('clickos_config', properties={'clickos_config': 'Idle;'})
        self.refused('user_data', 'state', user_data=base.b64(json.dumps(
            {'clickos': 1, 'state': base.UUID})))

    def test_a_ramdisk_of_another_format(self):
        for other in ('raw', 'aki', None):
            self.files[RAMDISK] = (other, b'x')
            self.refused(f'ramdisk_id {RAMDISK}', 'expected', f'got {other}')

    def test_a_ramdisk_that_the_tenant_cannot_see(self):
        # Another server of this host has it.
        self.spawn(server())
        self.cosmosd.requests.clear()
        del self.files[RAMDISK]
        self.refused(RAMDISK, cls=nova_exception.ImageNotFound)

    def test_files_that_are_too_large(self):
        self.conf.config(group='clickos', max_image_mib=1)
        large = {'disk_format': 'ari', 'size': (1 << 20) + 1,
                 'os_hash_algo': 'sha512', 'os_hash_value': 'x'}
        self.glance.get.side_effect = lambda _context, image_id: (
            large if image_id == RAMDISK else self._get(None, image_id))
        self.refused(RAMDISK, '1048577 bytes', 'max_image_mib')

    def test_command_lines(self):
        for line, words in (('a' * 255, 'at most 251 bytes'),
                            ('quiet\nkernel="/x"', 'printable'),
                            ('\u202e', 'printable'),
                            ('net=$PORT3_IP', '$PORT3_IP: the server has 1')):
            self.refused(words, properties={'os_command_line': line})

    def test_cosmosds_reason_reaches_the_fault(self):
        self.cosmosd.faults['create'] = ('bad-image', 'it is a bzImage')
        error = self.assertRaises(exception.GuestNotStarted, self.spawn,
                                  server())
        self.assertEqual('it is a bzImage', error.format_message())

    def test_a_live_migration(self):
        error = self.assertRaises(
            nova_exception.MigrationPreCheckError,
            self.driver.check_can_live_migrate_destination, None, server(),
            {'hypervisor_type': 'clickos-xen'}, None)
        self.assertIn('cold migration', error.format_message())
