# SPDX-License-Identifier: Apache-2.0
"""Operations of Nova on a guest: what works, and what is refused.

docs/operator/servers.md lists them.
"""

from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests.scenario import pair

CONF = config.CONF

#: Counts the same packets twice.
REBUILT = '''
FromDevice(0) -> heard :: Counter -> limit :: CheckLength(1400)
  -> seen :: Counter -> Discard;
'''
#: Counts what comes to an interface that was attached later, too.
TWO_DEVICES = pair.LISTENER + """
FromDevice(1) -> more :: Counter -> Discard;
"""
#: Needs no port.
ALONE = 'Idle -> named :: Counter -> Discard;'
#: Knows the addresses of its port without a VNFD.
ADDRESSED = """
Idle -> arp :: ARPResponder($PORT0_IP ${PORT0_MAC}) -> Discard;
FromDevice($PORT0_VIF) -> Discard;
"""
#: Knows its ports by their tags, not by their order.
TAGGED = """
Idle -> ARPResponder($PORT_left_IP $PORT_left_MAC)
  -> right :: ARPResponder($PORT_right_IP $PORT_right_MAC) -> Discard;
"""
OWN = 'Idle -> own :: Counter -> Discard;'
VOLUME = {'source_type': 'blank', 'destination_type': 'volume',
          'volume_size': 1, 'boot_index': -1}
#: (arguments of a request for a server, words of the fault)
NO_SERVERS = (
    ({'config_drive': True}, 'no config drive'),
    ({'personality': [{'path': '/etc/motd', 'contents': 'eA=='}]},
     'no file system'),
    ({'user_data': None}, 'needs its Click configuration'),
)


#: More than Nova keeps of a property.
LIMITED = '//' + 'x' * 300 + '\nIdle -> limit :: CheckLength(100) -> Discard;'


