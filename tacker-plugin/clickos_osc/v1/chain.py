# SPDX-License-Identifier: Apache-2.0
"""openstack clickos chain create | list | show | insert | remove | ..."""

import contextlib
import time

from openstack import exceptions as sdk_exc
from osc_lib.cli import format_columns
from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy

chains = lazy.module('clickos_client.chains')
combiner = lazy.module('clickos_client.combiner')
fusion = lazy.module('clickos_client.fusion')
hops = lazy.module('clickos_osc.v1.hops')
nsd = lazy.module('clickos_osc.v1.nsd')

_INTERVAL_S = (0.1, 10.0)
_COUNTERS = ('packets', 'bytes', 'dropped')
_COLUMNS = ('Hop', 'Live', 'Packets/s', 'Bits/s', 'Drops/s', 'Packets',
            'Bytes', 'Drops', 'Loops')


class _ChainCommand(command.Command):
    """A command about one chain."""

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('chain', metavar='<chain>', help='Name or ID')
        return parser

    def take_action(self, parsed_args):
        """Find the chain and act."""
        with _refusals():
            network = self.app.client_manager.sdk_connection.network
            chain = chains.find(network, parsed_args.chain)
            return self.act(network, chain, parsed_args)

    def act(self, network, chain, parsed_args):
        """Do what the command is for."""
        raise NotImplementedError


class ListChain(command.Lister):
    """List the chains of the project.

    Example: openstack clickos chain list
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        network = self.app.client_manager.sdk_connection.network
        with _refusals():
            return ('ID', 'Name', 'Hops', 'Symmetric'), [
                (chain.id, formatting.line(chain.name),
                 _path(chains.hops(network, chain)),
                 bool(chain.chain_parameters.get('symmetric')))
                for chain in network.sfc_port_chains()]


class CreateChain(command.ShowOne):
    """Steer packets through VNFs or servers, in order.

    Answers take the hops in the opposite order. The hops have ports on one
    network.

    Example: openstack clickos chain create web --hop fw --hop ids1+ids2
    --classifier protocol=tcp,source-ip-prefix=10.0.0.0/24,destination-port=80

    Example: openstack clickos chain create web --nsd service.yaml
    --vnf firewall=edge-fw
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='<name>',
                            help='Name of the chain')
        parser.add_argument('--hop', metavar='<hop>', action='append',
                            default=[], help=hops.HOP_HELP)
        parser.add_argument(
            '--classifier', metavar='<classifier>', action='append',
            default=[], help=hops.CLASSIFIER_HELP)
        parser.add_argument(
            '--nsd', metavar='<file>',
            help='Take hops and classifiers from a TOSCA file, an NSD or a'
                 ' VNFFGD')
        parser.add_argument('--path', metavar='<node>',
                            help='Forwarding path of the file, if it has'
                                 ' several')
        parser.add_argument(
            '--vnf', metavar='<name>=<vnf>', action='append', default=[],
            help='VNF or server of a name in the file, by default of the'
                 ' same name')
        parser.add_argument('--one-way', action='store_true',
                            help='Answers bypass the hops')
        parser.add_argument('--fused', action='store_true',
                            help='Fuse the chain, as "chain fuse" does')
        _add_fusion(parser)
        return parser

    def take_action(self, parsed_args):
        """Make the chain and show it."""
        manager = self.app.client_manager
        network = manager.sdk_connection.network
        with _refusals():
            wanted, flows, is_fused = _wanted(manager, parsed_args)
            chain = chains.create(network, parsed_args.name, wanted, flows,
                                  not parsed_args.one_way)
            if is_fused:
                chain = self._fused(manager, network, chain, parsed_args)
            return _view(network, chain)

    def _fused(self, manager, network, chain, args):
        """Fuse a new chain and return it; delete it after a failure."""
        with contextlib.ExitStack() as undo:
            undo.callback(chains.delete, network, chain)
            _fuse(manager, chain, args)
            undo.pop_all()
        return chains.find(network, chain.id)


def _wanted(manager, args):
    """Return the hops and classifiers of create, and if it is to fuse."""
    is_fused = args.fused
    if bool(args.hop) == bool(args.nsd):
        raise exceptions.CommandError('Give either --hop or --nsd')
    wanted = [hops.parse(manager, text) for text in args.hop]
    flows = [hops.classifier(manager, text) for text in args.classifier]
    if args.nsd:
        named = dict(text.partition('=')[::2] for text in args.vnf)
        parts, pairs, asked = nsd.read(args.nsd, args.path, named)
        is_fused = is_fused or asked
        wanted = [hops.resolve(manager, each) for each in parts]
        flows += [hops.flow(manager, each) for each in pairs]
    if not flows or not wanted:
        raise exceptions.CommandError(
            f'chain {formatting.line(args.name)}: needs a hop and a'
            ' --classifier')
    return wanted, flows, is_fused


