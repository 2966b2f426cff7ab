# SPDX-License-Identifier: Apache-2.0
"""openstack clickos secret create | list | show | delete."""

from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import files
from clickos_osc import formatting

_COLUMNS = ('ID', 'Name', 'Reference', 'Created')


class CreateSecret(command.ShowOne):
    """Keep a value that only guests get.

    A handler write, or a property of a VNF, names the reference instead of
    the value. No command shows the value again.

    Examples:
      openstack clickos secret create vpn-key wg.key
      wg genkey | openstack clickos secret create vpn-key -
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        parser = super().get_parser(prog_name)
        parser.add_argument('name', metavar='<name>',
                            help='1 to 64 letters, digits, ".", "_" or "-"')
        parser.add_argument('file', metavar='<file>',
                            help='File with the value, "-" for standard'
                            ' input; a line end at its end is left out')
        return parser

    def take_action(self, parsed_args):
        """Make it and show its reference."""
        value = files.text(parsed_args.file).removesuffix('\n')
        with formatting.refusals():
            found = self.app.client_manager.clickos.create_secret(
                parsed_args.name, value)
        return _COLUMNS, _row(found)


class ListSecret(command.Lister):
    """List the secrets of the project, without their values.

    Example: openstack clickos secret list
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        with formatting.refusals():
            found = self.app.client_manager.clickos.list_secrets()
        return _COLUMNS, [_row(each) for each in found]


class ShowSecret(command.ShowOne):
    """Show a secret, without its value.

    Example: openstack clickos secret show vpn-key
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        return _with_secret(super().get_parser(prog_name))

    def take_action(self, parsed_args):
        """Ask and return columns and values."""
        return _COLUMNS, _row(_find(self.app.client_manager.clickos,
                                    parsed_args.secret))


class DeleteSecret(command.Command):
    """Delete a secret that no guest's desired state refers to.

    Example: openstack clickos secret delete vpn-key
    """

    def get_parser(self, prog_name):
        """Add the arguments."""
        return _with_secret(super().get_parser(prog_name))

    def take_action(self, parsed_args):
        """Find and delete it."""
        client = self.app.client_manager.clickos
        found = _find(client, parsed_args.secret)
        with formatting.refusals():
            client.delete_secret(found['id'])


def _with_secret(parser):
    parser.add_argument('secret', metavar='<secret>', help='Name or id')
    return parser


def _find(client, wanted):
    """Return the one secret of this id or name.

    :raises exceptions.CommandError: if there is none, or several
    """
    with formatting.refusals():
        found = client.list_secrets()
    for key in ('id', 'name'):
        chosen = [each for each in found if each[key] == wanted]
        if len(chosen) == 1:
            return chosen[0]
        if chosen:
            raise exceptions.CommandError(
                f'{formatting.line(wanted)}: several secrets have this'
                ' name; use'
                ' the id')
    raise exceptions.CommandError(f'{formatting.line(wanted)}: no such secret')


def _row(secret):
    return (secret['id'], formatting.line(secret['name']), secret['reference'],
            secret['created_at'])
