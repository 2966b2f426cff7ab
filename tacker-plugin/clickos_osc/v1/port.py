# SPDX-License-Identifier: Apache-2.0
"""openstack clickos port stats."""

from osc_lib.cli import format_columns

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc.v1 import guest

_DROPPED = 'dropped_'
_COLUMNS = ('Port', 'MAC Address', 'Link', 'Sent Packets', 'Sent Bytes',
            'Received Packets', 'Received Bytes', 'Dropped')


class ShowPortStats(guest.EachGuestCommand, command.Lister):
    """List what the switch counted at the ports of a guest.

    Sent counts the frames of the guest. Dropped counts by reason.
    Port security drops as spoof, type, role, hidden and link_control.
    Security groups drop as filter, and QoS policies drop as rate.
    A slow receiver makes drops of the reason full.
    A frame to an address of no port is unknown.

    Examples:
      openstack clickos port stats --vnf edge-firewall
      openstack clickos port stats --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        clickos = self.app.client_manager.clickos

        def rows_of(target):
            with formatting.refusals():
                return [_row(port) for port in clickos.list_ports(target)]
        return self.table(parsed_args, _COLUMNS, rows_of)


def _row(port):
    counters = port['counters']
    dropped = {name.removeprefix(_DROPPED): count
               for name, count in sorted(counters.items())
               if name.startswith(_DROPPED) and count}
    return (port['id'], port['mac_address'],
            'up' if port['link_up'] else 'down',
            *(counters.get(name, 0) for name in (
                'rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes')),
            format_columns.DictColumn(dropped))
