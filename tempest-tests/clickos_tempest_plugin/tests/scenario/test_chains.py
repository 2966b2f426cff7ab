# SPDX-License-Identifier: Apache-2.0
"""Chains of networking-sfc steer packets through guests."""

from clickos_client import pings
from tempest import config
from tempest.lib.common.utils import data_utils
from tempest.lib.common.utils import test_utils
from tempest.lib import decorators
from tempest.lib import exceptions

from clickos_tempest_plugin.common import bounds
from clickos_tempest_plugin.common import cli
from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import host
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF

#: Copies each frame from one of its vifs to the other.
WIRE = '''
FromDevice(0) -> right :: Counter -> Queue -> ToDevice(1);
FromDevice(1) -> left :: Counter -> Queue -> ToDevice(0);
'''
#: A wire that keeps the TCP connections whose beginning it saw, and drops all
#: others. The package's property writes to fw.config.
STATEFUL = '''
flows :: IPRewriter(keep 0 1, drop, drop);
FromDevice(0) -> right_kind :: Classifier(12/0800 23/06, -);
right_kind[0] -> MarkIPHeader(14)
    -> begins :: IPClassifier(syn and not ack, -);
begins[0] -> opened :: Counter -> [0]flows;
begins[1] -> [1]flows;
FromDevice(1) -> left_kind :: Classifier(12/0800 23/06, -);
left_kind[0] -> MarkIPHeader(14) -> [2]flows;
flows[0] -> right :: Counter -> right_out :: Queue -> ToDevice(1);
flows[1] -> left_out :: Queue -> ToDevice(0);
right_kind[1] -> right;
left_kind[1] -> left_out;
Idle -> fw :: IPFilter(deny all) -> Discard;
'''
CONNECTIONS = 100
FLOWS = 40
#: Sends packets of many flows to one station.
SENDER = """
out :: EtherEncap(0x0800, {mac}, {peer_mac}) -> sent :: Counter
  -> Queue -> ToDevice(0);
FromDevice(0) -> Discard;
""" + ' '.join(f"""
s{n} :: RatedSource(DATA "hello", RATE 8)
  -> UDPIPEncap({{ip}}, {1000 + n}, {{peer_ip}}, 7) -> out;
""" for n in range(FLOWS))
#: Counts the packets of one station.
RECEIVER = """
FromDevice(0) -> from :: Classifier(6/{peer}, -);
from[0] -> heard :: Counter -> Discard;
from[1] -> Discard;
"""


class SfcMixin:
    """Resources of networking-sfc for a test."""

    def make(self, kind, **values):
        """Make a resource of networking-sfc until the end of the test."""
        made = self.sfc.create(kind, **values)
        self.addCleanup(test_utils.call_and_ignore_notfound_exc,
                        self.sfc.delete, kind, made['id'])
        return made['id']

    def let_flow(self, sender, active, flows=FLOWS):
        """Start or stop all flows of the sender."""
        self.tenant.clickos.write_handlers(
            sender, [[f's{n}.active', active] for n in range(flows)])

    def steered(self, chain):
        """Return the packets that each hop got, [] if there is no chain."""
        try:
            hops = self.tenant.clickos.show_chain(chain)['hops']
        except exceptions.Conflict:
            return []
        return [hop['packets'] for hop in hops]

    def passed(self, server_id, name='right'):
        """Return how many frames a guest has counted."""
        return int(self.tenant.clickos.read_handler(server_id,
                                                    f'{name}.count'))

    def assertHops(self, chain, hops):
        """Wait until the switch's chain has as many hops."""
        waiters.until(lambda: self.steered(chain),
                      lambda seen: len(seen) == hops, f'{hops} hops')

    def make_ends(self, allow=()):
        """Make a client and a server on one network.

        :param allow: networks whose addresses they may use, too
        """
        self.sfc = self.os_primary.sfc.SfcClient()
        self.client, self.server = (
            traffic.Endpoint(self.tenant, self.os_admin,
                             'left', self.addCleanup, allow=allow)
            for _ in range(2))
        if self.on_host:
            self.client.bind(self.os_admin)

    def make_flow(self, **values):
        """Make a classifier of the client's packets.

        With hops on another host it has to name the client's port.
        """
        if self.on_host:
            values = {'logical_source_port': self.client.port_id, **values}
        return self.make('flow_classifier', **values)

    def make_chain(self, groups):
        """Make a chain from the client to the server and back."""
        flow = self.make_flow(source_ip_prefix=f'{self.client.ip}/32',
                              destination_ip_prefix=f'{self.server.ip}/32')
        return self.make('port_chain', port_pair_groups=groups,
                         flow_classifiers=[flow],
                         chain_parameters={'symmetric': True})