class ShowChain(_ChainCommand, command.ShowOne):
    """Show what a chain matches, its hops in order, and their ports.

    Answers of a symmetric chain take the hops in the opposite order.

    Example: openstack clickos chain show web
    """

    def act(self, network, chain, args):
        """Return columns and values."""
        return _view(network, chain)


class SetChain(_ChainCommand, command.ShowOne):
    """Change the name of a chain, or which packets enter it.

    New classifiers replace the old ones, by one request. Packets
    that both select pass the hops throughout.

    Example: openstack clickos chain set web
    --classifier protocol=tcp,destination-port=443
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--name', metavar='<name>',
                            help='New name of the chain')
        parser.add_argument(
            '--classifier', metavar='<classifier>', action='append',
            default=[], help=hops.CLASSIFIER_HELP)
        return parser

    def act(self, network, chain, args):
        """Change it; return columns and values."""
        if not args.name and not args.classifier:
            raise exceptions.CommandError(
                f'chain {formatting.line(chain.name)}: nothing to change; give'
                ' --name or --classifier')
        manager = self.app.client_manager
        wanted = [hops.classifier(manager, text) for text in args.classifier]
        with _overlaps(chain):
            chains.change(network, chain, args.name, wanted)
        return _view(network, chains.find(network, chain.id))


class ShowChainStats(_ChainCommand, command.Lister):
    """List the hops of a chain with their rates and drops.

    The row "entered" counts the packets that entered the chain. Live: the
    guests of the hop that work, of all. Loops: frames that would have passed
    the hop again, or that it sent beyond the copies it declares; the switch
    drops them. A fused chain has one hop, which
    names the others and the server that has them.

    Example: openstack clickos chain stats web
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--interval', metavar='<seconds>', type=float, default=1.0,
            help='Seconds to watch, 0.1 to 10, default 1')
        return parser

    def act(self, network, chain, args):
        """Watch and return columns and rows."""
        if not _INTERVAL_S[0] <= args.interval <= _INTERVAL_S[1]:
            raise exceptions.CommandError(
                f'--interval {args.interval}: not between {_INTERVAL_S[0]}'
                f' and {_INTERVAL_S[1]} s')
        names = [hop.name for hop in chains.hops(network, chain)]
        before, start = self._read(chain), time.monotonic()
        time.sleep(args.interval)
        after, seconds = self._read(chain), time.monotonic() - start
        rows = [_row('entered', before, after, seconds)]
        rows += [_row(name, old, new, seconds) for name, old, new in zip(
            names, before['hops'], after['hops'])]
        return _COLUMNS, rows

    def _read(self, chain):
        with formatting.refusals():
            return self.app.client_manager.clickos.chain(chain.id)


class InsertHop(_ChainCommand):
    """Insert a hop into a live chain, without loss.

    Example: openstack clickos chain insert web ids --after fw
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('hop', metavar='<hop>', help=hops.HOP_HELP)
        place = parser.add_mutually_exclusive_group()
        place.add_argument('--before', metavar='<hop>',
                           help='Hop of the chain that follows')
        place.add_argument('--after', metavar='<hop>',
                           help='Hop of the chain that precedes, default the'
                                ' last one')
        return parser

    def act(self, network, chain, args):
        """Make the hop and give the chain its new list."""
        found = chains.hops(network, chain)
        place = len(found)
        if args.before or args.after:
            place = chains.find_hop(found, args.before or args.after)
            place += bool(args.after)
        groups = list(chain.port_pair_groups)
        with contextlib.ExitStack() as undo:
            groups.insert(place, chains.make_hop(
                network, *hops.parse(self.app.client_manager, args.hop),
                undo))
            chains.replace(network, chain, groups)
            undo.pop_all()


class RemoveHop(_ChainCommand):
    """Remove a hop from a live chain, without loss.

    Example: openstack clickos chain remove web ids
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('hop', metavar='<hop>',
                            help='Hop of the chain, by name or ID')
        return parser

    def act(self, network, chain, args):
        """Give the chain its new list."""
        groups = list(chain.port_pair_groups)
        del groups[chains.find_hop(chains.hops(network, chain), args.hop)]
        chains.replace(network, chain, groups)


