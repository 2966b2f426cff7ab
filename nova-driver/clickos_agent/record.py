# SPDX-License-Identifier: Apache-2.0
"""Keeps on disk which chains are in force (ADR 0032)."""

import json
import os
import pathlib

from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_NAME, _NEW = 'chains.json', 'chains.json.new'


class Record:
    """The chains of this host's switch, as an agent knew them last.

    After a reboot neither the switch nor the agent knows them, and Neutron
    has no definition of those that are not ready.
    """

    def __init__(self, folder):
        """Keep chains.

        :param folder: path, or None to keep nothing
        """
        self._folder = folder and pathlib.Path(folder)
        self._saved = None
        self._fault = None

    def load(self):
        """Return the arguments of chain-set by the name of a chain.

        The result is empty without a record that can be read.
        """
        if not self._folder:
            return {}
        path = self._folder / _NAME
        try:
            return _parse(path.read_text(encoding='utf-8'))
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as e:
            LOG.error('%(path)s: %(why)s; packets may bypass chains that are '
                      'not ready', {'path': path, 'why': e})
            return {}

    def save(self, chains):
        """Keep chains in place of those before; log what hinders it.

        :param chains: as from load()
        """
        if not self._folder or chains == self._saved:
            return
        try:
            self._write(json.dumps([*chains.values()]).encode())
        except OSError as e:
            if str(e) != self._fault:
                LOG.error('Chains in force are not kept for the next start '
                          'of this agent: %s', e)
            self._fault = str(e)
            return
        self._saved, self._fault = dict(chains), None

    def _write(self, content):
        """Write a file that is there as a whole after a power cut."""
        new = self._folder / _NEW
        with open(new, 'wb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._folder / _NAME)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _parse(text):
    found = json.loads(text)
    if not (isinstance(found, list) and all(map(_is_chain, found))):
        raise ValueError('expected a list of chains')
    return {chain['chain']: chain for chain in found}


def _is_chain(value):
    return (isinstance(value, dict)
            and all(isinstance(value.get(key), str)
                    for key in ('chain', 'switch'))
            and all(isinstance(value.get(key, []), list)
                    for key in ('classifiers', 'hops', 'nat')))
