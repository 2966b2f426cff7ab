# SPDX-License-Identifier: Apache-2.0
"""openstack clickos handler list | read | write."""

import sys

from osc_lib.command import command
from osc_lib import exceptions

from clickos_osc import shown
from clickos_osc.v1 import guest


class ListHandler(command.Lister):
    """List the handlers of a guest.

    Example: openstack clickos handler list --vnf edge-firewall
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        guest.add_arguments(parser)
        return parser

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        manager = self.app.client_manager
        with shown.refusals():
            found = manager.clickos.list_handlers(
                guest.find(manager, parsed_args))
        return (('Handler', 'Read', 'Write'),
                [(shown.line(each['name']), each['read'], each['write'])
                 for each in found])


class ReadHandler(command.Command):
    """Read a handler of a guest and print its value.

    Example: openstack clickos handler read --vnf edge-firewall fw.config
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        guest.add_arguments(parser)
        parser.add_argument('handler', metavar='<handler>',
                            help='ELEMENT.HANDLER, such as fw.config')
        return parser

    def take_action(self, parsed_args):
        """Ask and print."""
        manager = self.app.client_manager
        with shown.refusals():
            value = manager.clickos.read(guest.find(manager, parsed_args),
                                         parsed_args.handler)
        self.app.stdout.write(shown.text(value).rstrip('\n') + '\n')


class WriteHandler(command.Command):
    """Write a handler of a guest; it keeps the value over a restart.

    Example: openstack clickos handler write --vnf edge-firewall fw.config
    "allow icmp, deny all"
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        guest.add_arguments(parser)
        parser.add_argument('handler', metavar='<handler>',
                            help='ELEMENT.HANDLER, such as fw.config')
        parser.add_argument('value', metavar='<value>', nargs='?',
                            help='Value to write')
        parser.add_argument('--file', metavar='<file>',
                            help='Write the contents of this file instead;'
                                 ' - for standard input')
        return parser

    def take_action(self, parsed_args):
        """Write and say so."""
        manager = self.app.client_manager
        value = _value(parsed_args)
        with shown.refusals():
            revision = manager.clickos.write(
                guest.find(manager, parsed_args), parsed_args.handler, value)
        self.app.stdout.write(f'{parsed_args.handler}: accepted, revision'
                              f' {revision}\n')


def _value(args):
    """Return what is to be written."""
    if (args.value is None) == (args.file is None):
        raise exceptions.CommandError('Give either <value> or --file')
    if args.file is None:
        return args.value
    if args.file == '-':
        return sys.stdin.read()
    try:
        with open(args.file, encoding='utf-8') as source:
            return source.read()
    except (OSError, UnicodeDecodeError) as exc:
        raise exceptions.CommandError(f'{args.file}: {exc}')
