# SPDX-License-Identifier: Apache-2.0
"""A server of a Linux kernel on a Xen host: what of Nova works for it.

docs/operator/linux.md lists it.
"""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF
#: Debian's kernel and its RAM disk need so much.
MEMORY_MIB = 128
#: for a kernel that boots in emulation
BOOT_S = 300
#: Of the network, and none of its pool.
OTHER_IP = '10.10.1.78'


class LinuxOnXenTest(base.OnXenMixin, base.OnHostTest):
    """A test has a Linux guest, and a machine that pings it.

    The ports have port security, and the groups of their project.
    """

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.linux_image:
            raise cls.skipException('[clickos] linux_image is not set')

    @classmethod
    def image_ref(cls):
        """Return the image of the kernel."""
        image, = cls.os_primary.image_client_v2.list_images(
            params={'name': CONF.clickos.linux_image})['images']
        return image['id']

    def setUp(self):
        super().setUp()
        self.servers = self.tenant.servers
        self.port = self.tenant.make_port('left', self.addCleanup)
        self.ip = self.port['fixed_ips'][0]['ip_address']
        self.machine = traffic.Endpoint(self.tenant, self.os_admin, 'left',
                                        self.addCleanup)

    def create(self, **wanted):
        """Ask for a server at the port; return its id."""
        return self.tenant.create_server(self.addCleanup, **{
            'name': data_utils.rand_name('linux'),
            'flavorRef': self.make_flavor(MEMORY_MIB),
            'networks': [{'port': self.port['id']}], **wanted})

    def boot(self):
        """Start a server and wait until it answers pings."""
        self.server_id = self.create()
        self.wait()
        self.assertAnswers()

    def wait(self, status='ACTIVE'):
        """Wait for the server's state."""
        found = waiters.until(
            lambda: self.servers.show_server(self.server_id)['server'],
            lambda seen: seen['status'] in (status, 'ERROR')
            and not seen['OS-EXT-STS:task_state'],
            f'server {self.server_id} {status}', BOOT_S)
        self.assertEqual(status, found['status'], found.get('fault'))

    def assertAnswers(self):
        """Check that the guest answers pings, soon."""
        waiters.until(lambda: self.machine.can_ping_address(self.ip), bool,
                      f'{self.ip} answers', BOOT_S)

    def assertSilent(self):
        """Check that the guest answers no pings any more."""
        waiters.until(
            lambda: self.machine.run('ping', '-n', '-q', '-c', '2', '-i',
                                     '0.2', '-W', '1', self.ip,
                                     check=False).returncode,
            bool, f'{self.ip} is silent')

    def console(self):
        """Return what the guest has written to its console."""
        return self.servers.get_console_output(self.server_id)['output']

    def assertConsole(self, words):
        """Check that the console has words, soon."""
        waiters.until(self.console, lambda seen: words in seen,
                      f'the console has {words!r}', BOOT_S)

    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a01')
    def test_a_linux_guest_boots_behind_port_security(self):
        self.boot()
        self.assertTrue(self.os_primary.ports_client.show_port(
            self.port['id'])['port']['port_security_enabled'])
        self.assertConsole('guest: ready')
        self.assertConsole(f'guest: eth0 {self.port["mac_address"]}')
        port, = self.tenant.clickos.list_ports(self.server_id)
        self.assertGreater(port['counters']['rx_packets'], 0)
        # Its address is another one's now, and the guest uses it still.
        ports = self.os_primary.ports_client
        subnet_id = self.port['fixed_ips'][0]['subnet_id']
        for address, check in ((OTHER_IP, self.assertSilent),
                               (self.ip, self.assertAnswers)):
            ports.update_port(self.port['id'], fixed_ips=[
                {'subnet_id': subnet_id, 'ip_address': address}])
            check()
        self.assertNotEqual([], self.host.leftovers(self.server_id))
        self.servers.delete_server(self.server_id)
        waiters.gone(lambda: self.servers.show_server(self.server_id),
                     f'server {self.server_id}')
        self.assertEqual([], self.host.leftovers(self.server_id))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a02')
    def test_a_server_stops_and_starts(self):
        self.boot()
        self.servers.stop_server(self.server_id)
        self.wait('SHUTOFF')
        self.assertSilent()
        self.servers.start_server(self.server_id)
        self.wait()
        self.assertAnswers()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a07')
    def test_a_server_reboots(self):
        self.boot()
        self.servers.reboot_server(self.server_id, type='HARD')
        self.wait()
        self.assertAnswers()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a03')
    def test_interfaces_come_and_go_while_the_guest_runs(self):
        self.boot()
        interfaces = self.os_primary.interfaces_client
        port_id = interfaces.create_interface(
            self.server_id, net_id=self.port['network_id'])[
                'interfaceAttachment']['port_id']
        ports = self.os_primary.ports_client
        mac = ports.show_port(port_id)['port']['mac_address']
        self.assertConsole(f'guest: eth1 {mac}')
        interfaces.delete_interface(self.server_id, port_id)
        self.assertConsole('guest: eth1 has gone')
        self.assertAnswers()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a04')
    def test_a_paused_and_a_suspended_guest_continue(self):
        self.boot()
        for stop, status, go_on in (
                (self.servers.pause_server, 'PAUSED',
                 self.servers.unpause_server),
                (self.servers.suspend_server, 'SUSPENDED',
                 self.servers.resume_server)):
            stop(self.server_id)
            self.wait(status)
            self.assertSilent()
            go_on(self.server_id)
            self.wait()
            self.assertAnswers()

    @decorators.attr(type='negative')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a05')
    def test_what_needs_click_is_refused_and_the_guest_runs_on(self):
        self.boot()
        clickos = self.tenant.clickos
        for call in (
                lambda: clickos.read_handler(self.server_id, 'fw.config'),
                lambda: clickos.write_handler(self.server_id, 'fw.config',
                                              'allow icmp'),
                lambda: clickos.replace_config(self.server_id, 'Idle;')):
            # A change that takes longer has its verdict later.
            caught = self.assertRaises(
                (exceptions.Conflict, exceptions.BadRequest), call)
            self.assertIn('its kernel is not Click', str(caught))
        admin = self.os_admin.servers_client
        self.assertRaises(
            exceptions.BadRequest, admin.live_migrate_server, self.server_id,
            host=None, block_migration=False, disk_over_commit=False)
        self.wait()
        self.assertAnswers()

    @decorators.attr(type='negative')
    @decorators.idempotent_id('c3b1a7d2-5f0e-4d0b-9a55-6f3b8c1e2a06')
    def test_a_kernel_that_does_not_fit_is_refused(self):
        server_id = self.create(flavorRef=self.make_flavor(16))
        server = waiters.until(
            lambda: self.servers.show_server(server_id)['server'],
            lambda seen: seen['status'] in ('ACTIVE', 'ERROR'),
            f'server {server_id} ERROR', BOOT_S)
        self.assertIn("more than the guest's memory of 16 MiB",
                      server['fault']['message'])
