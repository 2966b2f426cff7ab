# SPDX-License-Identifier: Apache-2.0
"""openstack clickos chain fuse | unfuse, with the real service."""

import os
import tempfile
import types
from unittest import mock
import uuid

from osc_lib import exceptions

from clickos_osc.v1 import chain
from tests.unit.clickos_osc import base
from tests.unit.clickos_osc import networking

HEAD = 'ip-rewriter 1\n'
#: Writes its arguments to a file, and a configuration to its output.
PROGRAM = '#!/bin/sh\necho "$@" > "$0.arguments"\necho "fused;"\n'
FLOW = 'protocol=tcp'


class Compute:
    """Nova as openstacksdk shows it, with guests that run at once.

    :param case: the test
    """

    def __init__(self, case):
        self._case, self.servers, self.failure = case, {}, None

    def add(self, name, server_id):
        """Make a server with two ports, the second one named first."""
        macs = [f'{name}-{side}' for side in ('in', 'out')]
        for mac in reversed(macs):
            self._case.network.add_port(mac, server_id, mac)
        self.servers[server_id] = types.SimpleNamespace(
            id=server_id, name=name,
            image=types.SimpleNamespace(id='image'),
            flavor=types.SimpleNamespace(
                ram=len(self.servers), id=None,
                original_name=f'f{len(self.servers)}'),
            addresses={'net': [
                {'OS-EXT-IPS-MAC:mac_addr': mac} for mac in macs]})

    def create_server(self, **values):
        """Make the fused guest, with the elements of two hops."""
        key = str(uuid.uuid4())
        self.created = values
        for each in values['networks']:
            self._case.network.known_ports[each['port']].device_id = key
        self.servers[key] = types.SimpleNamespace(
            id=key, name=values['name'], metadata=values['metadata'])
        self._case.cloud.add_server(key, self._case.project_id)
        self._case.agent.guests[key] = {
            f'{hop}/{name}': value for hop in ('my_fw', 'my_fw_2')
            for name, value in self._case.elements().items()}
        return self.servers[key]

    def wait_for_server(self, server, wait):
        """Return a server once it runs."""
        if self.failure:
            raise self.failure
        return server

    def find_server(self, name, ignore_missing):
        """Return a server by name or id, or None."""
        found = [each for each in self.servers.values()
                 if name in (each.id, each.name)]
        return found[0] if found else None

    def get_server(self, key):
        """Return a server."""
        return self.servers[key]

    def find_flavor(self, name, ignore_missing):
        """Return a flavor."""
        return types.SimpleNamespace(id=f'id of {name}')

    def delete_server(self, key):
        """Delete a server; its ports stay."""
        del self.servers[key], self._case.cloud.servers[key]

    def wait_for_delete(self, server, wait):
        """Return when a server is gone."""


