# SPDX-License-Identifier: Apache-2.0
"""openstack clickos handler list | read | write."""

import fnmatch
import json
import sys

from cliff import columns
from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import files
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

graph = lazy.module('clickos_client.graph')
limits = lazy.module('clickos_client.limits')


class ListHandler(guest.EachGuestCommand, command.Lister):
    """List the handlers of a guest.

    Example: openstack clickos handler list --vnf edge-firewall

    Example: openstack clickos handler list --vnf edge-firewall --element
    fw

    Example: openstack clickos handler list --vnf edge-firewall --class
    Counter

    Example: openstack clickos handler list --vnf edge-firewall --all
    --element fw
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('--element', metavar='<element>',
                            help='List only the handlers of this element')
        parser.add_argument(
            '--class', dest='element_class', metavar='<class>',
            help='List only the handlers of elements of this class, such as'
                 ' Counter or IP*; the guest then counts as for graph')
        return parser

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        clickos = self.app.client_manager.clickos

        def rows_of(target):
            return [(formatting.line(each['name']), each['read'],
                     each['write'])
                    for each in _handlers(clickos, target, parsed_args)]
        return self.table(parsed_args, ('Handler', 'Read', 'Write'), rows_of)


def _handlers(clickos, target, args):
    """List the handlers of a guest that the arguments ask for."""
    with formatting.refusals():
        found = clickos.list_handlers(target)
    if args.element:
        found = [each for each in found if _element(each) == args.element]
    if args.element_class:
        names = _of_class(clickos, target, args.element_class)
        found = [each for each in found if _element(each) in names]
    return found


def _element(handler):
    return handler['name'].rpartition('.')[0]


def _of_class(clickos, target, pattern):
    """Return the names of the router's elements of a class."""
    with formatting.refusals():
        text = clickos.read(target, graph.HANDLER)
    try:
        elements = graph.parse(text).elements
    except ValueError as exc:
        raise exceptions.CommandError(f'The guest answers no graph: {exc}')
    return {element.name for element in elements
            if fnmatch.fnmatchcase(element.kind, pattern)}


class ReadHandler(guest.EachGuestCommand, command.ShowOne):
    """Read handlers of a guest and print their values.

    By default the values are printed as they are. With --all each guest of a
    VNF is read, and its short name stands before each handler.

    Example: openstack clickos handler read --vnf edge fw.config

    Example: openstack clickos handler read --vnf edge --all -f json
    passed.count

    Example: openstack clickos handler read --vnf edge-nat blocks.lookup
    203.0.113.7 4000

    Example: openstack clickos handler read --vnf edge-router
    "routes.lookup 192.0.2.1" "routes.lookup 198.51.100.1"
    """

    @property
    def formatter_default(self):
        """Print values, not a table."""
        return 'value'

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('handler', metavar='<handler>', nargs='+',
                            help=guest.PARAMETER_HELP)
        parser.add_argument(
            '--max-age', metavar='<seconds>', type=float,
            help='Take values that are at most this old, 0 to'
                 f' {limits.MAX_AGE_S}; else the guest answers')
        return parser

    def take_action(self, parsed_args):
        """Ask; return handlers and values."""
        manager, found = self.app.client_manager, {}
        for short, target in self.each(parsed_args):
            with formatting.refusals():
                values = guest.values(manager, target, parsed_args.handler,
                                      parsed_args.max_age)
            found.update((guest.led(short, name), value)
                         for name, value in values.items())
        return zip(*((formatting.line(name), Value(value))
                     for name, value in found.items()))

    def produce_output(self, parsed_args, column_names, data):
        """Print values under their names, if there are several."""
        if parsed_args.formatter not in ('value', 'json', 'yaml'):
            data = [value.human_readable() for value in data]
        if parsed_args.formatter != 'value':
            return super().produce_output(parsed_args, column_names, data)
        self.app.stdout.write(_as_text(dict(zip(column_names, data))))
        return 0


class Value(columns.FormattableColumn):
    """A value as the guest gave it; people see it escaped."""

    def human_readable(self):
        """Return what a terminal can show."""
        return formatting.text(self._value)


def _as_text(values):
    """Return the values, under their names if there are several."""
    texts = [(f'==> {name} <==\n' if len(values) > 1 else '')
             + value.human_readable().rstrip('\n') + '\n'
             for name, value in values.items()]
    return ''.join(texts)


class WriteHandler(guest.EachGuestCommand):
    """Write a handler of a guest; it keeps a value over a restart.

    A restart does not repeat commands, such as reset, and edits of tables,
    such as add and remove. The command says so. With --all each guest of a
    VNF gets the value, one after the other. The command continues after a
    refusal, and ends with exit status 1 then.

    Examples:
      openstack clickos handler write --vnf edge-firewall fw.config
      "allow icmp, deny all"
      openstack clickos handler write --vnf edge --all passed.reset ""
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        _add_format(parser)
        parser.add_argument('handler', metavar='<handler>',
                            help='ELEMENT.HANDLER, such as fw.config')
        parser.add_argument('value', metavar='<value>', nargs='?',
                            help='Value to write')
        parser.add_argument('--file', metavar='<file>',
                            help='Write the contents of this file instead;'
                                 ' - for standard input')
        parser.add_argument('--yes', action='store_true',
                            help='Do not ask before a handler "stop": it ends'
                                 ' the router, which forwards nothing until'
                                 ' its server is rebooted')
        return parser

    def take_action(self, parsed_args):
        """Write and say so."""
        value = _value(parsed_args)
        found = self.each(parsed_args)
        if not parsed_args.yes:
            _ask_before_stop(parsed_args.handler)
        refused = []
        for short, target in found:
            try:
                self._write(parsed_args, short, target, value)
            except exceptions.CommandError as exc:
                if not short:
                    raise
                refused.append(f'{short}: {exc}')
        if refused:
            raise exceptions.CommandError('\n'.join(refused))

    def _write(self, args, short, target, value):
        """Write to one guest and say so."""
        with formatting.refusals():
            revision = self.app.client_manager.clickos.write(
                target, args.handler, value)
        text = f'{guest.led(short, args.handler)}: {_said(revision)}'
        if args.format == 'json':
            text = json.dumps({
                **({'guest': short} if short else {}), 'revision': revision,
                'kept': not (revision.commands or revision.edits)})
        self.app.stdout.write(text + '\n')


def _said(revision):
    """Say what the guest did, and what its next start repeats."""
    if revision.commands:
        return 'done; a restart of the guest does not repeat it'
    if revision.edits:
        return ('accepted, but not kept: a restart of the guest begins'
                ' without this change')
    return f'accepted, revision {revision}'


def _ask_before_stop(name):
    """Ask a person before a router ends; refuse without a terminal."""
    if name.rpartition('.')[2] != 'stop':
        return
    effect = (f'{name}: the router ends and forwards nothing until its server'
              ' is rebooted')
    if not sys.stdin.isatty():
        raise exceptions.CommandError(f'{effect}; add --yes to do it')
    if input(f'{effect}. Stop it? [y/N] ').strip().lower() not in ('y', 'yes'):
        raise exceptions.CommandError(f'{name}: not written')


def _add_format(parser):
    parser.add_argument('-f', '--format', choices=('value', 'json'),
                        default='value',
                        help='Format of the output (default: value)')


def _value(args):
    """Return what is to be written."""
    if (args.value is None) == (args.file is None):
        raise exceptions.CommandError('Give either <value> or --file')
    return args.value if args.file is None else files.text(args.file)
