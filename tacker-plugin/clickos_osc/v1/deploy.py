# SPDX-License-Identifier: Apache-2.0
"""openstack clickos vnf deploy."""

import contextlib

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import lifecycle
from clickos_osc.v1 import vnf as vnf_commands
from clickos_osc import waiting

networks = lazy.module('clickos_osc.networks')
packages = lazy.module('clickos_osc.packages')
properties = lazy.module('clickos_osc.properties')
tacker = lazy.module('clickos_osc.tacker')

_MAX_NAME = 255


class DeployVnf(lifecycle.Progress, command.ShowOne):
    """Deploy a VNF: on-board its package if needed, make and start it.

    The package is a file, one of Tacker (ID, VNFD ID or product), or one of
    the catalog. The command removes a deployment that fails. With --wait it
    sees the end and shows the addresses.

    Example: openstack clickos vnf deploy firewall --name edge
    --network left=left --network right=right,ip=10.10.2.21
    --property rules="allow icmp, deny all" --wait

    Example: openstack clickos vnf deploy firewall.csar --network left=left
    --network right=right --property rules=@rules.txt --wait
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('package', metavar='<package>',
                            help='File, package of Tacker or of the catalog')
        parser.add_argument('--name', metavar='<name>',
                            help='Name of the VNF, by default the package\'s')
        parser.add_argument('--description', metavar='<text>', default='',
                            help='What the VNF is for')
        parser.add_argument('--network', metavar=networks.METAVAR,
                            action='append', default=[], help=networks.HELP)
        parser.add_argument('--property', metavar='<name>=<value>',
                            action='append', default=[],
                            help=properties.HELP)
        parser.add_argument('--vim', metavar='<vim>',
                            help='Cloud, by name or ID; by default the'
                                 ' default VIM')
        waiting.add_options(parser)
        return parser

    def take_action(self, parsed_args):
        """Check all, then make all; return columns and values."""
        manager = self.app.client_manager
        source = tacker.Tacker(manager)
        package = packages.find(source, manager.clickos, parsed_args.package)
        name = _name(source, parsed_args.name or package.name)
        body = _body(manager, source, package.descriptor, parsed_args)
        with contextlib.ExitStack() as undo:
            vnfd_id = self._onboarded(source, package, undo)
            vnf_id = source.create(vnfd_id, name, parsed_args.description)
            undo.callback(self._undo, source.delete, vnf_id, 'VNF')
            begun = waiting.Started(
                vnf_id, name, 'INSTANTIATE',
                source.start(vnf_id, 'instantiate', **body))
            undo.callback(self._undo, _end, (source, begun), 'guests of VNF')
            self._wait(source, begun, parsed_args, undo)
            undo.pop_all()
        return vnf_commands.view(manager, source, vnf_id)

    def _onboarded(self, source, package, undo):
        """Return the VNFD's id; on-board the package if it is new."""
        if package.id:
            self.log_line(f'{formatting.line(package.name)}: package'
                          f' {package.id}')
            return package.vnfd_id
        package_id, vnfd_id = packages.onboard(source, package)
        undo.callback(self._undo, source.delete_package, package_id,
                      'package')
        self.log_line(f'{formatting.line(package.name)}: package {package_id}'
                      ' on-boarded')
        return vnfd_id

    def _wait(self, source, begun, args, undo):
        """Wait for the end, if wanted; keep all if it is not known."""
        if not args.wait:
            return
        try:
            operation = self.waiter(source, args).wait([begun])[begun]
        except BaseException:
            undo.pop_all()      # Tacker continues, and the text says so.
            raise
        if operation.state != 'COMPLETED':
            reason = formatting.text(operation.reason) \
                or 'Tacker gives no reason'
            raise exceptions.CommandError(
                f'{begun} {operation.state}: {reason}')

    def _undo(self, remove, what, kind):
        """Remove what was made; say what stays if that fails."""
        try:
            remove(*what) if isinstance(what, tuple) else remove(what)
        except Exception as exc:
            key = what[1].vnf_id if isinstance(what, tuple) else what
            how = (f'openstack vnf package delete {key}' if kind == 'package'
                   else f'openstack clickos vnf delete --force {key}')
            self.app.stderr.write(
                f'{kind} {key} stays: {formatting.text(str(exc))}; "{how}"'
                ' removes'
                ' it\n')


def _end(source, begun):
    """Give up an instantiation that failed."""
    last = source.operation(begun.vnf_id, begun.id)
    if last is not None and last.state == 'FAILED_TEMP':
        source.decide(last.id, 'fail')


def _name(source, name):
    """Return a name that no VNF of the project has."""
    if not name or len(name) > _MAX_NAME or not name.isprintable():
        raise exceptions.CommandError(
            f'--name {formatting.line(name[:64])}: expected 1 to {_MAX_NAME}'
            ' printable characters')
    ids = source.ids(name)
    if ids:
        raise exceptions.CommandError(
            f'--name {formatting.line(name)}: VNF {", ".join(ids)} has this'
            ' name;'
            ' choose another one')
    return name


def _body(manager, source, descriptor, args):
    """Return the request that instantiates."""
    found = properties.parse(descriptor['properties'], args.property)
    properties.require_complete(descriptor['properties'], found)
    body = {
        'flavourId': descriptor['flavour'],
        'extVirtualLinks': networks.links(
            manager, descriptor['connection_points'], args.network),
        'vimConnectionInfo': [{'id': 'vim', 'vimType': 'openstack',
                               'vimId': _vim(source.vims(), args.vim)}]}
    if found:
        body['additionalParams'] = {'clickos_properties': found}
    return body


def _vim(vims, wanted):
    """Return the id of a VIM."""
    found = [vim['id'] for vim in vims
             if wanted in (None, vim['id'], vim['name'])]
    if not found or wanted and len(found) > 1:
        names = ', '.join(f'{vim["name"]} {vim["id"]}' for vim in vims)
        raise exceptions.CommandError(formatting.line(
            f'--vim {wanted or ""}: expected one of: {names or "none"}'))
    return found[0]
