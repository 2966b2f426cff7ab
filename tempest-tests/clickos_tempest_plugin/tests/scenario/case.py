# SPDX-License-Identifier: Apache-2.0
"""A firewall between two networks, and its main job."""

import json

from tempest import config

from clickos_tempest_plugin.common import bounds
from clickos_tempest_plugin.common import csar
from clickos_tempest_plugin.common import tenant
from clickos_tempest_plugin.common import traffic
from clickos_tempest_plugin.common import waiters
from clickos_tempest_plugin.tests import base

CONF = config.CONF
OPEN = ['allow icmp', 'allow tcp', 'deny all']
NO_HTTP = ['deny tcp dst port 80', 'allow icmp', 'allow tcp', 'deny all']
DOWNLOAD_BYTES = 10 * 1024 * 1024
ASPECT = 'capacity'


class Rules:
    """A firewall's rules and counters, as its tenant sees them.

    The test has the attributes tenant, clickos, vnf_id and server_id.
    """

    def metadata(self, name):
        """Return an entry of the VNF's metadata, decoded.

        :param name: as Tacker 16 shows it, which writes the names of entries
            in camel case
        """
        vnf = self.tenant.tacker.show_vnf(self.vnf_id)
        return json.loads(vnf.get('metadata', {}).get(name, 'null'))

    def update(self, rules):
        """Update the rules through Tacker; return the verdict."""
        self.tenant.tacker.update_vnf(
            self.vnf_id,
            metadata={'clickos_properties': {'rules': rules}})
        return waiters.until(
            lambda: self.metadata('clickosUpdate'),
            lambda seen: seen and seen['request'] == {'rules': rules},
            f'verdict on {rules}')

    def rules(self):
        """Return the rules the guest has, one a list element."""
        text = self.clickos.read_handler(self.server_id, 'fw.config')
        return [rule.strip() for rule in text.split(',')]

    def count(self, element):
        """Return an element's packet counter."""
        return int(self.clickos.read_handler(self.vnf_id, f'{element}.count',
                                             'vnfs'))

    def hits(self, rule):
        """Return how many packets a rule has decided."""
        lines = self.clickos.read_handler(self.vnf_id, 'fw.hits', 'vnfs')
        return sum(int(line.split()[0]) for line in lines.splitlines()
                   if line.endswith(rule))


class Scaling:
    """Steps of a VNF's scaling aspect.

    The test has the attributes tenant, clickos and vnf_id.
    """

    def scale(self, kind, steps=1):
        """Scale out or in, and wait for the end."""
        tenant.completed(self.tenant.operate(
            self.vnf_id, 'scale', type=kind, aspectId=ASPECT,
            numberOfSteps=steps))

    def info(self):
        """Return what Tacker knows of the running VNF."""
        return self.tenant.tacker.show_vnf(
            self.vnf_id)['instantiatedVnfInfo']

    def level(self):
        """Return how many steps beyond the first guest it is."""
        (status,) = self.info()['scaleStatus']
        self.assertEqual(ASPECT, status['aspectId'])
        return status['scaleLevel']

    def guests(self):
        """Return the servers, the first guest's first."""
        return [vnfc['computeResource']['resourceId']
                for vnfc in self.info()['vnfcResourceInfo']]

    def rules_of(self, server_id):
        """Return the rules that a guest has, one a list element."""
        return self.clickos.read_handler(server_id, 'fw.config').split(', ')


class FirewallBase(Rules, base.OnHostTest):
    """A client on the left, a server on the right, a firewall between.

    All firewalls of a class have one package.
    """

    #: from the VNFD's text to another one; None for the package's own
    vnfd = None
    #: what :meth:`build` makes
    vnf_id: str
    server_id: str
    left: traffic.Endpoint
    right: traffic.Endpoint

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.clickos = cls.tenant.clickos
        cls.vnfd_id = cls.tenant.onboard(
            csar.firewall(vnfd=csar.all_of(cls.vnfd, cls.on_host)),
            cls.addClassResourceCleanup)

    @classmethod
    def build(cls, place, cleanup):
        """Give a class or a test a firewall between two machines."""
        place.vnf_id = cls.tenant.create_vnf(cls.vnfd_id, cleanup)
        tenant.completed(cls.tenant.instantiate(place.vnf_id, OPEN))
        place.server_id = cls.tenant.server_id(place.vnf_id)
        place.left = cls.make_endpoint('left', cleanup)
        place.right = cls.make_endpoint('right', cleanup)

    @classmethod
    def make_endpoint(cls, network, cleanup):
        """Attach a namespace to one of the tenant's networks."""
        return traffic.Endpoint(cls.tenant, cls.os_admin, network, cleanup)

    def wait_server(self, status):
        """Wait until Nova shows the server in a state."""
        waiters.until(
            lambda: self.tenant.servers.show_server(
                self.server_id)['server']['status'],
            lambda seen: seen in status, f'server {self.server_id} {status}')

    def change_a_rule_while_packets_flow(self):
        """The main job: traffic, a rule changed under it, nothing left."""
        self.right.serve_http()
        self.assertTrue(self.left.can_ping(self.right))
        self.assertEqual(DOWNLOAD_BYTES,
                         self.left.download(self.right, DOWNLOAD_BYTES))
        self.assertGreater(self.count('passed'), DOWNLOAD_BYTES // 65536)
        before = self.tenant.servers.show_server(self.server_id)['server']
        ping = self.left.ping(self.right)
        verdict = self.update(NO_HTTP)
        self.assertEqual('accepted', verdict['verdict'])
        self.assertEqual(NO_HTTP, self.rules())
        self.assertEqual(NO_HTTP, self.metadata('clickosProperties')[
            'rules'])
        self.assertEqual(0, self.hits(NO_HTTP[0]))
        self.assertEqual(0, self.left.download(self.right, 1, timeout_s=3))
        self.assertGreater(self.hits(NO_HTTP[0]), 0)
        found = ping.result()
        self.assertGreater(found.sent, 20)
        bounds.hold('max_rule_change_lost_pings', len(found.lost))
        after = self.tenant.servers.show_server(self.server_id)['server']
        self.assertEqual(self.server_id, self.tenant.server_id(self.vnf_id))
        for unchanged in ('OS-SRV-USG:launched_at', 'status'):
            self.assertEqual(before[unchanged], after[unchanged])
        self.assertNotEqual([], self.host.leftovers(self.server_id))
        self.tenant.terminate(self.vnf_id)
        left = [*self.tenant.leftovers(self.vnf_id),
                *self.host.leftovers(self.server_id)]
        bounds.hold('max_terminated_vnf_remains', len(left))


class FirewallCase(FirewallBase):
    """Each test has a firewall of its own."""

    def setUp(self):
        super().setUp()
        self.build(self, self.addCleanup)


class SharedFirewallCase(FirewallBase):
    """The tests of a class share a firewall; each finds it running and open.
    """

    @classmethod
    def resource_setup(cls):
        super().resource_setup()
        cls.build(cls, cls.addClassResourceCleanup)

    def setUp(self):
        super().setUp()
        self.server_id = self.tenant.server_id(self.vnf_id)
        status = self.tenant.servers.show_server(
            self.server_id)['server']['status']
        if status != 'ACTIVE':      # a test has failed
            self.tenant.heal(self.vnf_id)
            self.server_id = self.tenant.server_id(self.vnf_id)
        self.clickos.write_handler(self.server_id, 'fw.config',
                                   ', '.join(OPEN))
