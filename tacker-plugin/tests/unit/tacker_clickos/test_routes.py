# SPDX-License-Identifier: Apache-2.0
"""Each route of the installed Tacker is served or closed, as the page says.

The page docs/reference/sol003.md names all routes. A route that a release of
Tacker adds is in neither of its lists, and fails here.
"""

import configparser
from importlib import metadata
import inspect
import io
import pathlib
import re
import tempfile
from unittest import mock

from oslo_utils import importutils
from paste import deploy
from tacker.api import extensions
from tacker.common import config as _config  # noqa: F401 registers options
from tacker import manager
import webob
import webob.dec

from tacker_clickos import paste
from tacker_clickos import routes
from tests.unit.tacker_clickos import database

REPO = pathlib.Path(__file__).resolve().parents[4]
PAGE = REPO / 'docs/reference/sol003.md'
TESTS = (REPO / 'tempest-tests', REPO / 'tacker-plugin/tests')
ID = 'b4a8a1f6-2f9f-4d11-9f0c-5d8f6f0d3a01'
#: Where Tacker looks for extensions of /v1.0.
EXTENSIONS = ('tacker.extensions.nfvo', 'tacker.extensions.vnfm',
              'tacker.extensions.vnflcm', 'tacker.extensions.common_services')
#: That a collection of /v1.0 has, and one of its members.
COLLECTION, MEMBER = ('GET', 'POST'), ('GET', 'PUT', 'DELETE')
_ROW = re.compile(r'\| ([A-Z, ]+) \| `(/\S+)` \| (.*) \|$')


def _general(path):
    """Return a path with {} at each place for a value."""
    return re.sub(r'\{[^}]*\}', '{}', path.replace('(.json)', ''))


class Page(object):
    """The rows of the page: {(method, path): the rest of the row}."""

    def __init__(self):
        self.served, self.closed = {}, {}
        rows = {}
        for line in PAGE.read_text(encoding='utf-8').splitlines():
            if line.startswith('## '):
                rows = {'## Served routes': self.served,
                        '## Closed routes': self.closed}.get(line, {})
            elif found := _ROW.match(line):
                for method in found[1].split(', '):
                    rows[method, _general(found[2])] = found[3]


class TackersRoutes(object):
    """All that the paste file of the installed Tacker serves."""

    def __init__(self):
        ini = configparser.RawConfigParser(delimiters=('=', ': '))
        ini.optionxform = str
        ini.read_string(_file('etc/tacker/api-paste.ini'))
        self.found = set()
        for prefix, name in ini['composite:tacker'].items():
            if prefix.startswith('/') and prefix != '/':
                application = ini[f'app:{_application(ini, name)}'][
                    'paste.app_factory']
                self._take(prefix, application.removesuffix('.factory'))

    def _take(self, prefix, application):
        router = importutils.import_class(application.replace(':', '.'))
        for path, methods in _of_router(router):
            self.found |= {(method, _general(prefix + path))
                           for method in methods}


def _file(name):
    found, = (file for file in metadata.files('tacker')
              if str(file).endswith(name))
    return found.locate().read_text()


def _application(ini, name):
    """Return the application behind a name, which may be a pipeline."""
    if f'composite:{name}' in ini:
        return ini[f'composite:{name}']['keystone'].split()[-1]
    return name


def _of_router(router):
    """Yield (path, methods) of any router that Tacker has."""
    if hasattr(router, 'route_list'):
        yield from router.route_list
    elif router.__name__ == 'APIRouter':
        yield from _of_extensions()
    else:
        module = inspect.getmodule(router)
        controller, = (found for name, found in vars(module).items()
                       if name.endswith('_controller'))
        with mock.patch.object(controller, 'create_resource'):
            mapper = router.factory({})._router.mapper
        for route in mapper.matchlist:
            if route.defaults['action'] != 'reject':
                yield route.routepath, route.conditions['method']


