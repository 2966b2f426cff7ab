# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf scale."""

import time

from osc_lib.command import command
from osc_lib import exceptions

from clickos_osc import shown
from clickos_osc import tacker
from clickos_osc.v1 import guest

_INTERVAL_S = 0.5


class ScaleVnf(command.Command):
    """Bring a scaling aspect of a VNF to a level.

    Tacker scales by steps; the command computes their number and direction
    from the level that the VNF has. It waits for the end of the operation,
    and ends with exit status 1 if that fails.

    Example: openstack clickos vnf scale edge-firewall --aspect capacity
    --level 2
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>',
                            help='Name or ID of a VNF instance of Tacker')
        parser.add_argument('--aspect', metavar='<aspect>',
                            help='Scaling aspect, if the VNF has several')
        parser.add_argument('--level', metavar='<level>', type=int,
                            required=True, help='Wanted level, from 0')
        parser.add_argument('--no-wait', action='store_true',
                            help='End as soon as Tacker took the request')
        return parser

    def take_action(self, parsed_args):
        """Compute the steps, ask Tacker, wait."""
        source = tacker.Tacker(self.app.client_manager)
        vnf = source.vnf(guest.only_vnf(source.ids(parsed_args.vnf),
                                        parsed_args.vnf))
        aspect, level = _aspect(vnf, parsed_args.aspect)
        steps = _steps(level, parsed_args.level)
        what = (f'{shown.line(vnf.name)}: {shown.line(aspect)}: level {level}'
                f' to {parsed_args.level}')
        state = _scaled(source, vnf.id, aspect, steps, parsed_args.no_wait)
        self.app.stdout.write(f'{what}: {state}\n')


def _scaled(source, vnf_id, aspect, steps, no_wait):
    """Ask for the steps, wait, and return a word for the end."""
    if not steps:
        return 'nothing to do'
    operation_id = source.scale(vnf_id, aspect, steps)
    return 'accepted' if no_wait else _ended(source, vnf_id, operation_id)


def _aspect(vnf, name):
    """Return the aspect's name and level."""
    levels = dict(vnf.scale)
    names = ', '.join(map(shown.line, levels)) or 'none'
    if name is None and len(levels) == 1:
        (name,) = levels
    if name is None:
        raise exceptions.CommandError(
            f'VNF instance {vnf.id}: --aspect is needed; aspects that scale:'
            f' {names}')
    if name not in levels:
        raise exceptions.CommandError(
            f'VNF instance {vnf.id} has no scaling aspect'
            f' {shown.line(name)}; aspects that scale: {names}')
    return name, int(levels[name])


def _steps(level, wanted):
    """Return the steps to a level, below 0 to scale in."""
    if wanted < 0:
        raise exceptions.CommandError(
            f'--level {wanted}: expected 0 or more')
    return wanted - level


def _ended(source, vnf_id, operation_id):
    """Wait for the end of an operation; return its state.

    :raises exceptions.CommandError: with its reason, if it failed
    """
    while True:
        operation = source.operation(vnf_id, operation_id)
        if not operation.under_way:
            break
        _pause()
    if operation.state != 'COMPLETED':
        raise exceptions.CommandError(
            f'{operation.name} {operation.state}:'
            f' {shown.text(operation.reason)}; operation {operation.id}:'
            ' "openstack vnflcm op retry", "rollback" or "fail" goes on')
    return operation.state


def _pause():
    time.sleep(_INTERVAL_S)
