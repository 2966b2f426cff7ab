# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf list | show | set."""

import contextlib
import dataclasses

from osc_lib.cli import format_columns
from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest
from clickos_osc.v1 import lifecycle
from clickos_osc import waiting

api = lazy.module('clickos_client.api')
chains = lazy.module('clickos_client.chains')
connections = lazy.module('clickos_client.connections')
networks = lazy.module('clickos_osc.networks')
packages = lazy.module('clickos_osc.packages')
properties = lazy.module('clickos_osc.properties')
tacker = lazy.module('clickos_osc.tacker')
vnf = lazy.module('clickos_client.vnf')

_COUNTERS = ('rx_packets', 'rx_bytes', 'tx_packets', 'tx_bytes')


class ListVnf(command.Lister):
    """List the VNFs of the project with their addresses.

    Example: openstack clickos vnf list
    """

    def take_action(self, parsed_args):
        """Ask Tacker and Neutron; return columns and rows."""
        manager = self.app.client_manager
        vnfs = tacker.Tacker(manager).vnfs()
        network = manager.sdk_connection.network
        project_id = network.get_project_id()
        ports = [port for port in network.ports(project_id=project_id)
                 if port.project_id == project_id]
        return ('ID', 'Name', 'Status', 'Product', 'Guests', 'Addresses'), [
            (each.id, formatting.line(each.name), each.status,
             formatting.line(each.product), len(each.guests),
             format_columns.ListColumn([
                 address for port in connections.of_vnf(each.id, (), ports,
                                                        {})
                 for address in port.addresses]))
            for each in vnfs]


class ShowVnf(command.ShowOne):
    """Show a VNF with its guests, their ports and counters, the last error.

    The status is new, working, active, degraded (a guest does not run) or
    failed (the last operation). Ports have connection point, network and
    addresses. Levels are those of scaling. The counters are those of the
    switch; rx counts frames that the guest sent. Outputs are the values that
    the descriptor names, read from each guest. Hosts are those that Nova
    tells the user: names for administrators, else an ID for each host.

    Example: openstack clickos vnf show edge -f json
    """

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>', help='Name or ID of a VNF')
        return parser

    def take_action(self, parsed_args):
        """Ask Tacker, Neutron, Nova and clickos-api."""
        manager = self.app.client_manager
        source = tacker.Tacker(manager)
        return view(manager, source, guest.only_vnf(
            source.ids(parsed_args.vnf), parsed_args.vnf))


class SetVnf(lifecycle.Progress, command.ShowOne):
    """Change properties, networks, package or description of a VNF.

    Properties with a handler change while the guests run. A change of
    networks replaces the guests; a new package takes effect at the next heal.
    Without --wait the command waits only for what its next step needs.

    Example: openstack clickos vnf set edge --property rules="allow all"
    --wait

    Example: openstack clickos vnf set edge --network right=dmz,ip=10.0.3.1
    --wait

    Example: openstack clickos vnf set edge --package other.csar --wait
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('vnf', metavar='<vnf>', help='Name or ID of a VNF')
        parser.add_argument('--property', metavar='<name>=<value>',
                            action='append', default=[],
                            help=properties.HELP)
        parser.add_argument('--description', metavar='<text>',
                            help='What the VNF is for')
        parser.add_argument('--network', metavar=networks.METAVAR,
                            action='append', default=[], help=networks.HELP)
        parser.add_argument('--package', metavar='<package>',
                            help='File, package of Tacker or of the catalog;'
                                 ' the guests have it after "vnf heal"')
        waiting.add_options(parser)
        return parser

    def take_action(self, parsed_args):
        """Check all, then change; return columns and values."""
        manager = self.app.client_manager
        source = tacker.Tacker(manager)
        found, = guest.find_vnfs(source, [parsed_args.vnf])
        changes, links, package = _changes(manager, source, found,
                                           parsed_args)
        with contextlib.ExitStack() as undo:
            if package is not None:
                changes['vnfdId'] = _onboarded(source, package, undo)
            begun = changes and source.modify(found.id, **changes)
            undo.pop_all()
        if changes:
            self._modified(source, found, begun, changes, parsed_args,
                           bool(links))
        if links:
            self._await(source, parsed_args, waiting.Started(
                found.id, found.name, 'CHANGE_EXT_CONN', source.start(
                    found.id, 'change_ext_conn', extVirtualLinks=links)))
        return view(manager, source, found.id)

    def _modified(self, source, found, operation_id, changes, args,
                  is_first):
        """See the end of a change; another one may follow."""
        self._await(source, args, waiting.Started(
            found.id, found.name, 'MODIFY_INFO', operation_id), is_first)
        refusal = source.vnf(found.id).refusal
        if (args.wait or is_first) and 'metadata' in changes and refusal:
            raise exceptions.CommandError(
                f'{formatting.line(found.name)}: the update is refused:'
                f' {formatting.text(refusal)}')

    def _await(self, source, args, begun, is_first=False):
        if args.wait or is_first:
            self.waiter(source, args).one(begun)


def _onboarded(source, package, undo):
    """Return the VNFD's id; on-board the package if it is new.

    :param undo: an ExitStack that deletes a package of which no VNF is made
    """
    if package.id:
        return package.vnfd_id
    package_id, vnfd_id = packages.onboard(source, package)
    undo.callback(source.delete_package, package_id)
    return vnfd_id


def view(manager, source, vnf_id):
    """Return columns and values of a VNF."""
    found = source.vnf(vnf_id)
    connected = _connected(manager, found)
    ports = [row for each in found.guests
             for row in _ports(manager.clickos, found, each, connected)]
    outputs = [row for each in found.guests
               for row in _outputs(manager.clickos, found, each)]
    limits = [row for vdu in found.shared
              for row in _limits(manager.clickos, found, vdu)]
    operation = found.operation
    return zip(*(
        ('id', found.id),
        ('name', formatting.line(found.name)),
        ('description', formatting.line(found.description)),
        ('vnfd_id', found.vnfd_id),
        ('product', formatting.line(found.product)),
        ('flavour', formatting.line(found.flavour)),
        ('status', found.status),
        ('levels', format_columns.DictColumn(dict(found.scale))),
        ('guests', format_columns.ListDictColumn(
            [_guest(manager, each) for each in found.guests])),
        ('addresses', format_columns.DictListColumn(
            connections.by_point(connected))),
        ('ports', format_columns.ListDictColumn(ports)),
        ('outputs', format_columns.ListDictColumn(outputs)),
        ('limits', format_columns.ListDictColumn(limits)),
        ('properties', format_columns.DictColumn(
            {name: formatting.text(value) for name, value
             in found.shown_properties.items()})),
        ('last_update', formatting.line(
            str(found.verdict.get('verdict') or ''))),
        ('last_operation', f'{operation.name} {operation.state}'
         if operation else ''),
        ('last_error', formatting.text(_error(found)))))


def _changes(manager, source, found, args):
    """Return the body of the change, the links and the new package."""
    package, body, links = None, {}, []
    if args.package:
        package = packages.find(source, manager.clickos, args.package)
    if args.property or args.network:
        descriptor = (package or packages.of_vnf(
            source, found.vnfd_id)).descriptor
        values = properties.parse(descriptor['properties'], args.property)
        if values:
            body['metadata'] = {'clickos_properties': values}
        links = networks.links(manager, descriptor['connection_points'],
                               args.network, is_complete=False)
    if args.description is not None:
        body['vnfInstanceDescription'] = args.description
    if not body and not links and package is None:
        raise exceptions.CommandError(
            f'{formatting.line(found.name)}: nothing to change; give'
            ' --property,'
            ' --network, --package or --description')
    return body, links, package


def _connected(manager, found):
    """Return the VNF's connections; their texts are fit for a terminal."""
    network = manager.sdk_connection.network
    ports = chains.ports(network, chains.VNF_MARK + found.id)
    names = {each: network.get_network(each).name
             for each in {port.network_id for port in ports}}
    return [dataclasses.replace(each, point=formatting.line(each.point),
                                network=formatting.line(each.network))
            for each in connections.of_vnf(
                found.id, [guest.name for guest in found.guests], ports,
                names)]


