# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf show."""

from clickos_client import api
from osc_lib.cli import format_columns
from osc_lib.command import command

from clickos_osc import shown
from clickos_osc import tacker
from clickos_osc.v1 import guest

_COUNTERS = ('rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes')


class ShowVnf(command.ShowOne):
    """Show a VNF with its guests, their ports and counters, the last error.

    The status is new, working, active, degraded (a guest does not run) or
    failed (the last operation). The counters are those of the switch; rx
    counts frames that the guest sent. Outputs are the values that the
    descriptor names, read from each guest.

    Example: openstack clickos vnf show edge-firewall -f json
    """

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>',
                            help='Name or ID of a VNF instance of Tacker')
        return parser

    def take_action(self, parsed_args):
        """Ask Tacker and clickos-api; return columns and values."""
        manager = self.app.client_manager
        source = tacker.Tacker(manager)
        found = source.vnf(guest.only_vnf(source.ids(parsed_args.vnf),
                                          parsed_args.vnf))
        ports = [row for each in found.guests
                 for row in _ports(manager.clickos, found, each)]
        outputs = [row for each in found.guests
                   for row in _outputs(manager.clickos, found, each)]
        operation = found.operation
        return zip(*(
            ('id', found.id),
            ('name', shown.line(found.name)),
            ('description', shown.line(found.description)),
            ('vnfd_id', found.vnfd_id),
            ('product', shown.line(found.product)),
            ('flavour', shown.line(found.flavour)),
            ('status', found.status),
            ('scale', format_columns.DictColumn(dict(found.scale))),
            ('guests', format_columns.ListDictColumn(
                [_guest(each) for each in found.guests])),
            ('ports', format_columns.ListDictColumn(ports)),
            ('outputs', format_columns.ListDictColumn(outputs)),
            ('properties', format_columns.DictColumn(
                {name: shown.text(value) for name, value
                 in found.shown_properties.items()})),
            ('last_update', shown.line(
                str(found.verdict.get('verdict') or ''))),
            ('last_operation', f'{operation.name} {operation.state}'
             if operation else ''),
            ('last_error', shown.text(_error(found)))))


def _guest(each):
    return {'vnfc': each.id, 'vdu': shown.line(each.vdu),
            'server': each.server_id, 'state': shown.line(each.state)}


def _ports(clickos, found, each):
    """Return a row for each port of a guest, or one that says why not."""
    try:
        ports = clickos.list_ports(api.Vnf(found.id, each.id))
    except api.ClickOSError as exc:
        return [{'vdu': shown.line(each.vdu),
                 'error': shown.line(exc.message)}]
    return [{'vdu': shown.line(each.vdu), 'port': port['id'],
             'mac': shown.line(port['mac_address']),
             'link': 'up' if port['link_up'] else 'down',
             **{name: port['counters'].get(name, 0) for name in _COUNTERS},
             'dropped': sum(count for name, count in port['counters'].items()
                            if name.startswith('dropped_'))}
            for port in ports]


def _outputs(clickos, found, each):
    """Return a row for each output of a guest, or one that says why not."""
    outputs = found.outputs_of(each.vdu)
    try:
        values = clickos.read_many(api.Vnf(found.id, each.id),
                                   outputs.values()) if outputs else {}
    except api.ClickOSError as exc:
        values = dict.fromkeys(outputs.values(), exc)
    return [{'vnfc': each.id, 'vdu': shown.line(each.vdu),
             'output': shown.line(name), **_output(values[handler])}
            for name, handler in outputs.items()]


def _output(value):
    if isinstance(value, api.ClickOSError):
        return {'error': shown.line(value.message)}
    return {'value': shown.line(value.strip())}


def _error(found):
    """Return what went wrong last, with the place if it has one."""
    operation = found.operation
    if operation and operation.failed:
        return operation.reason
    return found.refusal or (
        found.reason if found.status == 'degraded' else '')
