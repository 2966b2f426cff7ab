# SPDX-License-Identifier: Apache-2.0
"""The commands that look: vnf show, event list, console, state."""

import argparse
import io
import json
import types
from unittest import mock

from clickos_client import api
from clickos_client import vnf as client_vnf
from keystoneauth1 import exceptions as ks_exc
from osc_lib import exceptions

from clickos_osc.v1 import console
from clickos_osc.v1 import event
from clickos_osc.v1 import state
from clickos_osc.v1 import vnf
from tests.unit.clickos_osc import base

_REASON = 'firewall.click:3:1: fw :: IPFilter: bad rule'


class WatchTest(base.CommandTestCase):
    """One VNF of one guest."""

    def setUp(self):
        super().setUp()
        self.body = self.cloud.vnfs[self.vnf_id][1]
        self.body.update(vnfInstanceName='edge', vnfdId='the-vnfd', metadata={
            'clickosProperties': '{"rules": ["deny all"]}'})
        self.compute = self.manager.sdk_connection.compute

    def show(self):
        """Return what vnf show gives, by column."""
        columns, values = self.run_command(vnf.ShowVnf, 'edge')[0]
        return {name: getattr(value, 'machine_readable', lambda: value)()
                for name, value in zip(columns, values)}

    def operate(self, name, state, began, detail=None):
        """Let Tacker have an operation."""
        self.cloud.operations.append({
            'id': name, 'vnfInstanceId': self.vnf_id, 'operation': name,
            'operationState': state, 'startTime': began,
            'error': {'detail': detail} if detail else None})

    def events(self, *arguments):
        """Return the rows of event list."""
        return self.run_command(event.ListEvent, *arguments)[0][1]

    def add_guest(self):
        """Give the VNF a second guest."""
        self.body['instantiatedVnfInfo']['vnfcResourceInfo'].append(
            {'id': 'vnfc-2', 'vduId': 'VDU2',
             'computeResource': {'resourceId': 'server-2'}})


class ShowVnfTest(WatchTest):

    def test_active(self):
        self.operate('INSTANTIATE', 'COMPLETED', '2026-11-24T01:00:00Z')
        found = self.show()
        self.assertEqual(
            ('edge', 'the-vnfd', 'active', 'INSTANTIATE COMPLETED', ''),
            tuple(found[name] for name in (
                'name', 'vnfd_id', 'status', 'last_operation',
                'last_error')))
        self.assertEqual([{'name': 'VDU1-0', 'vnfc': 'vnfc-1', 'vdu': 'VDU1',
                           'host': '', 'state': 'ACTIVE',
                           'server': self.server_id}], found['guests'])
        self.assertEqual({'rules': 'deny all'}, found['properties'])
        (port,) = found['ports']
        self.assertEqual(('up', 4, 3), (port['link'], port['rx_packets'],
                                        port['dropped']))

    def test_the_last_error(self):
        self.operate('HEAL', 'COMPLETED', '2026-11-24T01:00:00Z')
        self.body['metadata']['clickosUpdate'] = json.dumps(
            {'verdict': 'refused', 'message': _REASON})
        self.assertEqual(('refused', _REASON), tuple(
            self.show()[name] for name in ('last_update', 'last_error')))
        self.operate('SCALE', 'FAILED_TEMP', '2026-11-24T02:00:00Z', 'no\x1b')
        found = self.show()
        self.assertEqual(('failed', 'no\\x1b', 'SCALE FAILED_TEMP'), tuple(
            found[name] for name in ('status', 'last_error',
                                     'last_operation')))

    def test_a_dead_guest(self):
        self.body['metadata']['clickosState'] = '{"vnfc-1": "SHUTOFF"}'
        self.agent.broken = {'error': {'code': 'dead-guest',
                                       'message': 'it is dead'}}
        found = self.show()
        self.assertEqual(('degraded', 'VDU1: SHUTOFF'),
                         (found['status'], found['last_error']))
        self.assertEqual([{'guest': 'VDU1-0', 'error': 'it is dead'}],
                         found['ports'])

    def test_outputs(self):
        self.body['metadata']['clickosOutputs'] = json.dumps(
            {'VDU1': {'passed': 'fw.count', 'lost': 'fw.nothing'},
             'VDU2': {'x': 'y.z'}})
        self.agent.guests[self.server_id]['fw.count'] = '42\n'
        first, second = self.show()['outputs']
        self.assertEqual(('vnfc-1', 'passed', '42'), (
            first['vnfc'], first['output'], first['value']))
        self.assertIn('fw.nothing', second['error'])

    def test_limits_that_guests_share(self):
        self.body['metadata']['clickosShared'] = '["VDU1"]'
        self.assertEqual([], self.show()['limits'])
        self.agent.guests[self.server_id]['s.share'] = '0 0'
        group = client_vnf.limits_group(self.vnf_id, 'VDU1')
        self.assertEqual(200, self.call('PUT', f'/v1/limits/{group}', json={
            'limits': [{'name': 'rate', 'kind': 'rate', 'handler': 's.share',
                        'total': 1000}], 'servers': [self.server_id]})[0])
        self.assertEqual([{'vdu': 'VDU1', 'limit': 'rate', 'total': 1000,
                           'used': 0, 'shares': 'VDU1-0 1000'}],
                         self.show()['limits'])

    def test_no_such_vnf(self):
        with self.assertRaisesRegex(exceptions.CommandError, 'No VNF'):
            self.run_command(vnf.ShowVnf, 'other')


