# SPDX-License-Identifier: Apache-2.0
"""openstack clickos package check."""

import re

from osc_lib.command import command
from osc_lib import exceptions

from clickos_osc import files

_PLACE = re.compile(r'(?P<file>[^\s:]+):(?P<line>[0-9]+): (?P<fault>.*)\Z',
                    re.DOTALL)
_MAX_BYTES = 4 * 1024 * 1024


class CheckPackage(command.Lister):
    """List what is wrong with a VNF package, before it is uploaded.

    The command asks no service. It ends with exit status 1 if the package
    has a fault.

    Example: openstack clickos package check firewall.csar
    """

    auth_required = False

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('file', metavar='<file>', help='The CSAR')
        return parser

    def take_action(self, parsed_args):
        """Return columns and rows."""
        found = _review(
            files.content(parsed_args.file, _MAX_BYTES, 'a package'))
        self._faults = len(found)
        return ('File', 'Line', 'Fault'), [_row(text) for text in found]

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


def _row(text):
    """Return file, line and fault of a line of the review."""
    place = _PLACE.match(text)
    return ((place['file'], int(place['line']), place['fault']) if place
            else ('', '', text))
