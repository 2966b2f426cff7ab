# SPDX-License-Identifier: Apache-2.0
"""Tempest's own tests, as far as they need no lab."""

import contextlib
import io
import types
from unittest import mock

from clickos_lab.cloud import compute as nova
from clickos_lab.config import hosts
from clickos_lab.suites import compute
from clickos_lab.suites import stock
from clickos_lab.suites import tempest
from clickos_lab.suites import xen_hosts
from tests.unit import base


class ArgumentsTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.labs, self.ran, self.may_work = [], [], True
        for place, stand_in in (
                ('_lab.Lab', lambda _state, others, **_: others),
                ('on_lab.run', self.on_lab), ('run', self.run_tests),
                ('tempest_run.run', self.run_tests)):
            module, _, name = place.rpartition('.')
            patched = mock.patch.object(
                getattr(compute, module) if module else compute, name,
                stand_in)
            patched.start()
            self.addCleanup(patched.stop)

    def on_lab(self, lab, work, prepare=None):
        self.labs.append(lab)
        return work() if self.may_work else 0

    def run_tests(self, _state, arguments, *more):
        self.ran.append((arguments, *more))
        return 0

    def test_what_is_selected_runs_on_its_hosts(self):
        one, both = (hosts.SECOND,), (hosts.SECOND, hosts.XEN)
        chosen = ['--regex', 'x']
        for arguments, lab, ran in (
                ([], one, (compute._ALL,)),
                (chosen, one, (chosen,)),
                (['--ours', 'x'], one, (chosen,)),
                (['--xen'], both, (compute._ON_XEN, 'XEN')),
                (['--xen', *chosen], both, (chosen, 'XEN')),
                ([*chosen, '--xen'], both, (chosen, 'XEN'))):
            self.assertEqual(0, compute.main(arguments))
            self.assertEqual((lab, ran), (self.labs.pop(), self.ran.pop()))

    def test_wrong_arguments_start_no_lab(self):
        self.may_work = False
        for arguments, text in (
                (['--ours'], 'expected one argument'),
                (['--xen', '--ours', 'x'], 'not allowed with argument'),
                (['--regex'], 'expected one argument'),
                (['--ours', 'x', '--smoke'], 'not allowed with argument'),
                (['--xem'], 'unrecognized arguments: --xem'),
                (['xen'], 'unrecognized arguments: xen')):
            self.assertRefused(text, compute.main, arguments)
        for suite in (stock, xen_hosts):
            with mock.patch('sys.argv', ['suite', 'bogus']):
                self.assertRefused('unrecognized arguments: bogus',
                                   suite.main)
        self.assertRefused('unrecognized arguments: bogus', tempest.main,
                           ['bogus'])
        self.assertEqual([], self.labs)

    def assertRefused(self, text, main, *arguments):
        with contextlib.redirect_stderr(io.StringIO()) as err, \
                self.assertRaises(SystemExit) as ended:
            main(*arguments)
        self.assertEqual(2, ended.exception.code)
        self.assertIn(text, err.getvalue())


class RemainsTest(base.TestCase):

    def test_what_an_earlier_run_left_is_removed_first(self):
        admin = mock.Mock()
        admin.image.images.side_effect = lambda name: [name]
        network = types.SimpleNamespace(id='n')
        admin.network.networks.side_effect = lambda name: (
            [network] if name.endswith('shared') else [])
        admin.network.ips.return_value = ['ip']
        ports = [types.SimpleNamespace(id=owner, device_owner=owner,
                                       device_id='r')
                 for owner in ('', 'compute:lab', 'network:dhcp',
                               'network:router_gateway')]
        inside = types.SimpleNamespace(id='inside')
        admin.network.ports.side_effect = lambda **by: (
            ports if 'network_id' in by else [inside])
        compute._forget(admin)
        self.assertEqual(
            [mock.call('tempest-compute-image'),
             mock.call('tempest-compute-image_alt')],
            admin.image.delete_image.mock_calls)
        admin.compute.delete_flavor.assert_called_once()
        self.assertEqual(
            [mock.call.delete_ip('ip'), mock.call.delete_port(ports[0]),
             mock.call.delete_port(ports[1]),
             mock.call.remove_interface_from_router('r', port_id='inside'),
             mock.call.delete_router('r'), mock.call.delete_network(network)],
            [call for call in admin.network.mock_calls
             if call[0].startswith(('delete', 'remove'))])

    def test_a_lab_without_remains(self):
        admin = mock.Mock()
        admin.image.images.return_value = []
        admin.network.networks.return_value = []
        admin.compute.find_flavor.return_value = None
        compute._forget(admin)
        admin.compute.delete_flavor.assert_not_called()

    def test_a_host_returns_to_its_zone(self):
        lab, second = (types.SimpleNamespace(name=name, hosts=found)
                       for name, found in (
                           ('lab', ['clickos-lab', 'clickos-lab2']),
                           ('second', None)))
        admin = mock.Mock()
        admin.compute.aggregates.return_value = [lab, second]
        nova.ensure_zones(admin, hosts.PROCESSES)
        self.assertEqual(
            [mock.call.aggregates(),
             mock.call.remove_host_from_aggregate(lab, 'clickos-lab2'),
             mock.call.add_host_to_aggregate(second, 'clickos-lab2')],
            admin.compute.mock_calls)