class FusionTest(base.CommandTestCase):
    """A chain of two servers, and the program click-combine."""

    def setUp(self):
        super().setUp()
        self.network, self.compute = networking.Network(), None
        self.compute = Compute(self)
        self.manager.sdk_connection.network = self.network
        self.manager.sdk_connection.compute = self.compute
        self.groups = {}
        self.manager.sdk_connection.image = types.SimpleNamespace(
            get_image=lambda key: types.SimpleNamespace(properties={
                'clickos_groups': self.groups[key]}))
        self.ids = [self.server_id, str(uuid.uuid4())]
        self.cloud.add_server(self.ids[1], self.project_id)
        for name, key in zip(('my-fw', 'my fw'), self.ids):
            self.compute.add(name, key)
            self.agent.guests[key] = {'config': f'{name};',
                                      **self.elements()}
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.program = os.path.join(folder.name, 'combine')
        with open(self.program, 'w') as target:
            target.write(PROGRAM)
        os.chmod(self.program, 0o755)
        self.update = self.network.update_sfc_port_chain
        self.network.update_sfc_port_chain = self.steer
        self.make = self.network.create_sfc_port_chain
        self.network.create_sfc_port_chain = self.make_chain
        self.create()

    @staticmethod
    def elements():
        """Return the handlers of a hop."""
        return {'fw.config': 'deny all', 'flows.state': HEAD + 'a\n',
                'flows.block_new_flows': '', 'flows.merge': ''}

    def steer(self, key, **values):
        """Change a chain, as the switch does."""
        self.update(key, **values)
        self.agent.chain_hops = len(values['port_pair_groups'])

    def create(self, *more):
        """Make the chain."""
        return self.run_command(
            chain.CreateChain, 'web', '--hop', 'my-fw', '--hop', 'my fw',
            '--classifier', FLOW, *more)[0]

    def make_chain(self, **values):
        """Make a chain, in Neutron as clickos-api sees it too."""
        made = self.make(**values)
        self.chain_id = made.id
        self.cloud.add_chain(made.id, self.project_id,
                             groups=values['port_pair_groups'])
        return made

    def fuse(self):
        """Fuse the chain."""
        return self.run_command(chain.FuseChain, 'web', '--program',
                                self.program)[1]

    def unfuse(self, *more):
        """Unfuse the chain."""
        return self.run_command(chain.UnfuseChain, 'web', *more)[1]

    def hops(self):
        """Return the hops that list shows."""
        return self.run_command(chain.ListChain)[0][1][0][2]

    def things(self):
        """Return all that there is."""
        return (set(self.compute.servers), set(self.network.known_ports),
                {kind: set(found)
                 for kind, found in self.network.made.items()},
                self.hops(), self.manager.clickos.fusion(self.chain_id))

    def refused(self, words, command, *arguments):
        """Check that a command fails, says why and changes nothing."""
        before = self.things()
        with self.assertRaisesRegex(exceptions.CommandError, words):
            self.run_command(command, *arguments)
        self.assertEqual(before, self.things())

    def refuse_fusion(self, words):
        """Check that the chain cannot be fused."""
        self.refused(words, chain.FuseChain, 'web', '--program',
                     self.program)

    def test_the_image_with_most_groups_of_elements(self):
        self.groups.update(image='ip,standard', full='ip,regex,standard')
        self.compute.servers[self.ids[1]].image.id = 'full'
        self.fuse()
        self.assertEqual('full', self.compute.created['image_id'])

    def test_an_image_whose_groups_are_not_known_has_all(self):
        self.groups.update(image=None, full='ip,regex,standard')
        self.compute.servers[self.ids[1]].image.id = 'full'
        self.fuse()
        self.assertEqual('image', self.compute.created['image_id'])

    def test_there_and_back(self):
        before = self.things()
        self.assertEqual('web: fused in web-fused\n', self.fuse())
        self.assertEqual('my_fw, my_fw_2: fused in web-fused', self.hops())
        with open(self.program + '.arguments') as source:
            words = source.read().split()
        self.assertEqual(
            ['my_fw.1=my_fw_2.0', 'my_fw_2.0=my_fw.1', '--device',
             'my_fw.0=0', '--device', 'my_fw_2.1=1'], words[3:])
        self.assertEqual(('image', 'id of f1'), (
            self.compute.created['image_id'],
            self.compute.created['flavor_id']))
        found = self.manager.clickos.fusion(self.chain_id)
        fused = self.agent.guests[found['server']]
        for hop, key in zip(('my_fw', 'my_fw_2'), self.ids):
            self.assertEqual(HEAD + 'a\n', fused[f'{hop}/flows.merge'])
            self.assertEqual('60', self.agent.guests[key][
                'flows.block_new_flows'])
        self.manager.clickos.write(self.ids[1], 'fw.config', 'allow all')
        self.assertEqual(('deny all', 'allow all'), (
            fused['my_fw/fw.config'], fused['my_fw_2/fw.config']))
        self.unfuse()
        self.assertEqual(before, self.things())
        self.assertEqual('allow all', self.manager.clickos.read(
            self.ids[1], 'fw.config'))
        for key in self.ids:
            self.assertEqual(
                (HEAD + 'a\n', '0'),
                tuple(self.agent.guests[key][f'flows.{name}']
                      for name in ('merge', 'block_new_flows')))

    def test_create_fused(self):
        self.run_command(chain.DeleteChain, 'web')
        before = set(self.compute.servers), self.network.made
        with self.assertRaisesRegex(exceptions.CommandError, 'No such file'):
            self.create('--fused', '--program', self.program + '.no')
        self.assertEqual(before, (set(self.compute.servers),
                                  self.network.made))
        self.assertFalse(any(self.network.made.values()))
        found = dict(zip(*self.create('--fused', '--program',
                                      self.program)))
        self.assertEqual('my_fw, my_fw_2: fused in web-fused',
                         found['hops'])
        self.assertTrue(found['fused'])
        self.unfuse()
        self.assertEqual('my-fw, my fw', self.hops())

    def test_other_changes_wait_for_the_end(self):
        self.fuse()
        self.compute.add('more', str(uuid.uuid4()))
        for command, arguments in (
                (chain.DeleteChain, []), (chain.InsertHop, ['more'])):
            self.refused('is fused; unfuse it first', command, 'web',
                         *arguments)
        self.refuse_fusion('has one hop')

    def test_what_cannot_be_fused(self):
        for name, value, words in (
                ('is_port_security_enabled', True, 'addresses of its own'),
                ('device_id', 'other', 'has 1 ports')):
            port = self.network.known_ports['my fw-out']
            before = getattr(port, name)
            setattr(port, name, value)
            self.refuse_fusion(f'hop my fw: .*{words}')
            setattr(port, name, before)
        group = self.network.sfc_port_pair_groups()[1]
        group.port_pair_group_parameters = {'ppg_n_tuple_mapping': {
            'egress_n_tuple': {'source_ip_prefix': '10.0.0.9/32'}}}
        self.refuse_fusion('hop my fw: translates addresses')
        self.run_command(chain.RemoveHop, 'web', 'my fw')
        self.refuse_fusion('has one hop')

    def test_a_failure_leaves_the_chain(self):
        with open(self.program, 'w') as target:
            target.write('#!/bin/sh\necho "fw.1: no such" >&2\nexit 1\n')
        self.refuse_fusion('fw.1: no such; "make click" builds')
        with open(self.program, 'w') as target:
            target.write(PROGRAM)
        self.network.refused = 'port_pair_group'
        self.refuse_fusion('x: no')
        self.network.refused = None
        self.compute.failure = networking.Refused('no host was found')
        self.refuse_fusion('no host was found')
        self.compute.failure = None
        with mock.patch.object(self, 'elements', lambda: {
                'fw.config': 'deny all'}):
            self.refuse_fusion('no element that takes flows')
        self.fuse()

    def test_a_fused_guest_that_is_gone(self):
        self.refused('is not fused', chain.UnfuseChain, 'web')
        before = self.things()
        self.fuse()
        found = self.manager.clickos.fusion(self.chain_id)
        del self.agent.guests[found['server']]
        self.refused('', chain.UnfuseChain, 'web')
        self.compute.delete_server(found['server'])
        self.refused('could not be found', chain.UnfuseChain, 'web')
        self.unfuse('--drop-flows')
        self.assertEqual(before, self.things())