class ReorderHops(_ChainCommand):
    """Change the order of a live chain's hops, without loss.

    Example: openstack clickos chain reorder web nat fw
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('hop', metavar='<hop>', nargs='+',
                            help='All hops of the chain in their new order')
        return parser

    def act(self, network, chain, args):
        """Give the chain its new list."""
        found = chains.hops(network, chain)
        places = [chains.find_hop(found, name) for name in args.hop]
        if sorted(places) != list(range(len(found))):
            raise exceptions.CommandError(
                f'chain {formatting.line(chain.name)}: name each of its hops'
                f' once: {_path(found)}')
        chains.replace(network, chain,
                       [chain.port_pair_groups[place] for place in places])


class FuseChain(_ChainCommand):
    """Let one new guest do the work of all hops of a live chain.

    The VNFs keep their servers, which rest, and connections go on. Handlers
    of each VNF are those in the new guest, and its writes hold at both. All
    hops are transparent, and have one guest with two ports. The program
    click-combine makes the configuration.

    Example: openstack clickos chain fuse web
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        _add_fusion(parser)
        return parser

    def act(self, network, chain, args):
        """Fuse, and tell the new server."""
        server = _fuse(self.app.client_manager, chain, args)
        self.app.stdout.write(f'{formatting.line(chain.name)}: fused in'
                              f' {formatting.line(server.name)}\n')


class UnfuseChain(_ChainCommand):
    """Let the guests of a fused chain's hops do their work again.

    Connections go on. After a failure, the command can be given again.

    Example: openstack clickos chain unfuse web
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--drop-flows', action='store_true',
            help='Connections end; needed if the fused guest is gone')
        return parser

    def act(self, network, chain, args):
        """Unfuse."""
        with formatting.refusals():
            fusion.unfuse(_cloud(self.app.client_manager), chain,
                          args.drop_flows)


class DeleteChain(_ChainCommand):
    """Delete a chain, and its hops unless another chain has them.

    Example: openstack clickos chain delete web
    """

    def act(self, network, chain, args):
        """Delete."""
        chains.delete(network, chain)


def _add_fusion(parser):
    parser.add_argument(
        '--flavor', metavar='<flavor>',
        help='Flavor of the fused guest, by default the largest of the hops')
    parser.add_argument(
        '--program', metavar='<path>', default=combiner.PROGRAM,
        help=f'The combining program (default: {combiner.PROGRAM})')


def _fuse(manager, chain, args):
    """Fuse a chain; return the server."""
    flavor = args.flavor and manager.sdk_connection.compute.find_flavor(
        args.flavor, ignore_missing=False).id
    try:
        with formatting.refusals():
            return fusion.fuse(_cloud(manager), chain, flavor, args.program)
    except combiner.CombinerError as exc:
        raise exceptions.CommandError(
            f'{formatting.text(str(exc))}; "make click" builds the program,'
            ' and'
            ' --program names another one')


def _cloud(manager):
    connection = manager.sdk_connection
    return fusion.Cloud(connection.network, connection.compute,
                        connection.image, manager.clickos)


@contextlib.contextmanager
def _overlaps(chain):
    """Say what helps if Neutron refuses classifiers next to the chain's own.
    """
    try:
        yield
    except sdk_exc.HttpException as exc:
        text = str(getattr(exc, 'details', None) or exc)
        if not any(key in text for key in chain.flow_classifiers):
            raise
        raise exceptions.CommandError(formatting.text(
            f'{text}; that one is of the chain itself. Neutron accepts both'
            ' if the operator sets the service plugin vale_flow_classifier'
            ' instead of flow_classifier'))


@contextlib.contextmanager
def _refusals():
    """Show refusals as openstackclient shows errors."""
    try:
        yield
    except chains.ChainError as exc:
        raise exceptions.CommandError(formatting.text(str(exc)))
    except sdk_exc.SDKException as exc:
        raise exceptions.CommandError(
            formatting.text(getattr(exc, 'details', None) or str(exc)))


def _view(network, chain):
    """Return columns and values of a chain."""
    found = chains.hops(network, chain)
    described = chains.described(network, chain)
    return zip(*(
        ('id', chain.id),
        ('name', formatting.line(chain.name)),
        ('network', formatting.line(described['network'])),
        ('direction', formatting.line(described['direction'])),
        ('classifiers', format_columns.ListColumn(
            [formatting.line(text) for text in described['classifiers']])),
        ('hops', _path(found)),
        ('ports', format_columns.ListDictColumn(
            [_pair(hop, pair) for hop in found for pair in hop.pairs])),
        ('fused', any(chains.is_fused(hop.group) for hop in found))))


def _pair(hop, pair):
    return {'hop': formatting.line(hop.name),
            'guest': formatting.line(pair.name),
            'ingress': pair.ingress, 'egress': pair.egress}


def _path(found):
    return ', '.join(formatting.line(hop.name) for hop in found)


def _row(name, before, after, seconds):
    packets, octets, drops = (
        max(0, after[key] - before[key]) / seconds for key in _COUNTERS)
    live = (f'{after["live_pairs"]}/{after["pairs"]}'
            if 'pairs' in after else '')
    return (formatting.line(name), live, round(packets), round(8 * octets),
            round(drops), *(after[key] for key in _COUNTERS),
            after.get('looped', 0))
