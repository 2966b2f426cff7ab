# SPDX-License-Identifier: Apache-2.0
"""The base of all tests."""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest import test

from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.common import tenant

CONF = config.CONF


class ClickOSTest(test.BaseTestCase):
    """A tenant of its own for every class of tests."""

    credentials = ['primary', 'admin']
    #: from a VNFD's text to that for the class's kind of host; None for none
    on_host = None

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.service_available.clickos:
            raise cls.skipException('ClickOS is not available')
        if not CONF.clickos.csar_path:
            raise cls.skipException('[clickos] csar_path is not set')

    @classmethod
    def setup_credentials(cls):
        cls.set_network_resources()
        super().setup_credentials()

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.tenant = tenant.Tenant(
            cls.os_primary, cls.addClassResourceCleanup, cls.image_ref())

    @classmethod
    def image_ref(cls):
        """Return the image of servers that ask for none."""
        return CONF.compute.image_ref

    def make_flavor(self, memory_mib, **more):
        """Make a flavor of a guest; return its id."""
        flavors = self.os_admin.flavors_client
        flavor = flavors.create_flavor(
            name=data_utils.rand_name('guest'), ram=memory_mib, vcpus=1,
            disk=1, **more)['flavor']
        self.addCleanup(flavors.delete_flavor, flavor['id'])
        specs = flavors.list_flavor_extra_specs(CONF.compute.flavor_ref)
        flavors.set_flavor_extra_spec(flavor['id'], **specs['extra_specs'])
        return flavor['id']

    def assertNothingLeft(self, vnf_id):
        """Check that a VNF has neither servers nor ports any more."""
        self.assertEqual([], self.tenant.leftovers(vnf_id))


class OnXenMixin:
    """Puts the guests of a class on the Xen host."""

    host = host.Host('xen_host_command')
    #: of its guests, as Nova's diagnostics name it
    hypervisor = 'clickos-xen'

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not cls.host.available():
            raise cls.skipException(
                f'[clickos] {cls.host.option} is not set')

    @staticmethod
    def on_host(text):
        """Name the image for Xen hosts in a VNFD."""
        return csar.with_image(text, CONF.clickos.xen_image)

    @classmethod
    def image_ref(cls):
        """Return the image for Xen hosts."""
        image, = cls.os_primary.image_client_v2.list_images(
            params={'name': CONF.clickos.xen_image})['images']
        return image['id']


class TwoHostsMixin:
    """Tests that need a second host, of processes if not said otherwise."""

    second = host.Host('second_host_command')
    zone_option = 'second_zone'

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not cls.second_zone():
            raise cls.skipException(f'[clickos] {cls.zone_option} is not set')

    @classmethod
    def second_zone(cls):
        """Return the availability zone of the second host."""
        return CONF.clickos[cls.zone_option]

    def zone(self, name):
        """Return the aggregate that is an availability zone."""
        return next(each for each in self.os_admin.aggregates_client
                    .list_aggregates()['aggregates']
                    if each['availability_zone'] == name)

    def move_host(self, name, origin, target):
        """Put a host into another zone, if it is not there yet.

        Nova moves no host with servers.
        """
        aggregates = self.os_admin.aggregates_client
        old, new = map(self.zone, (origin, target))
        if name in old['hosts']:
            aggregates.remove_host(old['id'], host=name)
        if name not in new['hosts']:
            aggregates.add_host(new['id'], host=name)

    def host_of(self, server_id):
        """Return the name of a server's host."""
        return self.os_admin.servers_client.show_server(server_id)['server'][
            'OS-EXT-SRV-ATTR:host']


class TwoXenHostsMixin(OnXenMixin):
    """Puts the guests of a class on two Xen hosts."""

    second = host.Host('second_xen_host_command')
    zone_option = 'second_xen_zone'


class OnHostTest(ClickOSTest):
    """Tests that need the compute host itself."""

    host = host.Host()

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not cls.host.available():
            raise cls.skipException(
                f'[clickos] {cls.host.option} is not set')


def add_slow(of, prefix, name, test):
    """Give a class a test that only soak runs.

    :param of: the class
    :param prefix: of the test's id; the number of the class's test follows
    :param test: function of the instance
    """
    def run(self):
        test(self)
    run.__name__ = name
    number = sum(each.startswith('test_') for each in vars(of))
    marked = decorators.attr(type='slow')(run)
    setattr(of, name,
            decorators.idempotent_id(f'{prefix}-{number:012x}')(marked))
