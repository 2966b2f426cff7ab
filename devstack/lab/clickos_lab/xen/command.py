# SPDX-License-Identifier: Apache-2.0
"""``make lab`` and the command ``xen``: a Xen host for a person."""

import os
import pathlib
import subprocess
import sys

from clickos_lab import apt
from clickos_lab import errors
from clickos_lab import log
from clickos_lab import prereq
from clickos_lab.xen import compute
from clickos_lab.xen import files
from clickos_lab.xen import host as _host
from clickos_lab.xen import image
from clickos_lab.xen import snapshot
from clickos_lab.xen import xen_paths

_DEFAULT = 'lab'


def add_arguments(parser):
    """Describe the verbs."""
    verbs = parser.add_subparsers(required=True, metavar='VERB')
    for name, run, text, words in (
            ('lab', _lab, 'a shell on a new host, which ends with it', ''),
            ('up', _up, 'start a host that stays', ''),
            ('shell', _shell, 'a shell in dom0', ''),
            ('run', _run, 'run a shell script in dom0; - is standard input',
             'SCRIPT'),
            ('put', _put, 'copy a file into dom0', 'FILE NAME'),
            ('get', _get, 'copy a file of dom0 to standard output', 'NAME'),
            ('logs', _logs, 'copy console and logs into a folder', 'FOLDER'),
            ('list', _list, 'name the hosts that run', ''),
            ('down', _down, 'stop a host', '')):
        verb = verbs.add_parser(name, help=text)
        verb.set_defaults(verb=run)
        verb.add_argument('--host', default=_DEFAULT,
                          help='its name, as the verb list and Nova have it')
        if name == 'run':
            verb.add_argument('--timeout', type=int, default=600,
                              metavar='SECONDS')
        for word in words.split():
            verb.add_argument(word.lower())


def run(state, arguments):
    """Run a verb; return the exit status."""
    places = xen_paths.XenPaths(state)
    arguments.host = compute.MACHINES.get(arguments.host, arguments.host)
    return arguments.verb(state, places, arguments)


def install(state):
    """Install what a host needs of this machine."""
    prereq.check()
    state.create()
    apt.ensure(state, apt.XEN_PACKAGES)


def prepare(state):
    """Install and build what a host needs; return the snapshot."""
    install(state)
    image.build(state)
    return snapshot.ensure(xen_paths.XenPaths(state))


def add_image_arguments(parser):
    """Describe how to choose what is in an image."""
    choice = parser.add_mutually_exclusive_group()
    choice.add_argument('--profile', help='with the elements of a profile')
    choice.add_argument('--config', type=pathlib.Path, metavar='FILE',
                        help='with the elements of one configuration')


def build_image(state, arguments):
    """Build the guests' images and tell what takes their space."""
    prereq.check()
    state.create()
    chosen = [f'--{name}={value}' for name, value in (
        ('profile', arguments.profile), ('config', arguments.config))
        if value]
    print(image.build(state, chosen), end='')
    log.info(f'{image.folder(state)}')


def _started(state, places, name):
    host = _host.Host(places, name)
    saved = prepare(state)
    contents = files.Files()
    image.add(state, contents)
    with log.step(f'Xen host {name}'):
        host.restore(saved, contents)
    return host


def _lab(state, places, arguments):
    host = _started(state, places, arguments.host)
    try:
        _interact(host)
    finally:
        host.remove()


def _interact(host):
    """Give the terminal to dom0's shell; its exit status is no error."""
    log.info('Xen host; exit ends it. Try: xl info; xl list')
    subprocess.run(_interactive(host), cwd=host.places.root)


def _interactive(host):
    terminal = '-t' if sys.stdin.isatty() else '-T'
    return [*host.dom0.command(terminal), 'bash -l']


def _up(state, places, arguments):
    host = _started(state, places, arguments.host)
    log.info(f'ssh -F {host.places.ssh_config} dom0')


def _running(places, arguments):
    host = _host.Host(places, arguments.host)
    if not host.running():
        raise errors.LabError(f'{host.name}: no such Xen host runs; '
                              'start it with the verb up')
    return host


def _shell(_state, places, arguments):
    host = _running(places, arguments)
    os.chdir(host.places.root)
    command = _interactive(host)
    os.execvp(command[0], command)


def _run(_state, places, arguments):
    host = _running(places, arguments)
    script = arguments.script
    result = host.dom0.run(sys.stdin.read() if script == '-' else script,
                           timeout_s=arguments.timeout)
    sys.stdout.write(result.out)
    sys.stderr.write(result.err)
    return result.status


def _put(_state, places, arguments):
    path = pathlib.Path(arguments.file)
    try:
        mode = path.stat().st_mode & 0o777
    except OSError as e:
        raise errors.LabError(f'{path}: {e.strerror}')
    _running(places, arguments).dom0.put(path, arguments.name, mode)


def _get(_state, places, arguments):
    content = _running(places, arguments).dom0.get(arguments.name)
    sys.stdout.buffer.write(content)


def _logs(_state, places, arguments):
    _running(places, arguments).collect(pathlib.Path(arguments.folder))


def _list(_state, places, _arguments):
    for name in places.names():
        if _host.Host(places, name).running():
            print(name)


def _down(_state, places, arguments):
    _host.Host(places, arguments.host).remove()