class EventTest(WatchTest):

    def setUp(self):
        super().setUp()
        self.operate('INSTANTIATE', 'COMPLETED', '2026-11-24 01:00:00+00:00')
        self.operate('SCALE', 'FAILED_TEMP', '2026-11-24T03:00:00Z', _REASON)
        self.compute.actions = [
            self.action('stop', '2026-11-24T02:00:00.000000', 'Error',
                        'it\ncrashed'),
            self.action('create', '2026-11-24T01:00:01.000000')]

    @staticmethod
    def action(name, start_time, message=None, details=None):
        """Return an action as openstacksdk does."""
        return types.SimpleNamespace(
            action=name, start_time=start_time, message=message,
            request_id=name, events=[types.SimpleNamespace(details=details)])

    def test_of_a_vnf(self):
        self.assertEqual([
            ('2026-11-24T01:00:00Z', 'vnf', 'INSTANTIATE', 'COMPLETED', ''),
            ('2026-11-24T01:00:01Z', 'VDU1', 'create', '', ''),
            ('2026-11-24T02:00:00Z', 'VDU1', 'stop', 'FAILED',
             'it\\ncrashed'),
            ('2026-11-24T03:00:00Z', 'vnf', 'SCALE', 'FAILED_TEMP',
             _REASON)], self.events('--vnf', 'edge'))

    def start(self, request_id, result, *details):
        """Let hosts note how starts of the guest ended."""
        self.cloud.actions.setdefault(self.server_id, {})[request_id] = [
            {'event': 'clickos_start', 'result': result, 'details': each}
            for each in details]

    def rows(self):
        """Return {event of the server: (state, detail)}."""
        return {row[2]: row[3:] for row in self.events('my-fw')}

    def test_a_member_reads_why_a_guest_did_not_start(self):
        """Nova shows details to administrators only, and calls a reboot a
        success if the old guest runs on.
        """
        self.compute.actions += [
            self.action('reboot', '2026-11-24T04:00:00'),
            self.action('start', '2026-11-24T05:00:00', 'Error')]
        self.start('reboot', 'Error', _REASON)
        self.start('start', 'Error', 'no memory', 'no memory', 'no \x1b[2J')
        self.start('create', 'Error', 'another host had room')
        self.start('stop', 'Success', None)
        self.assertEqual({
            'create': ('', 'another host had room'),
            'stop': ('FAILED', 'it\\ncrashed'),
            'reboot': ('FAILED', _REASON),
            'start': ('FAILED', 'no memory; no \\x1b[2J')}, self.rows())

    def test_a_reboot_that_succeeded_has_no_reason(self):
        self.compute.actions = [self.action('reboot', '2026-11-24T04:00:00')]
        self.start('reboot', 'Success', None)
        self.assertEqual({'reboot': ('', '')}, self.rows())

    def test_events_are_listed_without_reasons_if_clickos_api_is_away(self):
        self.start('stop', 'Error', _REASON)
        for away in (api.ClickOSError(503, 'busy', 'later'),
                     ks_exc.ConnectFailure('refused')):
            with mock.patch.object(self.manager.clickos, 'events',
                                   autospec=True, side_effect=away):
                self.assertEqual(('FAILED', 'it\\ncrashed'),
                                 self.rows()['stop'])

    def test_to_follow_a_guest_asks_for_reasons_once(self):
        command = event.ListEvent(self.app_of_cli(), argparse.Namespace())
        parsed = command.get_parser('').parse_args(['my-fw', '--follow'])
        with mock.patch.object(self.manager.clickos, 'events', autospec=True,
                               return_value=[]) as asked:
            for _round in range(3):
                command._events(parsed)
            self.compute.actions.append(
                self.action('reboot', '2026-11-24T04:00:00'))
            command._events(parsed)
        self.assertEqual(2, asked.call_count)

    def test_of_a_server(self):
        self.assertEqual(['create', 'stop'],
                         [row[2] for row in self.events('my-fw')])

    def test_follow_prints_each_event_once(self):
        app = types.SimpleNamespace(client_manager=self.manager,
                                    stdout=io.StringIO())
        command = event.ListEvent(app, argparse.Namespace())

        pauses = []

        def heal():
            pauses.append(1)
            if len(pauses) == 3:
                raise KeyboardInterrupt
            if len(pauses) == 1:
                self.operate('HEAL', 'COMPLETED', '2026-11-24T04:00:00Z')

        with mock.patch.object(event, '_pause', autospec=True,
                               side_effect=heal):
            self.assertEqual(0, command.run(command.get_parser('').parse_args(
                ['--vnf', 'edge', '--follow', '-f', 'json'])))
        self.assertEqual(
            ['INSTANTIATE', 'create', 'stop', 'SCALE', 'HEAL'],
            [json.loads(line)['Event']
             for line in app.stdout.getvalue().splitlines()])