class ServersTest(pair.PairCase):
    """One talker for all; most tests work on the listener that it talks to.

    A test leaves the listener active.
    """

    #: of its guests, as Nova's diagnostics name it
    hypervisor = 'clickos-process'

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.talker_id = cls.boot_talker(cls.addClassResourceCleanup)

    def create(self, **wanted):
        """Ask for a server, which ends with the test; return its id."""
        wanted = {'networks': 'none', 'user_data': tenant.encoded(ALONE),
                  **wanted}
        return self.tenant.create_server(
            self.addCleanup, name=data_utils.rand_name('server'),
            **{key: value for key, value in wanted.items()
               if value is not None})

    def boot(self, **wanted):
        """Start a server, which ends with the test; return its id."""
        server_id = self.create(**wanted)
        waiters.server(self.servers, server_id)
        return server_id

    def wait(self, status='ACTIVE'):
        """Wait for the listener's state."""
        return waiters.server(self.servers, self.server_id, status)

    def fault(self, server_id):
        """Return why a server could not be built."""
        server = waiters.server(self.servers, server_id, 'ERROR')
        return server['fault']['message']

    def write(self, handler, value):
        """Write a value of the listener, which it loses with the test."""
        self.addCleanup(self.clickos.delete_desired_state, self.server_id)
        self.clickos.write_handler(self.server_id, handler, value)

    def talk(self, active):
        """Let the talker send or be silent."""
        self.clickos.write_handler(self.talker_id, 'source.active',
                                   str(active).lower())

    def diagnostics(self):
        """Return what Nova tells administrators of the listener."""
        self.use('2.48')
        return self.os_admin.servers_client.show_server_diagnostics(
            self.server_id)

    def memory_mib(self):
        """Return the memory that the guest has."""
        return self.diagnostics()['memory_details']['maximum']

    def failure(self, name):
        """Return the last action's reasons, None if it is not a failed one."""
        action = self.servers.list_instance_actions(self.server_id)[
            'instanceActions'][0]
        if (action['action'], action['message']) != (name, 'Error'):
            return None
        events = self.servers.show_instance_action(
            self.server_id, action['request_id'])['instanceAction']['events']
        return [event['details'] for event in events if event['details']]

    def assertFailed(self, name, words):
        """Check that an action fails for a reason and spares the guest."""
        reasons = waiters.until(lambda: self.failure(name), bool,
                                f'{name} fails')
        self.assertIn(words, ', '.join(reasons))
        self.wait()

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e61')
    def test_a_suspended_guest_keeps_its_counters(self):
        self.assertHears()
        self.addCleanup(self.talk, True)
        self.talk(False)
        before = self.heard()
        self.servers.suspend_server(self.server_id)
        self.wait('SUSPENDED')
        caught = self.assertRaises(exceptions.Conflict, self.heard)
        self.assertIn('dead-guest', str(caught))
        self.servers.resume_server(self.server_id)
        self.wait()
        self.assertEqual(before, self.heard())
        self.talk(True)
        self.assertHears()

    @decorators.idempotent_id('0d1d6a52-3f3c-4f0e-8f43-9c5f1b0b7a11')
    def test_a_configuration_has_the_addresses_of_its_ports(self):
        port = self.tenant.make_port('left', self.addCleanup)
        server_id = self.tenant.boot(
            data_utils.rand_name('addressed'), [port], ADDRESSED,
            self.addCleanup)
        table = self.clickos.read_handler(server_id, 'arp.table')
        self.assertIn(port['fixed_ips'][0]['ip_address'], table)
        self.assertIn(port['mac_address'],
                      table.lower().replace('-', ':'))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('b1d2c9de-3a34-4dcd-9f65-6e1a1f1c5a08')
    def test_a_configuration_knows_ports_by_their_tags(self):
        self.use('2.42')
        ports = {tag: self.tenant.make_port('left', self.addCleanup)
                 for tag in ('right', 'left')}
        server_id = self.boot(
            user_data=tenant.encoded(TAGGED),
            networks=[{'port': port['id'], 'tag': tag}
                      for tag, port in ports.items()])
        table = self.clickos.read_handler(server_id, 'right.table')
        self.assertIn(ports['right']['fixed_ips'][0]['ip_address'], table)

    @decorators.idempotent_id('7c0b1f4e-6f0b-45a1-b8a5-2d1c9d7c3e53')
    def test_a_tag_that_no_port_has_is_named(self):
        self.use('2.42')
        port = self.tenant.make_port('left', self.addCleanup)
        server_id = self.create(
            user_data=tenant.encoded(TAGGED),
            networks=[{'port': port['id'], 'tag': 'left'}])
        self.assertIn('$PORT_right_', self.fault(server_id))

    @decorators.idempotent_id('7c0b1f4e-6f0b-45a1-b8a5-2d1c9d7c3e52')
    def test_a_port_that_the_server_has_not_is_named(self):
        self.use('2.37')
        server_id = self.create(user_data=tenant.encoded(ADDRESSED))
        self.assertIn('$PORT0_', self.fault(server_id))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e73')
    def test_a_server_stops_starts_and_reboots(self):
        self.servers.stop_server(self.server_id)
        self.wait('SHUTOFF')
        self.servers.start_server(self.server_id)
        self.wait()
        self.assertHears()
        self.servers.reboot_server(self.server_id, type='HARD')
        self.wait()
        self.assertHears()
        newest = self.clickos.list_events(self.server_id)[0]
        self.assertEqual(('reboot', 'Success'),
                         (newest['action'], newest['result']))

    def make_image(self, text=None, server_id=None):
        """Make an image of the listener's or another server's.

        :param text: configuration that it has instead
        """
        self.use('2.45')
        images = self.os_primary.image_client_v2
        image_id = self.os_primary.compute_images_client.create_image(
            server_id or self.server_id,
            name=data_utils.rand_name('copy'))['image_id']
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        images.delete_image, image_id)
        waiters.until(lambda: images.show_image(image_id)['status'],
                      lambda seen: seen == 'active', f'image {image_id}')
        if text is not None:
            images.update_image(image_id, [
                {'replace': '/clickos_config', 'value': text}])
        return image_id

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e62')
    def test_a_snapshot_boots_with_the_configuration_of_its_property(self):
        image_id = self.make_image(ALONE)
        for user_data, handler in ((None, 'named.count'),
                                   (tenant.encoded(OWN), 'own.count')):
            server_id = self.boot(imageRef=image_id, user_data=user_data)
            self.assertEqual('0', self.clickos.read_handler(server_id,
                                                            handler))
        self.assertHears()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e71')
    def test_a_snapshot_has_configuration_and_desired_state(self):
        self.use('2.37')        # of a server without a network
        first = self.boot(user_data=tenant.encoded(LIMITED))
        self.addCleanup(self.clickos.delete_desired_state, first)
        self.clickos.write_handler(first, 'limit.length', '200')
        image_id = self.make_image(server_id=first)
        second = self.boot(imageRef=image_id, user_data=None)
        self.assertEqual('200', self.clickos.read_handler(second,
                                                          'limit.length'))

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e63')
    def test_a_shelved_server_starts_with_its_desired_state(self):
        self.write('limit.length', '200')
        self.servers.shelve_server(self.server_id)
        self.wait('SHELVED_OFFLOADED')
        self.assertRaises(exceptions.Conflict, self.heard)
        self.servers.unshelve_server(self.server_id)
        self.wait()
        self.assertEqual('200', self.read('limit.length'))
        self.assertHears()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e64')
    def test_a_resize_is_reverted_and_confirmed(self):
        self.write('limit.length', '200')
        before_mib = self.memory_mib()
        flavor_id = self.make_flavor(2 * before_mib)
        for end, memory_mib in (
                (self.servers.revert_resize_server, before_mib),
                (self.servers.confirm_resize_server, 2 * before_mib)):
            self.servers.resize_server(self.server_id, flavor_id)
            self.wait('VERIFY_RESIZE')
            self.assertEqual(2 * before_mib, self.memory_mib())
            end(self.server_id)
            self.wait()
            self.assertEqual(memory_mib, self.memory_mib())
            self.assertEqual('200', self.read('limit.length'))
            self.assertHears()

    def rebuild(self, text):
        """Rebuild the listener with another configuration."""
        self.servers.rebuild_server(
            self.server_id, self.tenant.image_ref,
            user_data=tenant.encoded(text))

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e65')
    def test_a_rebuild_takes_another_configuration(self):
        self.write('limit.length', '200')
        self.use('2.57')
        self.rebuild('heard :: Nothing;')
        self.assertIn('user_data:1:', self.fault(self.server_id))
        self.rebuild(REBUILT)
        self.wait()
        self.assertEqual('200', self.read('limit.length'))
        self.assertHears()
        self.assertGreater(int(self.read('seen.count')), 0)

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e66')
    def test_diagnostics(self):
        self.assertHears()
        found = self.diagnostics()
        self.assertEqual(('running', 'xenapi', self.hypervisor), tuple(
            found[key] for key in ('state', 'driver', 'hypervisor')))
        nic, = found['nic_details']
        self.assertEqual(self.port['mac_address'], nic['mac_address'])
        self.assertGreater(nic['rx_packets'], 0)
        self.assertEqual(0, nic['tx_packets'])
        self.assertIn('clickos', self.servers.get_console_output(
            self.server_id)['output'])

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e67')
    def test_a_key_pair_is_accepted(self):
        keys = self.os_primary.keypairs_client
        key = keys.create_keypair(name=data_utils.rand_name('key'))['keypair']
        self.addCleanup(keys.delete_keypair, key['name'])
        self.use('2.37')
        self.boot(key_name=key['name'])

    def grouped(self, policy):
        """Create two servers of a group, one after the other."""
        groups = self.os_primary.server_groups_client
        group_id = groups.create_server_group(
            name=data_utils.rand_name(policy),
            policies=[policy])['server_group']['id']
        self.addCleanup(groups.delete_server_group, group_id)
        self.use('2.37')
        for _ in range(2):
            server_id = self.create(scheduler_hints={'group': group_id})
            yield waiters.until(
                lambda: self.servers.show_server(server_id)['server'],
                lambda seen: seen['status'] in ('ACTIVE', 'ERROR'),
                f'server {server_id} ACTIVE or ERROR')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e72')
    def test_server_groups(self):
        first, second = self.grouped('affinity')
        self.assertEqual(('ACTIVE', 'ACTIVE', first['hostId']), (
            first['status'], second['status'], second['hostId']))
        first, second = self.grouped('anti-affinity')
        self.assertEqual('ACTIVE', first['status'])
        if second['status'] == 'ERROR':     # there is no second host
            self.assertIn('No valid host', second['fault']['message'])
        else:
            self.assertNotEqual(first['hostId'], second['hostId'])

    @decorators.attr(type=['negative', 'slow'])
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e68')
    def test_refused_servers_name_the_reason(self):
        self.use('2.37')
        swap = {'flavorRef': self.make_flavor(8, swap=1)}
        disk = {'source_type': 'image', 'destination_type': 'local',
                'uuid': self.tenant.image_ref, 'boot_index': 0}
        cases = [(self.create(**wanted), words) for wanted, words in (
            *NO_SERVERS, (swap, 'no disk'),
            ({'imageRef': '', 'block_device_mapping_v2': [
                {**disk, 'destination_type': 'volume', 'volume_size': 1}]},
             'no volume'),
            ({'block_device_mapping_v2': [disk, VOLUME]}, 'no volume'))]
        for server_id, words in cases:
            self.assertIn(words, self.fault(server_id))

    def assertRefused(self, error, words, call, *args, **kwargs):
        """Check that an operation is refused at once."""
        caught = self.assertRaises(error, call, *args, **kwargs)
        self.assertIn(words, str(caught))

    def ports(self):
        """Return the listener's ports."""
        return [port['id'] for port in
                self.os_primary.ports_client.list_ports(
                    device_id=self.server_id)['ports']]

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e69')
    def test_interfaces_come_and_go_while_the_guest_runs(self):
        interfaces = self.os_primary.interfaces_client
        before = self.heard()
        attached = interfaces.create_interface(
            self.server_id, net_id=self.port['network_id'])[
                'interfaceAttachment']
        port_id = attached['port_id']
        ports = self.os_primary.ports_client
        waiters.until(lambda: ports.show_port(port_id)['port']['status'],
                      lambda seen: seen == 'ACTIVE', 'the port is active')
        self.addCleanup(self.clickos.delete_desired_state, self.server_id)
        self.addCleanup(self.clickos.replace_config, self.server_id,
                        pair.LISTENER)
        self.clickos.replace_config(self.server_id, TWO_DEVICES)
        peer = ports.show_port(port_id)['port']
        self.boot_talker(self.addCleanup, peer)
        waiters.until(lambda: int(self.read('more.count')),
                      lambda seen: seen > 0, 'device 1 hears')
        interfaces.delete_interface(self.server_id, port_id)
        waiters.until(self.ports, lambda seen: seen == [self.port['id']],
                      'the port is gone')
        caught = self.assertRaises(
            exceptions.BadRequest, self.clickos.replace_config,
            self.server_id, TWO_DEVICES.replace('more', 'other'))
        self.assertIn('device 1', str(caught))
        self.assertGreater(self.heard(), before)
        self.assertHears()

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e7a')
    def test_a_rescued_server_does_nothing_until_it_is_unrescued(self):
        self.servers.rescue_server(self.server_id)
        self.wait('RESCUE')
        self.assertEqual('Idle -> Discard;', self.read('config').strip())
        self.servers.unrescue_server(self.server_id)
        self.wait()
        self.assertHears()

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e70')
    def test_refused_operations_leave_the_guest_alone(self):
        before = self.heard()
        admin = self.os_admin.servers_client
        self.assertRefused(
            exceptions.BadRequest, 'No valid host', admin.live_migrate_server,
            self.server_id, host=None, block_migration=False,
            disk_over_commit=False)
        self.use('2.84')
        self.servers.resize_server(self.server_id,
                                   self.make_flavor(8, swap=1))
        self.assertFailed('resize', 'no disk')
        admin.migrate_server(self.server_id)
        self.assertFailed('migrate', 'No valid host')
        self.assertGreater(self.heard(), before)
        self.assertHears()
