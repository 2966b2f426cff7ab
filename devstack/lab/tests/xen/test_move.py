# SPDX-License-Identifier: Apache-2.0
"""A guest moves between two Xen hosts; their sockets are brought by SSH."""

import json
import os
import pathlib
import subprocess
import tempfile

from clickos_lab.xen import files
from clickos_lab.xen import host
from clickos_lab.xen import snapshot
from clickos_lab.xen import toolstack
from tests.xen import base

_SEVEN = 's :: InfiniteSource(LIMIT 7) -> c :: Counter -> d :: Discard;\n'


def _ports(machine):
    """Return the names of a host's switch ports."""
    shown = machine.dom0.check(
        toolstack.command('vale-ctl', '-o', 'json', 'ports'))
    return [port['port'] for port in json.loads(shown)]


class Hosts(base.CosmosTest):
    """Two hosts whose toolstacks are reached from here."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.other = host.Host(cls.places, f't{os.getpid()}b')
        cls.addClassCleanup(cls.other.remove)
        contents = files.Files()
        cls.add_files(contents)
        cls.other.restore(
            snapshot.ensure(cls.places, cls.variant), contents)
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.here = cls._ready(cls.host, 'here')
        cls.there = cls._ready(cls.other, 'there')

    @classmethod
    def _ready(cls, machine, name):
        """Start the toolstack; return where its socket is here."""
        toolstack.start(machine, 'valed')
        toolstack.start(machine, 'cosmosd', pool=1)
        socket = cls.folder / name
        toolstack.bring(machine, socket)
        return socket

    def _cosmos(self, socket, *arguments):
        return subprocess.run(
            [toolstack.built(self.state, 'cosmos'), f'--socket={socket}',
             *map(str, arguments)], capture_output=True, text=True,
            timeout=120)

    def _done(self, socket, *arguments):
        result = self._cosmos(socket, *arguments)
        self.assertEqual(0, result.returncode, result.stderr)
        return result.stdout

    def _wait_pool(self, socket):
        self.wait_for(lambda: json.loads(
            self._done(socket, '-o', 'json', 'host'))['pooled'] == 1, 60)


class MoveTest(Hosts):

    @base.slow
    def test_a_guest_moves_with_its_counters(self):
        config = self.folder / 'seven.click'
        config.write_text(_SEVEN)
        self._done(self.here, 'create', '--config', config, '--timeout', 60,
                   '--vif', 'port=m,segment=1', '--vif', 'port=gone')
        self._done(self.here, 'vif-remove', 'seven', 1)
        self.assertEqual(['m'], _ports(self.host))
        self.wait_for(
            lambda: self._done(
                self.here, 'read', '--raw', 'seven', 'c.count') == '7')
        self._done(self.here, 'write', 'seven', 's.active', 'false')
        self._wait_pool(self.there)
        moved = json.loads(self._done(
            self.here, '-o', 'json', 'migrate', 'seven', '--to', self.there,
            '--timeout', 60))
        print(' '.join(f'{step} {ms:.0f} ms' for step, ms
                       in moved['steps_ms']), flush=True)
        self.assertEqual([], json.loads(
            self._done(self.here, '-o', 'json', 'list')))
        for handler, value in (('c.count', '7'), ('s.active', 'false')):
            self.assertEqual(
                value, self._done(
                    self.there, 'read', '--raw', 'seven', handler))
        self.assertEqual(([], ['m']), (_ports(self.host), _ports(self.other)))
        self._done(self.there, 'save', 'seven')
        self._done(self.there, 'restore', 'seven')
        self.assertEqual(['m'], _ports(self.other))
        self._done(self.there, 'destroy', 'seven')
