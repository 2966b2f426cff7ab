# SPDX-License-Identifier: Apache-2.0
"""The commands and the client, against the real service over HTTP."""

import json
import os
import tempfile
import uuid

from clickos_client import api
from keystoneauth1 import exceptions as ks_exc
from osc_lib import exceptions

from clickos_osc import formatting
from clickos_osc.v1 import config
from clickos_osc.v1 import console
from clickos_osc.v1 import flow
from clickos_osc.v1 import handler
from clickos_osc.v1 import port
from clickos_osc.v1 import state
from tests.unit.clickos_osc import base


class CommandTest(base.CommandTestCase):
    """The commands about handlers."""

    def test_list(self):
        (columns, rows), _ = self.run_command(handler.ListHandler, 'my-fw')
        self.assertEqual(('Handler', 'Read', 'Write'), columns)
        self.assertEqual([('fw.config', True, True)], rows)

    def test_read(self):
        for names in (['my-fw'], ['--server', self.server_id],
                      ['--vnf', self.vnf_id],
                      ['--vnf', '--vnfc', 'VDU1', self.vnf_id]):
            self.assertEqual('deny all\n', self.run_whole(
                handler.ReadHandler, *names, 'fw.config')[1])

    def test_list_of_one_element(self):
        self.agent.guests[self.server_id]['a/fw.count'] = '1'
        for element, names in (('fw', ['fw.config']), ('a/fw', ['a/fw.count']),
                               ('f', [])):
            (_, rows), _ = self.run_command(
                handler.ListHandler, '--element', element, 'my-fw')
            self.assertEqual(names, [row[0] for row in rows])

    def test_read_several(self):
        self.agent.guests[self.server_id]['c.count'] = '7\n'
        names = ('my-fw', 'fw.config', 'c.count')
        self.assertEqual(
            '==> fw.config <==\ndeny all\n==> c.count <==\n7\n',
            self.run_whole(handler.ReadHandler, *names)[1])
        _, out, _ = self.run_whole(handler.ReadHandler, '-f', 'json', *names)
        self.assertEqual({'fw.config': 'deny all', 'c.count': '7\n'},
                         json.loads(out))

    def two_guests(self):
        """Let the VNF have a second guest; return its server's id."""
        other_id = str(uuid.uuid4())
        self.cloud.add_server(other_id, self.project_id)
        self.agent.guests[other_id] = {'fw.config': 'allow\x1b all'}
        self.cloud.add_vnf(self.vnf_id, self.project_id, [
            (self.server_id, 'VDU1', 'vnfc-1'),
            (other_id, 'VDU1', 'vnfc-2')])
        return other_id

    def test_read_with_a_parameter(self):
        self.agent.guests[self.server_id]['b.lookup'] = 'owner of '
        for words in (['b.lookup', '203.0.113.7', '4000'],
                      ['b.lookup 203.0.113.7 4000'],
                      ['b.lookup 203.0.113.7', '4000']):
            self.assertEqual('owner of 203.0.113.7 4000\n', self.run_whole(
                handler.ReadHandler, 'my-fw', *words)[1])
        self.assertEqual(
            '==> b.lookup ::1 <==\nowner of ::1\n'
            '==> b.lookup ::2 <==\nowner of ::2\n'
            '==> fw.config <==\ndeny all\n',
            self.run_whole(handler.ReadHandler, 'my-fw', 'b.lookup', '::1',
                           'b.lookup ::2', 'fw.config')[1])

    def test_refused_parameters(self):
        for words, part in ((['fw.config', '7'], 'takes no parameter'),
                            (['fw.config ' + 'x' * 256], 'limit is 255'),
                            (['fw.config a\nb'], 'control characters')):
            with self.assertRaisesRegex(exceptions.CommandError, part):
                self.run_whole(handler.ReadHandler, 'my-fw', *words)

    def test_tables_of_all_guests(self):
        other_id = self.two_guests()
        self.put('x', 'fw.config')
        names = ('--vnf', '--all', self.vnf_id)
        for kind, first in ((handler.ListHandler, 'Handler'),
                            (port.ShowPortStats, 'Port'),
                            (state.ShowState, 'Handler'),
                            (state.ListState, 'Number')):
            (columns, rows), _ = self.run_command(kind, *names)
            self.assertEqual(('Guest', first), columns[:2])
            self.assertEqual('VDU1-0', rows[0][0])
            self.assertEqual({len(columns)}, {len(row) for row in rows})
        self.agent.guests[other_id]['c.count'] = '1'
        (_, rows), _ = self.run_command(handler.ListHandler, '--element', 'c',
                                        *names)
        self.assertEqual([('VDU1-1', 'c.count', True, True)], rows)

    def test_texts_of_all_guests(self):
        other_id = self.two_guests()
        for server_id in (self.server_id, other_id):
            self.agent.guests[server_id]['config'] = 'Idle;\n'
        names = ('--vnf', '--all', self.vnf_id)
        self.assertEqual(
            '==> VDU1-0 <==\nIdle;\n==> VDU1-1 <==\nIdle;\n',
            self.run_command(config.ShowConfig, *names)[1])
        self.manager.sdk_connection.compute.console = 'up\n'
        self.assertEqual('==> VDU1-0 <==\nup\n==> VDU1-1 <==\nup\n',
                         self.run_command(console.ShowConsole, *names)[1])
        out = self.run_command(state.ClearState, *names)[1]
        self.assertEqual([f'{self.vnf_id} VDU1-0', f'{self.vnf_id} VDU1-1'],
                         [line.partition(':')[0]
                          for line in out.splitlines()])

    def test_write_all_guests_of_a_vnf(self):
        other_id = self.two_guests()
        names = ('--vnf', '--all', self.vnf_id)
        self.assertEqual('VDU1-0 fw.config: accepted, revision 1\n'
                         'VDU1-1 fw.config: accepted, revision 1\n',
                         self.run_command(handler.WriteHandler, *names,
                                          'fw.config', 'x')[1])
        self.assertEqual('x', self.agent.guests[other_id]['fw.config'])
        self.assertEqual(['VDU1-0', 'VDU1-1'], [
            json.loads(line)['guest'] for line in self.run_command(
                handler.WriteHandler, '-f', 'json', *names, 'fw.config',
                'y')[1].splitlines()])
        del self.agent.guests[self.server_id]
        with self.assertRaisesRegex(exceptions.CommandError, 'VDU1-0: ') as e:
            self.run_command(handler.WriteHandler, *names, 'fw.config', 'z')
        self.assertNotIn('VDU1-1', str(e.exception))
        self.assertEqual('z', self.agent.guests[other_id]['fw.config'])

    def test_all_of_a_vnf_without_guests(self):
        self.cloud.add_vnf(self.vnf_id, self.project_id, [])
        with self.assertRaisesRegex(exceptions.CommandError, 'no guest'):
            self.run_whole(handler.ReadHandler, '--vnf', '--all', self.vnf_id,
                           'fw.config')

    def test_read_all_guests_of_a_vnf(self):
        self.two_guests()
        names = ('--vnf', self.vnf_id, 'fw.config')
        self.assertEqual(
            '==> VDU1-0 fw.config <==\ndeny all\n'
            '==> VDU1-1 fw.config <==\nallow\\x1b all\n',
            self.run_whole(handler.ReadHandler, '--all', *names)[1])
        for form in ('json', 'yaml', 'table', 'shell'):
            shown_ = self.run_whole(handler.ReadHandler, '--all', '-f', form,
                                    *names)[1]
            self.assertIn('deny all', shown_)
            self.assertNotIn('\x1b', shown_)
        self.assertEqual('allow\\x1b all\n', self.run_whole(
            handler.ReadHandler, '--vnfc', 'VDU1-1', *names)[1])
        with self.assertRaisesRegex(exceptions.CommandError, '--all goes'):
            self.run_whole(handler.ReadHandler, '--all', 'my-fw', 'fw.config')

    def test_port_stats(self):
        (columns, rows), _ = self.run_command(port.ShowPortStats, 'my-fw')
        self.assertEqual(len(columns), len(rows[0]))
        self.assertEqual([None, '02:00:00:00:00:01', 'up', 4, 0, 0, 0],
                         list(rows[0][:-1]))
        self.assertEqual({'spoof': 3}, rows[0][-1].machine_readable())

    def _guests_with_flows(self):
        other_id = str(uuid.uuid4())
        self.cloud.add_server(other_id, self.project_id)
        for server_id in (self.server_id, other_id):
            self.agent.guests[server_id] = {
                'rw.state': 'ip-rewriter 1\na\n', 'rw.block_new_flows': '',
                'rw.merge': ''}
        return other_id

    def test_flow_transfer(self):
        other_id = self._guests_with_flows()
        self.assertEqual('my-fw: 1 flows transferred to 1 guests\n',
                         self.run_command(flow.TransferFlow, 'my-fw', '--to',
                                          other_id)[1])
        with self.assertRaisesRegex(exceptions.CommandError, 'another'):
            self.run_command(flow.TransferFlow, 'my-fw', '--to', 'my-fw')

    def test_the_former_name_of_flow_transfer(self):
        other_id = self._guests_with_flows()
        with self.assertLogs(flow.LOG, 'WARNING') as logged:
            self.assertEqual('my-fw: 1 flows transferred to 1 guests\n',
                             self.run_command(flow.GiveFlow, 'my-fw', '--to',
                                              other_id)[1])
        self.assertIn('use "clickos flow transfer"', logged.output[0])

    def test_flow_log(self):
        values = self.agent.guests[self.server_id]
        with self.assertRaisesRegex(exceptions.CommandError, 'no flow log'):
            self.run_command(flow.ShowFlowLog, 'my-fw')
        values['fw.log'] = '1500 2 6 10.0.0.1 5 10.0.0.2 81 deny \x1b tcp\n'
        values['flows.log'] = '200 1 17 ::1 5 ::2 53 no flow\n'
        (columns, rows), _ = self.run_command(flow.ShowFlowLog, 'my-fw')
        self.assertEqual(len(columns), len(rows[0]))
        self.assertEqual(
            [('flows', '0.2', 1, 'udp', '[::1]:5', '[::2]:53', 'no flow'),
             ('fw', '1.5', 2, 'tcp', '10.0.0.1:5', '10.0.0.2:81',
              'deny \\x1b tcp')], rows)
        values['flows.log'] = 'what\n'
        with self.assertRaisesRegex(exceptions.CommandError, 'line 1'):
            self.run_command(flow.ShowFlowLog, 'my-fw')

    def test_list_by_class(self):
        values = self.agent.guests[self.server_id]
        values.update({'in.count': '1', 'out.count': '2', 'graph':
                       'watched_ns 1\nelement fw IPFilter 0\n'
                       'element in Counter 0\nelement out Counter 0\n'})
        for names, options in (
                (['in.count', 'out.count'], ['--class', 'Counter']),
                (['fw.config'], ['--class', '*Filter']),
                (['out.count'], ['--class', 'Counter', '--element', 'out']),
                ([], ['--class', 'counter'])):
            (_, rows), _ = self.run_command(handler.ListHandler, 'my-fw',
                                            *options)
            self.assertEqual(names, [row[0] for row in rows], options)
        values['graph'] = 'x'
        with self.assertRaisesRegex(exceptions.CommandError, 'no graph'):
            self.run_command(handler.ListHandler, 'my-fw', '--class', 'x')

    def test_vnf_by_name(self):
        self.cloud.vnfs[self.vnf_id][1]['vnfInstanceName'] = 'edge'
        self.assertEqual('deny all\n', self.run_whole(
            handler.ReadHandler, '--vnf', 'edge', 'fw.config')[1])
        with self.assertRaisesRegex(exceptions.CommandError, 'No VNF'):
            self.run_whole(handler.ReadHandler, '--vnf', 'x', 'fw.config')

    def test_ambiguous_vnf_name(self):
        for vnf_id in 'ab':
            self.cloud.add_vnf(vnf_id, self.project_id, [])
            self.cloud.vnfs[vnf_id][1]['vnfInstanceName'] = 'edge'
        with self.assertRaisesRegex(exceptions.CommandError, 'use an ID: a'):
            self.run_whole(handler.ReadHandler, '--vnf', 'edge', 'a.x')

    def test_vnfc_goes_with_vnf(self):
        with self.assertRaisesRegex(exceptions.CommandError, '--vnf'):
            self.run_whole(handler.ReadHandler, '--vnfc', 'x', 'my-fw',
                           'fw.config')

    def test_read_escapes_what_controls_a_terminal(self):
        self.agent.guests[self.server_id]['fw.config'] = 'a\n\x1b[2Jb\x9bc\n'
        self.assertEqual('a\n\\x1b[2Jb\\x9bc\n', self.run_whole(
            handler.ReadHandler, 'my-fw', 'fw.config')[1])
        self.assertEqual('a\\nb\\x1b', formatting.line('a\nb\x1b'))

    def test_write(self):
        _, out = self.run_command(handler.WriteHandler, 'my-fw', 'fw.config',
                                  'allow icmp')
        self.assertEqual('fw.config: accepted, revision 1\n', out)
        self.assertEqual('allow icmp',
                         self.agent.guests[self.server_id]['fw.config'])

        _, out = self.run_command(handler.WriteHandler, '-f', 'json',
                                  'my-fw', 'fw.config', 'deny all')
        self.assertEqual({'revision': 2, 'kept': True}, json.loads(out))

    def test_write_a_file(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, 'rules')
            with open(path, 'w') as rules:
                rules.write('allow icmp,\ndeny all\n')
            self.run_command(handler.WriteHandler, 'my-fw', 'fw.config',
                             '--file', path)
        self.assertEqual('allow icmp,\ndeny all\n',
                         self.agent.guests[self.server_id]['fw.config'])
        with self.assertRaisesRegex(exceptions.CommandError, 'No such file'):
            self.run_command(handler.WriteHandler, 'my-fw', 'fw.config',
                             '--file', path)

    def test_write_takes_one_value(self):
        for extra in ([], ['x', '--file', 'y']):
            with self.assertRaisesRegex(exceptions.CommandError, 'either'):
                self.run_command(handler.WriteHandler, 'my-fw', 'a.x',
                                 *extra)

    def test_a_refusal_is_passed_on(self):
        with self.assertRaisesRegex(
                exceptions.CommandError,
                r'fw.config: bad value \(HTTP 400, handler-error\)'):
            self.run_command(handler.WriteHandler, 'my-fw', 'fw.config',
                             'bad')

    def test_another_project(self):
        self.manager = self._manager(self.caller('other', 'member'))
        with self.assertRaisesRegex(exceptions.CommandError, 'HTTP 404'):
            self.run_command(handler.ListHandler, self.server_id)

    def test_names_cannot_leave_their_place_in_the_path(self):
        with self.assertRaises(api.ClickOSError) as caught:
            self.manager.clickos.read(self.server_id, 'a.x?vnfc=1')
        self.assertEqual(400, caught.exception.status)
        with self.assertRaises(api.ClickOSError) as caught:
            self.manager.clickos.read('../servers', 'a.x')
        self.assertEqual(404, caught.exception.status)

    def test_desired_state(self):
        clickos = self.manager.clickos
        self.assertEqual(1, clickos.write_many(
            api.Vnf(self.vnf_id), [['a/b.x', '1'], ['c.x', '2']]))
        self.assertEqual([['a/b.x', '1'], ['c.x', '2']],
                         clickos.desired_state(self.server_id))
        clickos.delete_desired_state(self.server_id)
        self.assertEqual(0, self.state()['revision'])
        clickos.write(self.server_id, 'c.x', '3')
        del self.cloud.servers[self.server_id]
        clickos.delete_desired_state(self.server_id)
        self.assertEqual(0, self.state()['revision'])

    def test_commands_and_edits_are_no_desired_state(self):
        for written, said in (
                ('fw.config', 'accepted, revision 1'),
                ('c.reset', 'done; a restart of the guest does not repeat'),
                ('rt.add', 'accepted, but not kept: a restart')):
            _rows, out = self.run_command(handler.WriteHandler,
                                          self.server_id, written, '1')
            self.assertIn(said, out)
        self.assertEqual([['fw.config', '1']], self.state()['writes'])

    def test_stop_wants_a_yes(self):
        for name in ('stop', 'dump.stop'):
            with self.assertRaisesRegex(exceptions.CommandError,
                                        f'{name}: .*rebooted; add --yes'):
                self.run_command(handler.WriteHandler, self.server_id, name,
                                 '1')
        self.assertEqual(0, self.state()['revision'])
        self.run_command(handler.WriteHandler, self.server_id, 'stop', '1',
                         '--yes')
        self.assertEqual([], self.state()['writes'])

    def test_another_project_cannot_delete(self):
        self.manager.clickos.write(self.server_id, 'c.x', '3')
        self._manager(self.caller('other', 'member')).clickos \
            .delete_desired_state(self.server_id)
        self.assertEqual(1, self.state()['revision'])

    def test_an_answer_of_something_else(self):
        self.cloud.failing = True
        elsewhere = api.Client(self.manager.session,
                               endpoint_override=self.cloud.url)
        with self.assertRaises(ks_exc.InternalServerError):
            elsewhere.read(self.server_id, 'a.x')