class ConsoleTest(WatchTest):

    def test_lines(self):
        self.compute.console = 'one\ntwo\x1b[2J\n'
        for arguments, out in (
                (['my-fw'], 'one\ntwo\\x1b[2J\n'),
                (['--vnf', 'edge', '--lines', '1'], 'two\\x1b[2J\n')):
            self.assertEqual(out, self.run_command(
                console.ShowConsole, *arguments)[1])
        self.compute.console = ''
        self.assertEqual('', self.run_command(console.ShowConsole,
                                              'my-fw')[1])

    def test_one_guest_of_several(self):
        self.add_guest()
        with self.assertRaisesRegex(
                exceptions.CommandError,
                'has 2 such guests; name one with --vnfc: VDU1-0 vnfc-1,'):
            self.run_command(console.ShowConsole, '--vnf', 'edge')
        self.run_command(console.ShowConsole, '--vnf', 'edge', '--vnfc',
                         'VDU2')
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'has no guest x; it has VDU1'):
            self.run_command(console.ShowConsole, '--vnf', 'edge', '--vnfc',
                             'x')

    def test_a_vnf_that_is_not_instantiated(self):
        del self.body['instantiatedVnfInfo']
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'during|has no guest now'):
            self.run_command(console.ShowConsole, '--vnf', 'edge')
        self.body['instantiationState'] = 'NOT_INSTANTIATED'
        with self.assertRaisesRegex(exceptions.CommandError,
                                    'it is not instantiated'):
            self.run_command(console.ShowConsole, '--vnf', 'edge')


class StateTest(WatchTest):

    def test_show_and_clear(self):
        self.manager.clickos.write(self.server_id, 'fw.config', 'allow\x1b')
        (columns, rows), _ = self.run_command(state.ShowState, '--vnf',
                                              'edge')
        self.assertEqual((('Handler', 'Value'),
                          [('fw.config', 'allow\\x1b')]), (columns, rows))
        _, out = self.run_command(state.ClearState, 'my-fw')
        self.assertIn('my-fw: 1 handler writes forgotten; the running', out)
        self.assertEqual([], self.state()['writes'])
        self.assertEqual([], self.run_command(state.ShowState, 'my-fw')[0][1])

    def test_a_reader_cannot_clear(self):
        self.manager = self._manager(self.caller(self.project_id, 'reader'))
        with self.assertRaisesRegex(exceptions.CommandError, 'HTTP 403'):
            self.run_command(state.ClearState, self.server_id)
