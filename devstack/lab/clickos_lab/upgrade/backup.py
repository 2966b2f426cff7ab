# SPDX-License-Identifier: Apache-2.0
"""Backup and restore of the databases, as the guide describes them."""

import subprocess

from clickos_lab.config import hosts
from clickos_lab import databases
from clickos_lab import errors
from clickos_lab.host import power
from clickos_lab import log

#: Services that keep nothing in a database, and MariaDB itself.
_KEPT = ('mariadb', 'rabbitmq', 'epmd', 'memcached', 'front',
         *power.daemons(hosts.PROCESS))


class Backup:
    """A dump of all databases of a lab, in one transaction.

    :param lab: a :class:`place.Lab` that is up
    """

    def __init__(self, lab):
        self._lab = lab
        self._path = lab.state.data / 'backup.sql'
        self._socket = lab.state.run / 'mariadb/mysql.sock'

    def dump(self):
        """Dump the databases."""
        with open(self._path, 'wb') as output:
            self._run(['mariadb-dump', '--no-defaults', '-S', self._socket,
                       '--single-transaction', '--databases',
                       *databases.OWNERS], stdout=output)

    def lose_and_restore(self):
        """Drop all databases, restore them, and cut the host's power.

        The controllers start first, then the host with its guests.

        :raises LabError: if the dump does not bring all tables back
        """
        self._lab.processes.stop([name for name
                                  in self._lab.processes.names()
                                  if name not in _KEPT])
        before = self._tables()
        databases.execute(self._lab.state, ''.join(
            f'drop database {name};' for name in databases.OWNERS))
        log.info(f'  {before} tables dropped')
        with open(self._path, 'rb') as dumped:
            self._run(['mariadb', '--no-defaults', '-S', self._socket],
                      stdin=dumped)
        if (now := self._tables()) != before:
            raise errors.LabError(f'{now} tables restored of {before}')
        self._lab.start_controllers()
        self._lab.power_cut(hosts.PROCESS)

    def _tables(self):
        found = databases.rows(
            self._lab.state,
            'select table_schema from information_schema.tables;')
        return sum(name in databases.OWNERS for name in found)

    @staticmethod
    def _run(command, **streams):
        done = subprocess.run([str(word) for word in command],
                              stderr=subprocess.PIPE, text=True, **streams)
        if done.returncode:
            raise errors.LabError(f'{command[0]}: {done.stderr.strip()}')
