# SPDX-License-Identifier: Apache-2.0
"""As whom each service runs, and what that user can reach.

An account is a user id and a group of the same number. The numbers stand in
``settings.json``; the machine's own list of users does not change.
"""

import dataclasses
import os
import pathlib
import sys

from clickos_lab import entry_points
from clickos_lab import errors
from clickos_lab import rust
from clickos_lab import shell

_ENTER = pathlib.Path(__file__).with_name('enter.sh')


@dataclasses.dataclass(frozen=True)
class Account:
    """A user of one service; services that share a configuration share it."""

    name: str
    #: of :data:`GROUPS`: the sockets that it may open
    groups: tuple = ()
    #: the capabilities that stay, as setpriv(1) names them
    capabilities: tuple = ()


#: The groups that may enter a folder with a socket.
GROUPS = ('database', 'toolstack', 'toolstack-2')
_DATABASE, _TOOLSTACK = ('database',), ('toolstack',)
_TOOLSTACK_2 = ('toolstack-2',)
ALL = {account.name: account for account in (
    Account('mariadb'), Account('rabbitmq'), Account('epmd'),
    Account('memcached'), Account('xenstored'), Account('front'),
    # It opens packet sockets and reads the features of interfaces.
    Account('valed', capabilities=('net_admin', 'net_raw')),
    Account('xenstored-2'),
    Account('valed-2', capabilities=('net_admin', 'net_raw')),
    Account('keystone', _DATABASE), Account('glance', _DATABASE),
    Account('placement', _DATABASE), Account('neutron', _DATABASE),
    Account('nova', _DATABASE), Account('tacker', _DATABASE),
    Account('clickos', _DATABASE), Account('horizon'),
    Account('nova-compute', _TOOLSTACK), Account('clickos-agent', _TOOLSTACK),
    Account('nova-compute-2', _TOOLSTACK_2),
    Account('clickos-agent-2', _TOOLSTACK_2),
    Account('nova-compute-xen'), Account('clickos-agent-xen'),
    Account('xen-nova'), Account('xen-agent'),
    Account('nova-compute-xen2'), Account('clickos-agent-xen2'),
    Account('xen2-nova'), Account('xen2-agent'),
    Account('heat', _DATABASE), Account('nova-compute-fake'))}
#: The two whose user ids are roles at cosmosd, on every host.
ROLES = {'nova-compute': 'nova_uid', 'clickos-agent': 'agent_uid'}
#: The services that are root: they make guests of other users.
ROOT = ('cosmosd', 'cosmosd-2')


def prefix(state, settings, name):
    """Return the beginning of a command that runs as an account.

    The program sees the machine's files with two differences. /etc/passwd
    holds the accounts. A folder that only root may enter holds the state
    folder and Python, and nothing else.
    """
    account, number = ALL[name], settings.ids[name]
    groups = [str(settings.ids[group]) for group in account.groups]
    kept = ','.join(['-all', *(f'+{c}' for c in account.capabilities)])
    trees = [tree for tree in _trees(state) if closed(tree)]
    folders = dict.fromkeys(str(closed(tree)) for tree in trees)
    return ['unshare', '--mount', '--propagation=private', _ENTER,
            state.passwd, *folders, '--', *trees, '--',
            'setpriv', f'--reuid={number}', f'--regid={number}',
            f'--groups={",".join(groups)}' if groups else '--clear-groups',
            '--no-new-privs', f'--inh-caps={kept}', f'--ambient-caps={kept}',
            f'--bounding-set={kept}']


def _trees(state):
    """The folders from which an account runs programs."""
    return [state.visible, pathlib.Path(sys.base_prefix).resolve()]


def closed(path):
    """Return the uppermost folder above a path that others cannot enter."""
    above = reversed(path.parents)
    return next((p for p in above if not p.stat().st_mode & 0o001), None)


def write_passwd(state, settings):
    """Write the list of users that the services see."""
    lines = ['root:x:0:0:root:/root:/bin/sh']
    for name in ALL:
        number = settings.ids[name]
        lines.append(f'{name}:x:{number}:{number}:ClickOS lab:'
                     f'{home(state, name)}:/usr/sbin/nologin')
    state.passwd.write_text('\n'.join(lines) + '\n')
    state.passwd.chmod(0o644)


def home(state, name):
    """Return the folder of an account for what does not outlive a run."""
    return state.tmp / name


def empty(state, name):
    """Return the folder in which an account's services start.

    Some libraries look for files in the current folder: tosca-parser reads
    imports of a package there.
    """
    return home(state, name) / 'empty'


def socket_folder(state, name):
    """Return the folder with the sockets of a service."""
    return state.run / name


def make_folders(state, settings):
    """Make the folders of homes and sockets.

    A folder with sockets can be entered by its owner and one group.
    """
    for folder in (state.tmp, state.run / 'pid'):
        _own(folder, 0, 0, 0o711)
    for name in ALL:
        _own(home(state, name), settings.ids[name], settings.ids[name], 0o700)
        _own(empty(state, name), 0, 0, 0o555)
        entry_points.same_time(empty(state, name))
    for name, group in _SOCKETS.items():
        owner = 0 if name in ROOT else settings.ids[name]
        _own(socket_folder(state, name), owner,
             settings.ids[group or name], 0o710)


#: Service with sockets: the group, or the account, that may open them.
_SOCKETS = {
    'mariadb': 'database', 'memcached': 'keystone', 'cosmosd': 'toolstack',
    'cosmosd-2': 'toolstack-2', 'valed': None, 'valed-2': None,
    'xenstored': None, 'xenstored-2': None, 'front': None,
    'xen-nova': 'nova-compute-xen', 'xen-agent': 'clickos-agent-xen',
    'xen2-nova': 'nova-compute-xen2', 'xen2-agent': 'clickos-agent-xen2',
    **dict.fromkeys(('keystone', 'glance', 'placement', 'neutron', 'nova',
                     'tacker', 'clickos', 'horizon', 'heat'), 'front')}


def _own(folder, uid, gid, mode):
    folder.mkdir(parents=True, exist_ok=True)
    os.chown(folder, uid, gid)
    folder.chmod(mode)


def own_tree(folder, number):
    """Give a private folder to an account, with what an older lab made."""
    if folder.stat().st_uid != number:
        shell.output(['chown', '-R', '--no-dereference',
                      f'{number}:{number}', folder])
    folder.chmod(0o700)


def open_programs(state):
    """Let every account run the programs, whatever the umask was.

    :raises LabError: naming the folder, if others cannot enter Python's
    """
    for folder in (state.root, state.etc, state.data, state.run,
                   state.target, state.target / 'release'):
        folder.chmod(0o711)
    state.log.chmod(0o700)
    shell.output(['chmod', '-R', 'go+rX', state.venv, state.noxen,
                  state.static])
    for name in ('valed', rust.CHECKER):
        if state.binary(name).exists():
            state.binary(name).chmod(0o755)
    python = pathlib.Path(sys.base_prefix).resolve()
    if python.stat().st_mode & 0o005 != 0o005:
        raise errors.LabError(
            f'{python}: services that are not root run this Python and '
            'cannot read it; chmod -R o+rX, or choose another one with '
            'make PYTHON=')
