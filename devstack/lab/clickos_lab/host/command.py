# SPDX-License-Identifier: Apache-2.0
"""The command that Tempest reaches a compute host with.

``[clickos] host_command`` of Tempest names it: here ``python -m clickos_lab
host``, elsewhere with ``ssh`` in front. The exit status is 0, or not 0 with a
message on standard error. For a Xen host (``xen_host_command``) only verbs
about guests and services of the host are used.
"""

import argparse
import json
import os
import signal
import time

from clickos_lab import errors
from clickos_lab import exhaustion
from clickos_lab.host import disk
from clickos_lab.host import endpoint
from clickos_lab.host import target
from clickos_lab.host import units
from clickos_lab import lab
from clickos_lab.xen import compute


def add_arguments(parser):
    """Declare the verbs."""
    parser.add_argument('--on', default=target.PROCESS, choices=target.NAMES,
                        help='the compute host to act on')
    verbs = parser.add_subparsers(required=True, metavar='VERB')
    for name, run, arguments in _VERBS:
        verb = verbs.add_parser(name, help=run.__doc__,
                                description=run.__doc__)
        verb.set_defaults(verb=run)
        for argument, options in arguments:
            verb.add_argument(argument, **options)


def run(state, arguments):
    """Run the verb that was parsed."""
    return arguments.verb(state, arguments)


def _endpoint_add(state, arguments):
    """Make a network namespace with eth0 on a secured veth port, link up.

    It may use the addresses of each --allow CIDR, too.
    """
    endpoint.Endpoint(state, arguments.name).add(
        arguments.segment, arguments.mac, arguments.address,
        arguments.gateway, arguments.allow)


def _endpoint_remove(state, arguments):
    """Remove a namespace and its port; idempotent."""
    endpoint.Endpoint(state, arguments.name).remove()


def _endpoint_exec(state, arguments):
    """Run a command in a namespace; signals reach the command."""
    wanted = endpoint.Endpoint(state, arguments.name)
    if not wanted.exists():
        raise errors.LabError(f'{arguments.name}: no such namespace')
    # As with exec: what the caller signals is the command itself.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    command = wanted.command(*arguments.command)
    os.execvp(command[0], command)


def _endpoint_counters(state, arguments):
    """Print the counters of a namespace's switch port as JSON."""
    print(json.dumps(endpoint.Endpoint(state, arguments.name).counters()))


def _kill_guest(state, arguments):
    """Kill a guest's process, or destroy its domain without cosmosd."""
    target.of(arguments.on, state).guests.kill(arguments.server)


def _hang_guest(state, arguments):
    """Stop a guest's process, or pause its domain without cosmosd."""
    target.of(arguments.on, state).guests.hang(arguments.server)


def _restart(state, arguments):
    """Kill a service but no guest, start it, wait until it answers."""
    found = target.of(arguments.on, state).host
    if found.is_xen and arguments.service == 'cosmosd':
        compute.XenCompute(state, found).restart_cosmosd()
    elif units.known(state):
        units.restart(state, arguments.service)
    else:
        lab.Lab(state, [found]).restart(found.daemon(arguments.service))


def _outage(state, arguments):
    """Disturb a service for some seconds, and wait until it works again.

    stop is SIGSTOP and SIGCONT, kill is SIGKILL and a new start; descriptors
    and memory allow no more of them than its processes use.
    """
    host = target.of(arguments.on, state).host
    name = arguments.service
    if name in _ON_HOST:
        name = host.daemon(name)
    lab.Lab(state, [host]).outage(name, arguments.kind, arguments.seconds,
                                  lambda: print('away', flush=True))


def _read_only(state, arguments):
    """Let state_dir of cosmosd take no write for some seconds."""
    daemon = target.of(arguments.on, state).host.daemon('cosmosd')
    with disk.read_only(state.data / daemon, state.log / 'disk.log'):
        print('away', flush=True)
        time.sleep(arguments.seconds)


def _power_cut(state, arguments):
    """Kill guests and daemons, or the machine, and boot them again."""
    host = target.of(arguments.on, state).host
    lab.Lab(state, [host]).power_cut(host)


def _clock_jump(state, arguments):
    """Set the clock of a Xen host forward, or back if negative."""
    found = target.of(arguments.on, state).host
    if not found.is_xen:
        raise errors.LabError(f'clock-jump: {arguments.on}: the clock of a'
                              ' process host is the one of this machine')
    compute.XenCompute(state, found).jump_clock(arguments.seconds)


def _leftovers(state, arguments):
    """Print a JSON list of what a server has left on the host.

    The list has guest, process or domain, store keys and switch ports.
    """
    known = target.of(arguments.on, state).guests
    print(json.dumps(known.leftovers(arguments.server)))


_RESTARTED = ('cosmosd', 'nova-compute', 'clickos-agent', 'valed',
              'tacker-conductor')
#: Services of a compute host; the others are the cloud's.
_ON_HOST = ('xenstored', 'valed', 'cosmosd', 'nova-compute', 'clickos-agent')
_OUTAGES = (*_ON_HOST, 'rabbitmq', 'mariadb', 'front', 'keystone', 'glance',
            'placement', 'neutron', 'neutron-rpc-server', 'nova',
            'nova-conductor', 'nova-scheduler', 'clickos-api',
            'tacker-conductor')
_NAME = ('name', {})
_SERVER = ('server', {})
_VERBS = (
    ('endpoint-add', _endpoint_add, (
        _NAME, ('--segment', {'type': int, 'required': True}),
        ('--mac', {'required': True}), ('--address', {'required': True}),
        ('--gateway', {}),
        ('--allow', {'action': 'append', 'default': []}))),
    ('endpoint-remove', _endpoint_remove, (_NAME,)),
    ('endpoint-exec', _endpoint_exec, (
        _NAME, ('command', {'nargs': argparse.REMAINDER}))),
    ('endpoint-counters', _endpoint_counters, (_NAME,)),
    ('read-only', _read_only, (
        ('--seconds', {'type': float, 'required': True}),)),
    ('kill-guest', _kill_guest, (_SERVER,)),
    ('hang-guest', _hang_guest, (_SERVER,)),
    ('restart', _restart, (('service', {'choices': _RESTARTED}),)),
    ('outage', _outage, (
        ('service', {'choices': _OUTAGES}),
        ('kind', {'choices': ('stop', 'kill', *exhaustion.KINDS)}),
        ('--seconds', {'type': float, 'required': True}))),
    ('power-cut', _power_cut, ()),
    ('clock-jump', _clock_jump, (
        ('--seconds', {'type': int, 'required': True}),)),
    ('leftovers', _leftovers, (_SERVER,)))
