# SPDX-License-Identifier: Apache-2.0
"""The program: a whole call over oslo.messaging, start and stop."""

import os
import signal
import subprocess
import sys
import threading
from unittest import mock

from clickos_client import rpc as client_rpc
import fixtures
from oslo_config import cfg
import oslo_messaging
from oslo_messaging import conffixture
import testtools

from clickos_agent import cmd
from clickos_agent import conf
from clickos_agent import ports
from clickos_agent import resync
from clickos_agent import rpc
from tests.unit import cosmosd

UUID = '11111111-2222-4333-8444-555555555555'


class ServerTest(testtools.TestCase):
    """Client and server of oslo.messaging in one process."""

    def setUp(self):
        super().setUp()
        self.cosmosd = self.useFixture(cosmosd.FakeCosmosd())
        self.cosmosd.guests[UUID] = {'uuid': UUID}
        self.conf = cfg.ConfigOpts()
        conf.register_opts(self.conf)
        self.useFixture(conffixture.ConfFixture(self.conf)).transport_url = \
            'fake:/'
        self.conf([])
        self.conf.set_override('host', 'compute1')
        self.conf.set_override('cosmosd_socket', self.cosmosd.path,
                               group='clickos_agent')

    def call(self, method, **args):
        client = oslo_messaging.get_rpc_client(
            oslo_messaging.get_rpc_transport(self.conf),
            oslo_messaging.Target(topic='clickos-agent', version='1.0'),
            timeout=60)
        return client.prepare(server='compute1').call({}, method, **args)

    def test_call(self):
        server = cmd.make_server(self.conf, {}.get)
        server.start()
        self.addCleanup(server.wait)
        self.addCleanup(server.stop)
        self.assertEqual({'value': 'c.count=1'}, self.call(
            'handler_read', server_id=UUID, name='c.count'))
        self.cosmosd.stop()
        self.assertEqual('unavailable', self.call(
            'handler_list', server_id=UUID)['error']['code'])

    def test_only_the_contract_is_callable(self):
        endpoint = rpc.Endpoint(None)
        for method in (*client_rpc.RELAYED, 'flows_read', 'chain_counters'):
            self.assertTrue(callable(getattr(endpoint, method)), method)
        for method in ('call', 'destroy', 'handler-list', '_call'):
            self.assertFalse(hasattr(endpoint, method), method)


class RecordTest(testtools.TestCase):
    """Where the agent keeps the chains in force."""

    def kept_in(self, state_dir):
        """Return which of three folders has a record then."""
        top = self.useFixture(fixtures.TempDir()).path
        folders = [os.path.join(top, name) for name in 'abc']
        for folder in folders:
            os.mkdir(folder)
        self.useFixture(fixtures.EnvironmentVariable(
            'STATE_DIRECTORY', ':'.join(folders[1:])))
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        options([])
        options.set_override('state_dir', state_dir and folders[0],
                             group='clickos_agent')
        cmd._record(options).save({})
        return [name for name, folder in zip('abc', folders)
                if os.listdir(folder)]

    def test_the_option_comes_before_the_units_folder(self):
        self.assertEqual(['a'], self.kept_in(True))
        self.assertEqual(['b'], self.kept_in(None))

    def test_without_a_folder_nothing_is_kept(self):
        self.useFixture(fixtures.EnvironmentVariable('STATE_DIRECTORY'))
        found = cmd._record(mock.Mock(
            **{'clickos_agent.state_dir': None}))
        found.save({UUID: {}})
        self.assertEqual({}, found.load())


