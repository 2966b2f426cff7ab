# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Nova driver share."""

import base64
import datetime
import json
from unittest import mock

from clickos_client import document as client_document
import fixtures
from nova.network import model
from nova import objects
from nova.virt import virtapi
from oslo_config import fixture as config_fixture
import testtools

from nova_clickos.conf import CONF
from nova_clickos import desired_state
from nova_clickos import driver
from tests.unit import cosmosd

UUID = '11111111-2222-4333-8444-555555555555'
IMAGE = 'aaaaaaaa-2222-4333-8444-555555555555'
PROJECT = 'f0e1d2c3b4a5968778695a4b3c2d1e0f'
PORT = '01234567-89ab-4def-8123-456789abcdef'
CONFIG = 'FromDevice(0) -> ToDevice(1);'
STARTED = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)
DESIRED = client_document.Desired((('fw.config', 'deny all'),))

objects.register_all()


def b64(text):
    return base64.b64encode(text.encode()).decode()


def document(**values):
    """user_data as a JSON document."""
    return b64(json.dumps(dict({'clickos': 1, 'config': CONFIG}, **values)))


def flavor(memory_mb, **values):
    """A flavor without disks, unless values give it some."""
    return objects.Flavor(**{
        'name': f'guest-{memory_mb}', 'memory_mb': memory_mb, 'vcpus': 1,
        'root_gb': 1, 'ephemeral_gb': 0, 'swap': 0, **values})


def instance(**values):
    """A server as Nova hands it to the driver."""
    values = dict({
        'uuid': UUID, 'id': 1, 'image_ref': IMAGE, 'user_data': b64(CONFIG),
        'flavor': flavor(8), 'system_metadata': {}, 'launched_at': None,
        'vm_state': 'active', 'task_state': None,
        'kernel_id': '', 'ramdisk_id': '',
        'config_drive': '', 'project_id': PROJECT,
        'display_name': 'fw', 'metadata': {}}, **values)
    return objects.Instance(**values)


def vif(port_id=PORT, mtu=1500, **values):
    """An interface as Nova builds it from Neutron's port."""
    details = {'vale_switch': 'vale0', 'vale_segment': 101,
               'vale_port': 'p01234567-89', 'vale_port_security': True,
               'vale_link_up': True,
               'vale_allowed': [{'mac': 'fa:16:3e:00:00:01',
                                 'ip': '10.0.1.5/32'}],
               'port_filter': False, 'connectivity': 'l2'}
    values = dict({'type': 'vale', 'details': details}, **values)
    return model.VIF(id=port_id, address='fa:16:3e:00:00:01',
                     network=model.Network(id='n', mtu=mtu), **values)


def tagged(tag, port_id=PORT, mac='fa:16:3e:00:00:01'):
    """An interface as Nova keeps it, with its tag."""
    return objects.VirtualInterface(uuid=port_id, address=mac, tag=tag)


def network_info(*vifs):
    return model.NetworkInfo(vifs or (vif(),))


class TestCase(testtools.TestCase):
    """Options of Nova and the driver, set back afterwards."""

    def setUp(self):
        super().setUp()
        self.useFixture(fixtures.FakeLogger())
        self.conf = self.useFixture(config_fixture.Config(CONF))
        self.conf.config(host='compute1', instances_path=self.useFixture(
            fixtures.TempDir()).path)


class DriverTestCase(TestCase):
    """A driver with a cosmosd double behind a real socket."""

    def setUp(self):
        super().setUp()
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.conf.config(group='clickos', cosmosd_socket=self.cosmosd.path,
                         cosmosd_timeout=5, allow_process_host=True,
                         cosmosd_patience=0)
        # Without a Neutron no port becomes active.
        self.conf.config(vif_plugging_timeout=0)
        # Glance is the outer edge: this image is the installed engine.
        self.glance = self.useFixture(fixtures.MockPatch(
            'nova.image.glance.API', autospec=True)).mock.return_value
        self.glance.get.return_value = {
            'os_hash_algo': 'sha256', 'os_hash_value': cosmosd.SHA256}
        self.action_events = self.useFixture(fixtures.MockPatch(
            'nova.objects.InstanceActionEvent', autospec=True)).mock
        self.on_host = self.useFixture(fixtures.MockPatch(
            'nova.objects.InstanceList.get_by_host', autospec=True)).mock
        self.on_host.return_value = []
        self.virtual_interfaces = self.useFixture(fixtures.MockPatch(
            'nova.objects.VirtualInterfaceList.get_by_instance_uuid',
            autospec=True)).mock
        self.virtual_interfaces.return_value = []
        self.virtapi = mock.create_autospec(virtapi.VirtAPI, instance=True)
        # The HTTP edge has its own tests.
        self.confirmed = self.useFixture(fixtures.MockPatchObject(
            desired_state.DesiredState, 'confirm', autospec=True,
            return_value=True)).mock
        self.driver = driver.ClickOSDriver(self.virtapi)
        self.addCleanup(self.driver.cleanup_host, 'compute1')

    def spawn(self, server, nics=None, **values):
        self.driver.spawn(
            mock.sentinel.context, server, objects.ImageMeta(), [], None, {},
            network_info=nics or network_info(), **values)
