# SPDX-License-Identifier: Apache-2.0
"""openstack clickos catalog list | show."""

from osc_lib.cli import format_columns
from osc_lib import exceptions

from clickos_osc import command
from clickos_osc import formatting
from clickos_osc import lazy

descriptor_reader = lazy.module('clickos_client.descriptor_reader')
packages = lazy.module('clickos_osc.packages')


class ListCatalog(command.Lister):
    """List the packages of the operator's catalog.

    Example: openstack clickos catalog list
    """

    def take_action(self, parsed_args):
        """Ask and return columns and rows."""
        with formatting.refusals():
            found = self.app.client_manager.clickos.list_catalog()
        return ('Name', 'Product', 'Version', 'Provider', 'Description'), [
            tuple(formatting.line(each[key]) for key in (
                'name', 'product', 'version', 'provider', 'description'))
            for each in found]


class ShowCatalog(command.ShowOne):
    """Show what a package of the catalog needs: networks and properties.

    Example: openstack clickos catalog show firewall
    """

    def get_parser(self, prog_name):
        """Add the argument."""
        parser = super().get_parser(prog_name)
        parser.add_argument('package', metavar='<package>',
                            help='Name in the catalog')
        return parser

    def take_action(self, parsed_args):
        """Get the package; return columns and values."""
        name = parsed_args.package
        content = packages.from_catalog(self.app.client_manager.clickos, name)
        if content is None:
            raise exceptions.CommandError(
                f'{formatting.line(name[:64])}: no such package in the'
                ' catalog')
        with packages.damages(name):
            found = descriptor_reader.read(content)
            product = descriptor_reader.product(content)
        points = [each['name'] for each in found['connection_points']
                  if not each['internal']]
        return zip(*(
            ('name', formatting.line(name)),
            ('product', formatting.line(product[0])),
            ('provider', formatting.line(product[1])),
            ('version', formatting.line(product[2])),
            ('description', formatting.line(found['description'])),
            ('flavour', formatting.line(found['flavour'])),
            ('connection_points', format_columns.ListColumn(
                list(map(formatting.line, points)))),
            ('properties', format_columns.ListDictColumn(
                [_property(each) for each in found['properties']]))))


def _property(each):
    return {'name': formatting.line(each['name']),
            'type': formatting.line(each['type']),
            'default': formatting.line(str(each['default'])),
            'changes_live': each['live'],
            'description': formatting.line(each['description'])}