class ChainsTest(SfcMixin, base.OnHostTest):
    """A client, a server and two wires on one network."""

    def setUp(self):
        super().setUp()
        self.make_ends()

    def make_hop(self):
        """Boot a wire; return its server and port pair group."""
        ports = [self.tenant.make_port('left', self.addCleanup,
                                       port_security_enabled=False)
                 for _ in range(2)]
        server_id = self.tenant.boot(data_utils.rand_name('wire'), ports,
                                     WIRE, self.addCleanup)
        pair = self.make('port_pair', ingress=ports[0]['id'],
                         egress=ports[1]['id'],
                         service_function_parameters={'weight': 2})
        refused = self.assertRaises(
            exceptions.Conflict, self.os_admin.ports_client.delete_port,
            ports[1]['id'])
        self.assertIn(f'is in port pair {pair}', str(refused))
        return server_id, self.make('port_pair_group', port_pairs=[pair])

    @decorators.attr(type='gate')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e31')
    def test_packets_pass_the_hops_until_the_chain_is_deleted(self):
        self.assertTrue(self.client.can_ping(self.server))
        (first, one), (second, two) = self.make_hop(), self.make_hop()
        chain = self.make_chain([one, two])
        self.assertHops(chain, 2)
        # The switches of two hosts drop packets until each knows the other's.
        self.assertTrue(self.client.can_ping(self.server))
        steered, passed = self.counted(chain, first, second)
        self.assertTrue(self.client.can_ping(self.server))
        waiters.until(
            lambda: self.counted(chain, first, second),
            lambda seen: seen == ([n + 4 for n in steered],
                                  [n + 2 for n in passed]),
            'both hops get each request and its answer')
        ping = self.client.ping(self.server)
        for groups in ([one], [two, one], [two], [one, two]):
            self.sfc.update('port_chain', chain, port_pair_groups=groups)
            self.assertEqual(groups, self.sfc.show(
                'port_chain', chain)['port_pair_groups'])
            self.assertHops(chain, len(groups))
        found = ping.result()
        self.assertGreater(found.sent, 5)
        bounds.hold('max_chain_change_lost_pings', len(found.lost))
        self.sfc.delete('port_chain', chain)
        waiters.until(lambda: self._is_passed_by(first), bool,
                      'packets go straight')

    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e5c')
    def test_an_overlapping_classifier_replaces_another_without_a_gap(self):
        first, one = self.make_hop()
        chain = self.make_chain([one])
        self.assertHops(chain, 1)
        self.assertFalse(self._is_passed_by(first))
        before = [self.passed(first, name) for name in ('right', 'left')]
        ping = self.client.ping(self.server)
        # The first one is wider, the second one narrower, the last the same.
        for values in ({'source_ip_prefix': f'{self.client.ip}/32'},
                       {'protocol': 'icmp'}, {'protocol': 'icmp'}):
            flow = self.make_flow(**{
                'source_ip_prefix': f'{self.client.ip}/32', **values})
            self.addCleanup(self.sfc.update, 'port_chain', chain,
                            flow_classifiers=[])
            self.sfc.update('port_chain', chain, flow_classifiers=[flow])
            self.assertEqual([flow], self.sfc.show(
                'port_chain', chain)['flow_classifiers'])
            ping.wait(max(pings.answered(ping.text()), default=0) + 5)
        found = ping.result()
        bounds.hold('max_chain_change_lost_pings', len(found.lost))
        # Each request and its answer took the hop: no packet went past it.
        after = [self.passed(first, name) for name in ('right', 'left')]
        self.assertGreaterEqual(
            min(now - then for now, then in zip(after, before)),
            len(pings.answered(ping.text())))
        _, another = self.make_hop()
        other = self.make_flow(protocol='icmp')
        self.assertRaises(
            exceptions.BadRequest, self.sfc.create, 'port_chain',
            port_pair_groups=[another], flow_classifiers=[other])

    def counted(self, chain, *servers):
        """Return the packets that hops got, and those that wires counted."""
        return self.steered(chain), [self.passed(each) for each in servers]

    def _is_passed_by(self, server_id):
        """Ping, and tell if a wire counted no frame."""
        before = self.passed(server_id)
        self.assertTrue(self.client.can_ping(self.server))
        return before == self.passed(server_id)

    @decorators.attr(type='negative')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e32')
    def test_a_port_of_another_project_is_no_hop(self):
        # The network's owner sees this port: networking-sfc would take it.
        ports = self.os_admin.ports_client
        network = self.tenant.networks['left'].id
        theirs = ports.create_port(
            network_id=network, device_id='theirs',
            tenant_id=self.os_admin.credentials.project_id)['port']['id']
        self.addCleanup(ports.delete_port, theirs)
        for kind, values in (
                ('port_pair', {'ingress': theirs, 'egress': theirs}),
                ('flow_classifier', {'logical_source_port': theirs})):
            refused = self.assertRaises(
                exceptions.Conflict, self.sfc.create, kind, **values)
            self.assertIn(f'port {theirs}: belongs to another project',
                          str(refused))


