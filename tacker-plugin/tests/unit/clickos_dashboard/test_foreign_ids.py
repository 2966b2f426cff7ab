# SPDX-License-Identifier: Apache-2.0
"""A foreign id in every address of the dashboard.

The addresses are read from the panels' own tables. The dashboard decides
nothing: it asks each service with the user's token, and shows what is
permitted.
"""

import importlib
import itertools
import pathlib
from unittest import mock
from urllib import parse

from django.urls import reverse

import clickos_dashboard
from tests.unit.clickos_dashboard import base
from tests.unit.clickos_dashboard import cloud
from tests.unit.clickos_dashboard import test_chains

FOREIGN = '99999999-9999-4999-8999-999999999999'
#: The caller's own object of each parameter of an address.
OWN = {'chain_id': test_chains.CHAIN, 'rule_id': test_chains.RULE,
       'server_id': cloud.SERVER,
       'package_id': cloud.PACKAGE, 'vnf_id': cloud.VNF}
#: Parameters that name no object of their own.
VALUES = {'name': 'fw.config'}
#: Elsewhere, forbidden, not found, no method; a script's page has 409, 502.
REFUSED = (302, 403, 404, 405, 409, 502)


def panels():
    """List the panels that have addresses."""
    folder = pathlib.Path(clickos_dashboard.__file__).parent
    return sorted(path.parent.name for path in folder.glob('*/urls.py'))


def addresses():
    """Give (panel, name, its parameters) of each address."""
    for panel in panels():
        module = importlib.import_module(f'clickos_dashboard.{panel}.urls')
        for each in module.urlpatterns:
            yield panel, each.name, sorted(each.pattern.converters)


class ForeignIdsTest(base.PageTest):

    def setUp(self):
        super().setUp()
        self.cloud.answers.update(test_chains.answers())
        self.asked = []
        send = self.cloud.send

        def owned(request, **kwargs):
            """Answer as services do: a foreign object is not there."""
            self.asked.append(request)
            path = parse.unquote(request.url)
            if FOREIGN in path or FOREIGN in str(request.body):
                with mock.patch.object(self.cloud, 'answers', {
                        f'{request.method} {parse.urlsplit(path).path}':
                        (404, {'error': {'code': 'no-such-server',
                                         'message': 'not found'}})}):
                    return send(request, **kwargs)
            return send(request, **kwargs)
        self.cloud.send = owned

    @staticmethod
    def arguments(names):
        """Give each choice of ids with at least one foreign one.

        A parameter that is in no table here is an error.
        """
        choices = [(VALUES[name],) if name in VALUES
                   else (FOREIGN, OWN[name]) for name in names]
        for values in itertools.product(*choices):
            if FOREIGN in values:
                yield dict(zip(names, values))

    def test_every_address(self):
        found = list(addresses())
        self.assertIn(('vnfs', 'update', ['vnf_id']), found)
        for panel, name, names in found:
            for arguments in self.arguments(names):
                path = reverse(f'horizon:clickos:{panel}:{name}',
                               kwargs=arguments)
                for method in ('get', 'post'):
                    with self.subTest(f'{method} {path}'):
                        self.refused(method, path)

    def refused(self, method, path):
        """Check that a page is refused, and asked as the user only."""
        self.asked.clear()
        self.cloud.changes.clear()
        answer = getattr(self.client, method)(path, {
            'value': 'evil', 'name': 'fw.config', 'order': FOREIGN,
            'config': 'Idle;', 'server_id': FOREIGN})
        self.assertIn(answer.status_code, REFUSED, answer.content[:500])
        for request in self.asked:
            # Nova's versions are public; all else has the user's token.
            self.assertIn(request.headers.get('X-Auth-Token'),
                          (self.token.id, None))
        self.assertEqual([], [change for change in self.cloud.changes
                              if FOREIGN not in str(change)])

    def test_a_parameter_of_an_unknown_kind_fails(self):
        with self.assertRaises(KeyError):
            list(self.arguments(['novel_id']))