class EventsTest(testtools.TestCase):
    """Which parts of the switch are compared after events of cosmosd."""

    def setUp(self):
        super().setUp()
        self.triggered, self.hints, self.calls = [], [], {}
        patch = self.useFixture
        patch(fixtures.MockPatchObject(
            resync, 'ResyncLoop', side_effect=self.loop))
        patch(fixtures.MockPatchObject(
            resync, 'EventTrigger',
            side_effect=lambda _client, hint: self.hints.append(hint)))
        options = cfg.ConfigOpts()
        conf.register_opts(options)
        patch(conffixture.ConfFixture(options)).transport_url = 'fake:/'
        options([])
        self.chains, self.client = mock.Mock(), mock.Mock()
        patch(fixtures.MockPatchObject(cmd, '_client',
                                       return_value=self.client))
        self.neutron = mock.Mock()
        cmd.make_ports(options, oslo_messaging.get_rpc_transport(options),
                       self.neutron, self.chains)

    def loop(self, name, run_once, *_arguments):
        self.calls[name] = run_once
        made = mock.Mock()
        made.trigger.side_effect = lambda: self.triggered.append(name)
        return made

    def hint(self, event):
        self.triggered.clear()
        self.hints[0](event)
        return sorted(self.triggered)

    def test_a_switch_that_starts_gets_its_chains_immediately(self):
        self.assertEqual(['chains', 'devices', 'policies', 'uplinks'],
                         self.hint('host'))

    def test_no_port_opens_before_its_chains_are_back(self):
        vif = {'port_id': UUID, 'switch': 'vale0', 'port': 'p0', 'segment': 1,
               'link': 'up'}
        self.client.call.return_value = {
            'guests': [{'uuid': UUID, 'vifs': [vif], 'state': 'starting'}],
            'ports': [{'port_id': UUID, 'closed': True}]}
        self.neutron.active_ports.return_value = set()
        self.neutron.policies.side_effect = lambda asked: (
            {port: ([], {}, {}) for port in asked}, {})
        self.chains.restore.side_effect = ports.NeutronUnavailable('away')
        self.assertRaises(ports.NeutronUnavailable, self.calls['policies'])
        self.assertEqual(['list', 'port-guard', 'port-limit'],
                         [call.args[0] for call in self.client.call.mock_calls
                          if call.args])
        self.chains.restore.side_effect = None
        for held, pause_s in ((set(), None), ({('vale0', 'p0')}, 1)):
            self.chains.restore.return_value = held
            self.assertEqual(pause_s, self.calls['policies']())

    def test_a_guest_asks_for_no_chains(self):
        for event in ('state', 'died'):
            self.assertEqual(['devices', 'policies', 'uplinks'],
                             self.hint(event))


#: Sends SIGTERM when the wait has begun, and in the middle of each lock that
#: Python code takes for it.
_INTERRUPTED = """
import os, signal, sys, threading
from clickos_agent import cmd

def interrupt(frame, event, _argument):
    if frame.f_code.co_filename == threading.__file__ and event == 'line':
        os.kill(os.getpid(), signal.SIGTERM)
    return interrupt

ended = cmd.end_signals()
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
sys.settrace(interrupt)
ended.get()
"""


class ProgramTest(testtools.TestCase):
    """The real process, without cosmosd and without a message broker."""

    def setUp(self):
        super().setUp()
        self.folder = self.useFixture(fixtures.TempDir()).path

    def run_program(self, text):
        path = os.path.join(self.folder, 'agent.conf')
        with open(path, 'w') as f:
            f.write(text)
        program = subprocess.Popen(
            [sys.executable, '-m', 'clickos_agent.cmd', '--config-file',
             path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True)
        self.addCleanup(program.stdout.close)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        timer = threading.Timer(60, program.kill)  # ends a read that waits
        timer.start()
        self.addCleanup(timer.cancel)
        return program

    def wait_for(self, program, part):
        for line in program.stdout:
            if part in line:
                return
        self.fail('no line with %r' % part)

    def serving(self):
        """Start a program without cosmosd; return it when it serves."""
        program = self.run_program(
            '[DEFAULT]\ntransport_url = fake:/\nhost = compute1\n'
            '[clickos_agent]\ncosmosd_socket = %s/none\n' % self.folder)
        self.wait_for(program, 'Serving as compute1')
        return program

    def test_starts_without_cosmosd_and_ends_at_sigterm(self):
        program = self.serving()
        program.send_signal(signal.SIGTERM)
        self.assertEqual(0, program.wait(60))

    def test_a_signal_at_any_moment_ends_the_wait(self):
        done = subprocess.run([sys.executable, '-c', _INTERRUPTED],
                              capture_output=True, text=True, timeout=50)
        self.assertEqual(0, done.returncode, done.stderr)

    def test_a_report_of_its_threads_at_sigusr2(self):
        program = self.serving()
        program.send_signal(signal.SIGUSR2)
        for part in ('Guru Meditation', 'Threads', 'clickos_agent:'):
            self.wait_for(program, part)
        program.send_signal(signal.SIGTERM)
        self.assertEqual(0, program.wait(60))

    def test_bad_option_is_named(self):
        program = self.run_program('[clickos_agent]\nreport_interval = 0\n')
        self.assertNotEqual(0, program.wait(60))
        self.assertIn('report_interval', program.stdout.read())
