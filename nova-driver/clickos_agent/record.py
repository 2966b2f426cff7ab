# SPDX-License-Identifier: Apache-2.0
"""Keeps on disk which chains are in force (ADR 0032)."""

import ipaddress
import json
import os
import pathlib
import stat

from clickos_client import contract
from oslo_log import log as logging

LOG = logging.getLogger(__name__)

_NAME, _NEW = 'chains.json', 'chains.json.new'
#: Bytes of a record; 64 chains at the limits of valed need a tenth.
_MAX_SIZE = 64 << 20
#: The arguments of chain-set; of another verb's the client makes a time.
_ARGUMENTS = frozenset(contract.CONTRACT['$defs']['ChainSet']['properties'])


class Record:
    """The chains of this host's switch, as an agent knew them last.

    After a reboot neither the switch nor the agent knows them, and Neutron
    has no definition of those that are not ready.
    """

    def __init__(self, folder, host):
        """Keep chains.

        :param folder: path, or None to keep nothing
        :param host: name of this host; the record of another one, as in a
            copy of its disk, is not used
        """
        self._folder = folder and pathlib.Path(folder)
        self._host = host
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
            return _parse(_read(path), self._host)
        except FileNotFoundError:
            return {}
        except (OSError, ValueError, RecursionError) as e:
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
            self._write(json.dumps({
                'host': self._host, 'chains': [*chains.values()]}).encode())
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
        # What else has the name, as a link or a pipe, is not written to.
        new.unlink(missing_ok=True)
        with open(new, 'xb') as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, self._folder / _NAME)
        folder = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _read(path):
    """Return the text of a file.

    :raises: OSError, and ValueError for what no agent has written
    """
    with open(path, 'rb', opener=_open) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError('not a regular file')
        found = file.read(_MAX_SIZE + 1)
    if len(found) > _MAX_SIZE:
        raise ValueError(f'longer than the limit of {_MAX_SIZE} bytes')
    return found.decode()


def _open(path, flags):
    """Open no link, and wait for no writer of a pipe."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def _parse(text, host):
    found = json.loads(text)
    if not _has(found, list, 'chains') or not all(map(_is_chain,
                                                      found['chains'])):
        raise ValueError('expected a list of chains')
    if found.get('host') != host:
        raise ValueError(f'of host {found.get("host")!r:.100}, this is host '
                         f'{host}')
    return {chain['chain']: chain for chain in found['chains']}


def _is_chain(value):
    """Return whether a value has what the agent reads of a chain.

    A file of another release may have something else there.
    """
    if not (_has(value, str, 'chain', 'switch') and _has(value, list, 'hops')
            and value.keys() <= _ARGUMENTS
            and _may_have(value, list, 'classifiers', 'nat')
            and _may_have(value, int, 'segment')):
        return False
    flows = value.get('classifiers', ())
    return (all(map(_is_classifier, flows))
            and all(_is_network(network) for part in (
                value.get('nat', ()),
                *(flow.get('senders', ()) for flow in flows))
                for network in part))


def _is_classifier(value):
    return isinstance(value, dict) and _may_have(value, list, 'senders') and (
        _may_have(value, (str, type(None)), 'source_port',
                  'destination_port'))


def _is_network(value):
    try:
        return isinstance(value, str) and bool(
            ipaddress.ip_network(value, strict=False))
    except ValueError:
        return False


def _has(value, kind, *keys):
    return isinstance(value, dict) and all(
        isinstance(value.get(key), kind) for key in keys)


def _may_have(value, kind, *keys):
    return all(isinstance(value[key], kind) for key in keys if key in value)