def _guest(manager, each):
    row = {'name': formatting.line(each.name), 'vnfc': each.id,
           'vdu': formatting.line(each.vdu), 'server': each.server_id,
           'state': formatting.line(each.state)}
    server = manager.sdk_connection.compute.find_server(
        each.server_id, ignore_missing=True) if each.server_id else None
    if server is not None:
        row['host'] = formatting.line(
            getattr(server, 'compute_host', None)
            or getattr(server, 'host_id', None) or '')
    return row


def _ports(clickos, found, each, connected):
    """Return a row for each port of a guest, or one that says why not."""
    try:
        ports = clickos.list_ports(api.Vnf(found.id, each.id))
    except api.ClickOSError as exc:
        return [{'guest': formatting.line(each.name),
                 'error': formatting.line(exc.message)}]
    return [{'guest': formatting.line(each.name), 'port': port['id'],
             **_connection(connected, port['id']),
             'mac': formatting.line(port['mac_address']),
             'link': 'up' if port['link_up'] else 'down',
             **{name: port['counters'].get(name, 0) for name in _COUNTERS},
             'dropped': sum(count for name, count in port['counters'].items()
                            if name.startswith('dropped_'))}
            for port in ports]


def _connection(connected, port_id):
    """Return what Neutron says of a port, if it does."""
    found = next((each for each in connected if each.port_id == port_id),
                 None)
    return {} if found is None else {
        'connection_point': found.point, 'network': found.network,
        'addresses': list(found.addresses)}


def _outputs(clickos, found, each):
    """Return a row for each output of a guest, or one that says why not."""
    outputs = found.outputs_of(each.vdu)
    try:
        values = clickos.read_many(api.Vnf(found.id, each.id),
                                   outputs.values()) if outputs else {}
    except api.ClickOSError as exc:
        values = dict.fromkeys(outputs.values(), exc)
    return [{'vnfc': each.id, 'vdu': formatting.line(each.vdu),
             'output': formatting.line(name), **_output(values[handler])}
            for name, handler in outputs.items()]


def _limits(clickos, found, vdu):
    """Return a row for each limit that a VDU's guests share."""
    try:
        limits = clickos.limits(vnf.limits_group(found.id, vdu))
    except api.ClickOSError as exc:
        return [{'vdu': formatting.line(vdu),
                 'error': formatting.line(exc.message)}]
    names = {each.server_id: each.name for each in found.guests}
    return [{'vdu': formatting.line(vdu),
             'limit': formatting.line(each['name']),
             'total': each['total'], 'used': each['used'],
             'shares': ', '.join(
                 formatting.line(names.get(guest['server'], guest['server'])) +
                 f' {guest["share"]}{" silent" * guest["is_silent"]}'
                 for guest in each['guests'])}
            for each in limits]


def _output(value):
    if isinstance(value, api.ClickOSError):
        return {'error': formatting.line(value.message)}
    return {'value': formatting.line(value.strip())}


def _error(found):
    """Return what went wrong last, with the place if it has one."""
    operation = found.operation
    if operation and operation.failed:
        return operation.reason
    return found.refusal or (
        found.reason if found.status == 'degraded' else '')