class ScaledHopCase(SfcMixin, base.OnHostTest):
    """A VNF with state in a chain grows and shrinks under connections."""

    #: what the group of port pairs has besides them
    parameters = {}

    def instantiate(self, package, **more):
        """Make the VNF, with both connection points on one network."""
        self.vnf_id = self.tenant.create_vnf(
            self.tenant.onboard(package, self.addCleanup), self.addCleanup)
        tenant.completed(self.tenant.operate(
            self.vnf_id, 'instantiate', flavourId='simple',
            vimConnectionInfo=[{'id': 'vim', 'vimId': self.tenant.vim_id,
                                'vimType': 'openstack'}],
            extVirtualLinks=[self.link()], **more))

    def link(self):
        """Return the link of both connection points with the network."""
        network = self.tenant.networks['left']
        config = [{'cpProtocolData': [{
            'layerProtocol': 'IP_OVER_ETHERNET',
            'ipOverEthernet': {'ipAddresses': [{
                'type': 'IPV4', 'subnetId': network.subnet_id,
                'numDynamicAddresses': 1}]}}]}]
        return {'id': 'left', 'resourceId': network.id, 'extCps': [
            {'cpdId': point, 'cpConfig': config}
            for point in ('left', 'right')]}

    def scale(self, kind):
        """Add a guest, or remove one."""
        tenant.completed(self.tenant.operate(
            self.vnf_id, 'scale', type=kind, aspectId='capacity',
            numberOfSteps=1))

    def guests(self):
        """Return the servers, the first guest's first."""
        info = self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']
        return [vnfc['computeResource']['resourceId']
                for vnfc in info['vnfcResourceInfo']]

    def make_hop(self):
        """Make the first guest a hop; return its group's id."""
        ports = {port['name']: port['id'] for port in
                 self.os_primary.network.PortsClient().list_ports(
                     description=f'clickos-vnf:{self.vnf_id}')['ports']}
        pair = self.make('port_pair', ingress=ports['VDU1-0-left'],
                         egress=ports['VDU1-0-right'])
        return self.make('port_pair_group', port_pairs=[pair],
                         **self.parameters)

    def opened(self):
        """Return the connections that each guest saw begin."""
        raise NotImplementedError

    def check_scaling(self, chain):
        """Count the connections that a scale-out and a scale-in end."""
        self.assertHops(chain, 1)
        self.server.serve_echo()
        oldest, old = (self.client.connect(self.server, CONNECTIONS)
                       for _ in range(2))
        self.assertGreaterEqual(self.opened(), [2 * CONNECTIONS])
        self.scale('SCALE_OUT')
        waiters.until(self._connects, bool, 'connections at both guests')
        new = self.client.connect(self.server, CONNECTIONS)
        before = self.opened()
        last = self.client.connect(self.server, CONNECTIONS)
        at_second = self.opened()[1] - before[1]
        self.assertGreater(at_second, CONNECTIONS // 10)
        self.assertEqual((0, 0), (old.lost(), new.lost()))
        # The guest that goes gives its flows to the one that stays.
        self.scale('SCALE_IN')
        self.assertEqual((0, 0), (oldest.lost(), last.lost()))
        self.assertEqual(0, self.client.connect(self.server,
                                                CONNECTIONS).lost())

    def _connects(self):
        """Open connections, and tell if the second guest saw any."""
        before = self.opened()
        self.assertEqual(0, self.client.connect(self.server, 40).lost())
        return self.opened()[1] - before[1]


class ScaledHopTest(ScaledHopCase):
    """A wire with state."""

    def setUp(self):
        super().setUp()
        self.make_ends()
        self.instantiate(csar.firewall(
            click=lambda text: STATEFUL,
            vnfd=csar.all_of(lambda text: text.replace(
                'routed: true', 'transparent: true'), self.on_host)))

    def opened(self):
        """Return the connections that each guest saw begin."""
        return [self.passed(server, 'opened') for server in self.guests()]

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e34')
    def test_connections_outlive_scale_out_and_scale_in(self):
        self.check_scaling(self.make_chain([self.make_hop()]))


class ScaledNatTest(ScaledHopCase):
    """The catalog's NAT; its guests share a public address."""

    @classmethod
    def skip_checks(cls):
        super().skip_checks()
        if not CONF.clickos.nat_csar_path:
            raise cls.skipException('[clickos] nat_csar_path is not set')

    def setUp(self):
        super().setUp()
        self.make_ends(('10.10.1.192/26',))
        # The address of the other end chooses the guest.
        self.server.add_addresses(
            *(f'10.10.1.{n}/24' for n in range(200, 240)))
        # A port that no server has reserves the address.
        public = self.tenant.make_port(
            'left', self.addCleanup)['fixed_ips'][0]['ip_address']
        self.parameters = {'port_pair_group_parameters': {
            'ppg_n_tuple_mapping': {'ingress_n_tuple': {}, 'egress_n_tuple': {
                'source_ip_prefix': f'{public}/32'}}}}
        self.instantiate(csar.nat(self.on_host), additionalParams={
            'clickos_properties': {'public': public}})

    def opened(self):
        """Return the flows of each guest."""
        return [int(self.tenant.clickos.read_handler(server, 'flows.size'))
                for server in self.guests()]

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e35')
    def test_connections_outlive_scale_out_and_scale_in(self):
        flow = self.make_flow(protocol='tcp',
                              source_ip_prefix=f'{self.client.ip}/32')
        self.check_scaling(self.make(
            'port_chain', port_pair_groups=[self.make_hop()],
            flow_classifiers=[flow], chain_parameters={'symmetric': True}))


class FusedChainTest(SfcMixin, base.OnHostTest):
    """A chain of two hops with state becomes one guest, and two again."""

    connections = CONNECTIONS

    def setUp(self):
        super().setUp()
        self.make_ends()
        (self.first, one), (self.second, two) = (
            self.make_hop(name) for name in ('fw', 'ids'))
        self.chain = self.make_chain([one, two])
        self.assertHops(self.chain, 2)
        self.server.serve_echo()

    def make_hop(self, name):
        """Boot a wire with state; return its server and its group."""
        ports = [self.tenant.make_port('left', self.addCleanup,
                                       port_security_enabled=False)
                 for _ in range(2)]
        server_id = self.tenant.boot(data_utils.rand_name(name), ports,
                                     STATEFUL, self.addCleanup)
        pair = self.make('port_pair', ingress=ports[0]['id'],
                         egress=ports[1]['id'])
        return server_id, self.make('port_pair_group', name=name,
                                    port_pairs=[pair])

    def connect(self):
        """Open connections through the chain."""
        return self.client.connect(self.server, self.connections)

    def opened(self):
        """Return the connections that each hop saw begin."""
        return [self.passed(server, 'opened')
                for server in (self.first, self.second)]

    def command(self, verb, *more):
        """Fuse, unfuse or show the chain; return what was printed."""
        done = cli.openstack(self.os_primary, 'clickos', 'chain', verb,
                             self.chain, *more)
        self.assertEqual(0, done.returncode, done.stderr)
        return done.stdout

    def unfuse(self):
        """Unfuse the chain if the test did not come to it."""
        if len(self.steered(self.chain)) == 1:
            self.command('unfuse', '--drop-flows')

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e36')
    def test_connections_and_writes_outlive_fusion(self):
        clickos, servers = self.tenant.clickos, self.tenant.servers
        connections = [self.connect()]
        ping = self.client.ping(self.server)
        self.addCleanup(self.unfuse)
        self.command('fuse', '--program', CONF.clickos.combine_program)
        self.assertHops(self.chain, 1)
        # The counters of the new guest begin at zero.
        self.assertEqual([0, 0], self.opened())
        connections.append(self.connect())
        self.assertEqual([self.connections] * 2, self.opened())
        self.assertIn('fw, ids: fused in', self.command('show'))
        clickos.write_handler(self.second, 'fw.config', 'allow all')
        self.assertEqual(['deny all', 'allow all'], [
            clickos.read_handler(server, 'fw.config')
            for server in (self.first, self.second)])
        self.command('unfuse')
        self.assertHops(self.chain, 2)
        connections.append(self.connect())
        self.assertEqual([0] * 3, [each.lost() for each in connections])
        found = ping.result()
        self.assertGreater(found.sent, 5)
        self.assertEqual((), found.lost)
        self.assertEqual([2 * self.connections] * 2, self.opened())
        self.assertEqual('allow all', clickos.read_handler(self.second,
                                                           'fw.config'))
        self.assertEqual(2, len(servers.list_servers()['servers']))


class OverHostsMixin(SfcMixin):
    """A sender on one host, its receiver and hops on two."""

    def setUp(self):
        super().setUp()
        self.sfc = self.os_primary.sfc.SfcClient()
        self.sending, self.receiving = (self.make_port() for _ in range(2))

    def make_port(self, **wanted):
        """Make a port on the project's network."""
        return self.tenant.make_port('left', self.addCleanup, **wanted)

    def elsewhere(self):
        """Return what a server of the other host asks Nova for."""
        raise NotImplementedError

    def boot(self, place, text, *ports):
        """Start a guest on the first host or the second one."""
        return self.tenant.boot(data_utils.rand_name('guest'), list(ports),
                                text, self.addCleanup,
                                **(self.elsewhere() if place else {}))

    def boot_ends(self):
        """Start the sender and, on the other host, its receiver."""
        ip, peer_ip = (port['fixed_ips'][0]['ip_address']
                       for port in (self.sending, self.receiving))
        mac, peer_mac = (port['mac_address']
                         for port in (self.sending, self.receiving))
        receiver = self.boot(
            1, RECEIVER.format(peer=mac.replace(':', '')), self.receiving)
        return self.boot(0, SENDER.format(
            ip=ip, peer_ip=peer_ip, mac=mac, peer_mac=peer_mac),
            self.sending), receiver

    def boot_wire(self, place, weight=1):
        """Start a wire on a host; return its server and its port pair."""
        ports = [self.make_port(port_security_enabled=False)
                 for _ in range(2)]
        server_id = self.boot(place, WIRE, *ports)
        return server_id, self.make(
            'port_pair', ingress=ports[0]['id'], egress=ports[1]['id'],
            service_function_parameters={'weight': weight})

    def lost(self, sender, receiver):
        """Stop all flows; return the number of packets that are lost."""
        self.let_flow(sender, 'false')
        heard, _ = waiters.until(
            lambda: [self.passed(receiver, 'heard') for _ in range(2)],
            lambda seen: seen[0] == seen[1], 'no packet is on its way')
        return self.passed(sender, 'sent') - heard

    def assertPass(self, *servers):
        """Wait until each of the wires passes packets on."""
        before = [self.passed(server) for server in servers]
        waiters.until(
            lambda: [self.passed(server) for server in servers],
            lambda seen: all(now > then for now, then in zip(seen, before)),
            'packets pass the hops')

    def pass_hops_on_both_hosts(self):
        """Let flows pass chains of changing hops, and lose no packet."""
        sender, receiver = self.boot_ends()
        waiters.until(lambda: self.passed(receiver, 'heard'), bool,
                      'the receiver hears the sender')
        # Some were sent before both hosts knew the network.
        lost = self.lost(sender, receiver)
        self.let_flow(sender, 'true')
        (wire, one), (near, two), (far, three) = (
            self.boot_wire(1), self.boot_wire(0), self.boot_wire(1, 3))
        first = self.make('port_pair_group', port_pairs=[one])
        second = self.make('port_pair_group', port_pairs=[two, three])
        unnamed = self.make('flow_classifier', protocol='tcp')
        refused = self.assertRaises(
            exceptions.Conflict, self.sfc.create, 'port_chain',
            port_pair_groups=[first, second], flow_classifiers=[unnamed])
        self.assertIn('needs logical_source_port', str(refused))
        flow = self.make('flow_classifier', protocol='udp',
                         logical_source_port=self.sending['id'])
        chain = self.make('port_chain', port_pair_groups=[first, second],
                          flow_classifiers=[flow],
                          chain_parameters={'symmetric': True})
        self.assertHops(chain, 2)
        self.assertPass(wire, near, far)
        for groups in ([second], [first, second], [second, first]):
            self.sfc.update('port_chain', chain, port_pair_groups=groups)
            self.assertHops(chain, len(groups))
        before = [self.passed(server) for server in (near, far)]
        self.assertPass(wire, near, far)
        # The two are not read at once, so each flow sends some packets.
        waiters.until(lambda: sum(map(self.passed, (near, far))),
                      lambda seen: seen > sum(before) + 20 * FLOWS,
                      'each flow sends some packets')
        self.assertEqual(lost, self.lost(sender, receiver))
        # One instance of a flow's hop gets it, by weight.
        passed = [self.passed(server) - then
                  for server, then in zip((near, far), before)]
        self.assertGreater(passed[0], 0)
        self.assertGreater(passed[1], passed[0])


class ChainsBetweenHostsTest(OverHostsMixin, base.TwoHostsMixin,
                             base.ClickOSTest):
    """Both hosts have guests that are processes."""

    def elsewhere(self):
        """Name the zone of the second process host."""
        return {'availability_zone': CONF.clickos.second_zone}

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e33')
    def test_flows_pass_hops_on_both_hosts_without_loss(self):
        self.pass_hops_on_both_hosts()


class ChainsWithXenTest(OverHostsMixin, base.OnHostTest):
    """One host has processes, the other one domains of Xen."""

    host = host.Host('xen_host_command')

    def setUp(self):
        super().setUp()
        # The first machine of a network lets it reach the Xen host.
        traffic.Endpoint(self.tenant, self.os_admin, 'left', self.addCleanup)

    def elsewhere(self):
        """Name the image of Xen hosts."""
        image, = self.os_primary.image_client_v2.list_images(
            params={'name': CONF.clickos.xen_image})['images']
        return {'imageRef': image['id']}

    @decorators.attr(type='slow')
    @decorators.idempotent_id('4e8f1d7b-0c0e-4a7b-9f1e-0a7c5b0d2e5d')
    def test_flows_pass_hops_on_a_process_host_and_a_xen_host(self):
        self.pass_hops_on_both_hosts()
