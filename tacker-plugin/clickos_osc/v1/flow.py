# SPDX-License-Identifier: Apache-2.0
"""openstack clickos flow give."""

from clickos_osc import shown
from clickos_osc.v1 import guest


class GiveFlow(guest.GuestCommand):
    """Let other guests go on with the flows of one that goes.

    Give before you take the guest out of its chain, and again after that.
    The guest keeps its flows, and opens no further ones for a minute.

    Example: openstack clickos flow give nat-2 --to nat-0 --to nat-1
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--to', metavar='<server>', action='append', required=True,
            help='Server of a guest that stays; may be repeated')
        return parser

    def take_action(self, parsed_args):
        """Give, and say how many."""
        manager = self.app.client_manager
        giver = guest.find(manager, parsed_args)
        takers = [guest.find_server(manager, name) for name in parsed_args.to]
        with shown.refusals():
            flows = manager.clickos.give_flows(giver, takers)
        self.app.stdout.write(f'{shown.line(parsed_args.guest)}: {flows}'
                              f' flows given to {len(takers)} guests\n')
