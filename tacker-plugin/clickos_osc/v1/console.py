# SPDX-License-Identifier: Apache-2.0
"""openstack clickos console."""

from osc_lib.cli import parseractions

from clickos_osc import formatting
from clickos_osc.v1 import guest


class ShowConsole(guest.EachGuestCommand):
    """Print what a guest wrote on its console.

    A guest prints its start, the errors of its configuration and the output
    of elements such as Print. A guest that died keeps its console until it
    starts again.

    Examples:
      openstack clickos console --vnf edge-firewall --lines 20
      openstack clickos console --vnf edge-firewall --all
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
        """Ask and print; of several guests under their names."""
        for short, server_id in self._servers(parsed_args):
            text = self._console(server_id, parsed_args.lines)
            if short or text:
                self.app.stdout.write(
                    (f'==> {short} <==\n' if short else '') + text + '\n')

    def _servers(self, args):
        """List (short name, id of a server)."""
        manager = self.app.client_manager
        if not args.all:
            return [('', guest.server_id(manager, args))]
        return [(formatting.line(each.name), each.server_id)
                for _, each in guest.guests(manager, args) if each.server_id]

    def _console(self, server_id, lines):
        compute = self.app.client_manager.sdk_connection.compute
        answer = compute.get_server_console_output(server_id, length=lines)
        return formatting.text((answer or {}).get('output') or '').rstrip('\n')
