# SPDX-License-Identifier: Apache-2.0
"""openstack clickos config show | check | diff | replace."""

import difflib
import json
import logging
import os
import re


from clickos_osc import command
from clickos_osc import files
from clickos_osc import formatting
from clickos_osc import lazy
from clickos_osc.v1 import guest

checker = lazy.module('clickos_osc.checker')

LOG = logging.getLogger(__name__)

_HANDLER = 'config'
_TROUBLE = 2
_NAME_LENGTH = 64


class ShowConfig(guest.EachGuestCommand):
    """Print the Click configuration that a guest runs.

    The text has no handler writes, which state show lists.

    Examples:
      openstack clickos config show my-firewall > fw.click
      openstack clickos config show --vnf edge-firewall --all
    """

    def take_action(self, parsed_args):
        """Ask and print; of several guests under their names."""
        manager = self.app.client_manager
        for short, target in self.each(parsed_args):
            text = formatting.text(running(manager, target)).rstrip('\n')
            self.app.stdout.write(
                (f'==> {short} <==\n' if short else '') + text + '\n')


class CheckConfig(command.Lister):
    """List what is wrong with a Click configuration, before a guest has it.

    The command asks no service. It runs the program click-check, which has
    the element classes of a guest. It ends with exit status 1 if the
    configuration has a fault.

    Examples:
      openstack clickos config check fw.click
      openstack clickos config check fw.click --vifs 2 --define LEFT_VIF=0
      openstack clickos config show my-firewall | openstack clickos config
      check -
    """

    auth_required = False

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>',
                            help='The configuration; - for standard input')
        parser.add_argument(
            '--define', metavar='<name>=<value>', action='append', default=[],
            help='Value of a variable, such as those that a VNFD defines; may'
                 ' be repeated')
        parser.add_argument('--vifs', metavar='<count>', type=int, default=16,
                            help='Interfaces of the guest, default 16')
        parser.add_argument(
            '--program', metavar='<path>', default=checker.PROGRAM,
            help=f'The checking program (default: {checker.PROGRAM})')
        return parser

    def take_action(self, parsed_args):
        """Return columns and rows."""
        self._faults = checker.faults(
            parsed_args.program, files.text(parsed_args.file),
            parsed_args.vifs, parsed_args.define)
        return ('File', 'Line', 'Column', 'Fault'), [
            _row(parsed_args.file, text) for text in self._faults]

    def run(self, parsed_args):
        """Show the faults; the exit status tells whether there are any."""
        return super().run(parsed_args) or int(bool(self._faults))


class DiffConfig(guest.GuestCommand):
    """Compare the configuration that a guest runs with a file.

    The output is a unified difference. The exit status is 0 if there is
    none, 1 if there is one, and 2 if the two cannot be compared.

    Example: openstack clickos config diff my-firewall fw.click
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>',
                            help='The configuration; - for standard input')
        return parser

    def run(self, parsed_args):
        """Show the difference; the exit status is that of diff."""
        try:
            return super().run(parsed_args)
        except Exception as exc:
            LOG.debug('Not compared', exc_info=True)
            LOG.error('%s', exc)
            return _TROUBLE

    def take_action(self, parsed_args):
        """Ask, print, and return whether there is a difference."""
        manager = self.app.client_manager
        wanted = files.text(parsed_args.file)
        target = guest.find(manager, parsed_args)
        found = running(manager, target)
        lines = list(difflib.unified_diff(
            found.splitlines(), wanted.splitlines(),
            formatting.line(parsed_args.guest), parsed_args.file, lineterm=''))
        self.app.stdout.write(''.join(formatting.line(each) + '\n'
                                      for each in lines))
        return int(bool(lines))


class ReplaceConfig(guest.GuestCommand):
    """Replace the Click configuration of a running guest.

    Elements of the same name and class keep queues, counters and flows. The
    file replaces the handler writes too, and survives restarts. If the guest
    refuses it, the old configuration continues, and the error names line and
    column. The configuration of a VNF belongs to its descriptor.

    Example: openstack clickos config replace my-firewall fw.click
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>',
                            help='The configuration; - for standard input')
        parser.add_argument('-f', '--format', choices=('value', 'json'),
                            default='value',
                            help='Format of the output (default: value)')
        return parser

    def take_action(self, parsed_args):
        """Replace and say so."""
        manager = self.app.client_manager
        text = files.text(parsed_args.file)
        with formatting.refusals():
            revision = manager.clickos.replace_config(
                guest.find(manager, parsed_args), text,
                _name(parsed_args.file))
        answer = (f'{formatting.line(parsed_args.guest)}: replaced, revision'
                  f' {revision}')
        if parsed_args.format == 'json':
            answer = json.dumps({'revision': revision})
        self.app.stdout.write(answer + '\n')


def _name(path):
    """Return the name of a configuration in the guest's messages."""
    name = re.sub(r'[^A-Za-z0-9_.-]', '_', os.path.basename(path))
    return 'config' if path == '-' else name[-_NAME_LENGTH:]


def running(manager, target):
    """Return the text of the configuration that a guest runs."""
    with formatting.refusals():
        return manager.clickos.read(target, _HANDLER)


def _row(path, text):
    """Return file, line, column and fault of a line of the program."""
    place = checker.PLACE.match(text)
    if place is None:
        return path, '', '', formatting.line(text)
    return (path, int(place['line']), int(place['column']),
            formatting.line(place['fault']))
