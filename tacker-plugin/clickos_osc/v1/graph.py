# SPDX-License-Identifier: Apache-2.0
"""openstack clickos graph."""

import time

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

graph = lazy.module('clickos_client.graph')
picture = lazy.module('clickos_client.picture')

_INTERVAL_S = (0.1, 10.0)
_COLUMNS = ('From', 'To', 'Kind', 'Packets/s', 'Bits/s', 'Packets', 'Bytes',
            'Drops at To')


class ShowGraph(guest.GuestCommand, command.Lister):
    """Show the connections of a guest's router with their rates.

    The guest counts while the command watches it.

    Example: openstack clickos graph --vnf edge-firewall --svg fw.svg
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--interval', metavar='<seconds>', type=float, default=1.0,
            help='Seconds to watch, 0.1 to 10, default 1')
        parser.add_argument('--svg', metavar='<file>',
                            help='Also draw the graph into this file')
        return parser

    def take_action(self, parsed_args):
        """Watch and return columns and rows."""
        if not _INTERVAL_S[0] <= parsed_args.interval <= _INTERVAL_S[1]:
            raise exceptions.CommandError(
                f'--interval {parsed_args.interval}: not between'
                f' {_INTERVAL_S[0]} and {_INTERVAL_S[1]} s')
        after, rates = self._watch(parsed_args)
        if parsed_args.svg:
            _save(parsed_args.svg, picture.svg(after, rates))
        drops = {e.name: e.drops for e in after.elements}
        return _COLUMNS, [
            (_end(c.origin), _end(c.target), 'pull' if c.pull else 'push',
             round(r.packets_s), round(r.bits_s), c.packets, c.bytes,
             drops[c.target[0]])
            for c, r in zip(after.connections, rates)]

    def _watch(self, args):
        """Return the second of two answers, and the rates between them."""
        manager = self.app.client_manager
        found = guest.find(manager, args)
        before = _read(manager, found)
        time.sleep(args.interval)
        after = _read(manager, found)
        rates = graph.rates(before, after)
        if rates is None:
            raise exceptions.CommandError(
                'The guest got another router meanwhile; try again')
        return after, rates


def _read(manager, found):
    with formatting.refusals():
        text = manager.clickos.read(found, graph.HANDLER)
    try:
        return graph.parse(text)
    except ValueError as exc:
        raise exceptions.CommandError(f'The guest answers no graph: {exc}')


def _end(end):
    return f'{formatting.line(end[0])} [{end[1]}]'


def _save(path, text):
    try:
        with open(path, 'w', encoding='utf-8') as target:
            target.write(text)
    except OSError as exc:
        raise exceptions.CommandError(f'{path}: {exc.strerror}')
