# SPDX-License-Identifier: Apache-2.0
"""openstack clickos flow transfer | log."""

import logging

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

LOG = logging.getLogger(__name__)

flow_log = lazy.module('clickos_client.flow_log')


class TransferFlow(guest.GuestCommand):
    """Transfer the flows of a guest that is to be removed to others.

    Run it before you remove the guest from its chain, and again afterwards.
    The guest keeps its flows, and opens no new ones for a minute.

    Example: openstack clickos flow transfer nat-2 --to nat-0 --to nat-1
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--to', metavar='<server>', action='append', required=True,
            help='Server of a guest that receives flows; may be repeated')
        return parser

    def take_action(self, parsed_args):
        """Transfer, and print the number of flows."""
        manager = self.app.client_manager
        source = guest.find(manager, parsed_args)
        targets = [guest.find_server(manager, name) for name in parsed_args.to]
        with formatting.refusals():
            flows = manager.clickos.transfer_flows(source, targets)
        self.app.stdout.write(f'{formatting.line(parsed_args.guest)}: {flows}'
                              f' flows transferred to {len(targets)} guests\n')


class GiveFlow(TransferFlow):
    """Transfer flows under the former name of the command.

    Use "openstack clickos flow transfer" instead.

    Example: openstack clickos flow give nat-2 --to nat-0 --to nat-1
    """

    deprecated = True

    def take_action(self, parsed_args):
        """Warn, and transfer."""
        LOG.warning('"clickos flow give" is deprecated, use "clickos flow'
                    ' transfer"')
        return super().take_action(parsed_args)


class ShowFlowLog(guest.EachGuestCommand, command.Lister):
    """List the flows that a guest dropped, with the rule that did.

    The newest come first. An element of the classes IPFilter, FlowGuard
    and IP6Balancer keeps 128 flows, and examines a hundred dropped packets a
    second. What the switch drops for a guest is not in its log.

    Example: openstack clickos flow log --vnf edge-firewall

    Example: openstack clickos flow log --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        manager = self.app.client_manager

        def rows_of(target):
            return [_row(each) for each in _dropped(manager, target)]
        return self.table(parsed_args, (
            'Element', 'Seconds Ago', 'Packets', 'Protocol', 'Source',
            'Destination', 'Rule'), rows_of)


def _dropped(manager, target):
    """Return the flow_log.Dropped of a guest."""
    try:
        with formatting.refusals():
            found = flow_log.read(manager.clickos, target)
    except ValueError as exc:
        raise exceptions.CommandError(f'The guest answers no log: {exc}')
    if found is None:
        raise exceptions.CommandError(
            'The guest has no flow log: none of its elements is an IPFilter,'
            ' FlowGuard or IP6Balancer that keeps one; on a Xen host its'
            ' image needs the'
            ' group flows')
    return found


def _row(each):
    return (formatting.line(each.element), f'{each.age_ms / 1000:.1f}',
            each.packets, each.protocol, each.source, each.destination,
            formatting.line(each.reason))
