# SPDX-License-Identifier: Apache-2.0
"""The bases of our commands: those of openstackclient, with examples.

The docstring of a command ends with its examples. Its help prints each of
them on a line of its own, so that they can be copied.
"""

import re

from osc_lib.command import command

_EXAMPLES = re.compile(r'\n\s*Examples?:', re.MULTILINE)


class _Help(command.Command):
    """Keeps the lines of examples, which cliff would fill."""

    def get_description(self):
        """Return what the command does."""
        return _EXAMPLES.split(super().get_description())[0].strip()

    def get_parser(self, prog_name):
        """Add the examples."""
        parser = super().get_parser(prog_name)
        _, *texts = _EXAMPLES.split(super().get_description())
        if texts:
            keep_lines(parser)
            parser.epilog = '\n'.join(('examples:', *(
                f'  {each}' for each in examples(texts))))
        return parser


class Command(_Help):
    """A command that prints what it wants."""


class Lister(_Help, command.Lister):
    """A command that prints rows."""


class ShowOne(_Help, command.ShowOne):
    """A command that prints an object."""


def examples(texts):
    """List the examples in texts, each on one line."""
    found = []
    for line in '\n'.join(texts).splitlines():
        line = line.strip().removesuffix('\\').strip()
        if ' openstack ' in f' {line}' or not found and line:
            found.append(line)
        elif line:
            found[-1] += f' {line}'
    return found


def keep_lines(parser):
    """Let a parser print its epilog as it is."""
    base = parser.formatter_class

    class Formatter(base):
        """Fills all texts but examples."""

        def _fill_text(self, text, width, indent):
            if text.startswith('examples:'):
                return text
            return super()._fill_text(text, width, indent)

    parser.formatter_class = Formatter
