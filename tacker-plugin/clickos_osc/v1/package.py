# SPDX-License-Identifier: Apache-2.0
"""openstack clickos package check."""

import re

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import files
from clickos_osc import formatting
from clickos_osc import lazy

checker = lazy.module('clickos_osc.checker')

_PLACE = re.compile(r'(?P<file>[^\s:]+):(?P<line>[0-9]+): (?P<fault>.*)\Z',
                    re.DOTALL)
_MAX_BYTES = 4 * 1024 * 1024


class CheckPackage(command.Lister):
    """List what is wrong with a VNF package, before it is uploaded.

    The command asks no service. It ends with exit status 1 if the package
    has a fault. With --click it also tries the Click configurations, by the
    program click-check and with example values.

    Examples:
      openstack clickos package check firewall.csar
      openstack clickos package check --click firewall.csar
    """

    auth_required = False

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>', help='The CSAR')
        parser.add_argument('--click', action='store_true',
                            help='Check the Click configurations too')
        parser.add_argument(
            '--program', metavar='<path>', default=checker.PROGRAM,
            help=f'The checking program (default: {checker.PROGRAM})')
        return parser

    def take_action(self, parsed_args):
        """Return columns and rows."""
        content = files.content(parsed_args.file, _MAX_BYTES, 'a package')
        rows = [_row(text) for text in _review(content)]
        if parsed_args.click and not rows:
            rows = _of_click(content, parsed_args.program)
        self._faults = len(rows)
        return ('File', 'Line', 'Fault'), rows

    def run(self, parsed_args):
        """Show the faults; the exit status tells whether there are any."""
        return super().run(parsed_args) or int(self._faults > 0)


def _review(content):
    try:
        from tacker_clickos.package import review
    except ImportError as exc:
        raise exceptions.CommandError(
            f'package check needs the Python package tacker: {exc}')
    return review.faults(content)


def _of_click(content, program):
    """Return the rows of what a guest would refuse."""
    from tacker_clickos.package import examples
    return [_row_of_click(example.vdu, text)
            for example in examples.of_package(content)
            for text in checker.faults(program, example.text, example.vifs)]


def _row_of_click(vdu, text):
    place = checker.PLACE.match(text)
    if place is None:
        return '', '', f'{vdu}: {formatting.line(text)}'
    return (place['file'], int(place['line']),
            f'{vdu}: column {place["column"]}:'
            f' {formatting.line(place["fault"])}')


def _row(text):
    """Return file, line and fault of a line of the review."""
    place = _PLACE.match(text)
    return ((place['file'], int(place['line']), place['fault']) if place
            else ('', '', text))
