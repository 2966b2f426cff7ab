# SPDX-License-Identifier: Apache-2.0
"""openstack clickos console."""

from osc_lib.cli import parseractions

from clickos_osc import shown
from clickos_osc.v1 import guest


class ShowConsole(guest.GuestCommand):
    """Print what a guest wrote on its console.

    A guest prints its start, the errors of its configuration and the output
    of elements such as Print. A guest that died keeps its console until it
    starts again.

    Example: openstack clickos console --vnf edge-firewall --lines 20
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--lines', metavar='<count>', type=int,
            action=parseractions.NonNegativeAction,
            help='Print the last lines only, at most this number')
        return parser

    def take_action(self, parsed_args):
        """Ask and print."""
        manager = self.app.client_manager
        server_id = guest.server_id(manager, parsed_args)
        answer = manager.sdk_connection.compute.get_server_console_output(
            server_id, length=parsed_args.lines)
        text = shown.text((answer or {}).get('output') or '').rstrip('\n')
        if text:
            self.app.stdout.write(text + '\n')