def _of_extensions():
    collections = ['extensions']
    with mock.patch.object(manager.TackerManager, 'get_service_plugins'), \
            mock.patch('tacker.api.v1.base.create_resource'):
        for name in EXTENSIONS:
            module = importutils.import_module(name)
            for each in vars(module).values():
                if (inspect.isclass(each)
                        and issubclass(each, extensions.ExtensionDescriptor)
                        and each.__module__ == name
                        and hasattr(each, 'get_resources')):
                    collections += [found.collection for found in
                                    each.get_resources()]
    for collection in collections:
        yield f'/{collection}', COLLECTION
        yield f'/{collection}/{{id}}', MEMBER


@webob.dec.wsgify
def tacker_api(_request):
    """Answer instead of Tacker."""
    return webob.Response(status=202)


def application(global_conf, **local_conf):
    """Return what stands behind our filter in the test."""
    return tacker_api


def passing(global_conf, **local_conf):
    """Return a filter that changes nothing, instead of Keystone's."""
    return lambda behind: behind


def pipeline(loader, global_conf, **local_conf):
    """Return the pipeline for members, as Tacker's factory does."""
    *filters, last = local_conf['keystone'].split()
    made = loader.get_app(last)
    for name in reversed(filters):
        made = loader.get_filter(name)(made)
    return made


def _paste_file():
    """Return our paste file without Tacker's applications and Keystone."""
    ini = configparser.RawConfigParser()
    ini.optionxform = str
    ini.read_string(paste.text())
    for name, section in ini.items():
        if name in ('filter:authtoken', 'filter:keystonecontext',
                    'filter:extensions'):
            section['paste.filter_factory'] = f'{__name__}:passing'
        elif section.get('use') == 'call:tacker.auth:pipeline_factory':
            section['use'] = f'call:{__name__}:pipeline'
        elif name.startswith('app:') and name != 'app:versions_app':
            section['paste.app_factory'] = f'{__name__}:application'
    text = io.StringIO()
    ini.write(text)
    return text.getvalue()


class RoutesTest(database.DatabaseTestCase):

    def setUp(self):
        super().setUp()
        self.page = Page()
        folder = self.enterContext(tempfile.TemporaryDirectory())
        file = pathlib.Path(folder) / 'api-paste.ini'
        file.write_text(_paste_file(), encoding='utf-8')
        self.front = deploy.loadapp(f'config:{file}', name='tacker')

    def status(self, method, path):
        """Return the status of a request through our paste file."""
        request = webob.Request.blank(path.replace('{}', ID), method=method)
        return request.get_response(self.front).status_int

    def test_each_route_of_tacker_is_in_one_list(self):
        found = TackersRoutes().found
        self.assertGreater(len(found), 70)
        self.assertEqual([], sorted(
            found - self.page.served.keys() - self.page.closed.keys()))
        self.assertEqual(set(), self.page.served.keys()
                         & self.page.closed.keys())

    def test_a_served_route_reaches_tacker(self):
        for method, path in self.page.served:
            self.assertEqual(202, self.status(method, path), (method, path))

    def test_a_closed_route_does_not_exist(self):
        for method, path in self.page.closed:
            self.assertEqual(404, self.status(method, path), (method, path))

    def test_the_filter_serves_no_other_route(self):
        prefixes = {api: path for path, api, _, _ in paste._APIS}
        self.assertEqual(self.page.served.keys(), {
            (method, _general(prefixes[api] + path))
            for api, served in routes.APIS.items()
            for path, methods in served for method in methods.split()})

    def test_our_front_comes_first(self):
        ini = configparser.RawConfigParser()
        ini.read_string(paste.text())
        found = [section[key].split()[0] for section in ini.values()
                 for key in ('keystone', 'pipeline') if key in section]
        served = ini['composite:tacker'].keys() - {'use'}
        self.assertEqual(['clickos_front'] * len(served), found)

    def test_the_page_names_tests_that_exist(self):
        existing = {name for folder in TESTS for file in folder.rglob('*.py')
                    for name in re.findall(r'def (test_\w+)\(',
                                           file.read_text('utf-8'))}
        text = PAGE.read_text(encoding='utf-8')
        self.assertEqual(set(), set(re.findall(r'`(test_\w+)`', text))
                         - existing)
        for route, rest in self.page.served.items():
            self.assertIn('`test_', rest, route)
