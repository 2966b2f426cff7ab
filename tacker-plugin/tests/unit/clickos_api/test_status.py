# SPDX-License-Identifier: Apache-2.0
"""clickos-status, the tables that a release needs, and pages of lists."""

import contextlib
import importlib
import io
import json
import os
from unittest import mock

from alembic import command as alembic_command
from cryptography import fernet
import fixtures
from oslo_reports import guru_meditation_report as gmr
import sqlalchemy as sa

from clickos_api.db import manage
from clickos_api.db import models
from clickos_api.db import schema
from clickos_api.outside import rpc
from clickos_api import status
from tests.unit.clickos_api import base

ENGINE = 'e' * 64


class StatusTestCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.path = self.conf.config_file[0]
        self.use(fixtures.MockPatchObject(
            status.release, 'version', return_value='0.3.1.dev7'))
        self.add_agent('host1', '0.3.0')
        self.cloud.lists['images'] = [
            {'status': 'active', 'os_hash_algo': 'sha256',
             'os_hash_value': ENGINE}]

    def add_agent(self, host, release, alive=True, engine=ENGINE,
                  kind='process'):
        self.cloud.lists['agents'].append({
            'host': host, 'alive': alive, 'configurations': {
                'release': release, 'host_kind': kind,
                'engine_sha256': engine}})

    def check(self):
        """Return the exit status and {check: its details}."""
        output = io.StringIO()
        with contextlib.redirect_stdout(output):
            code = status.main(['--config-file', self.path, 'upgrade',
                                'check', '--json'])
        found = json.loads(output.getvalue())['checks']
        return code, {each['check']: each['details'] for each in found
                      if each['details']}

    def store(self):
        return self.app.extensions['clickos']._service.store


class StatusTest(StatusTestCase):

    def test_a_cloud_that_is_ready(self):
        self.assertEqual((0, {}), self.check())

    def test_agents_are_one_release_apart_at_most(self):
        self.add_agent('host2', '0.2.0')
        self.add_agent('host3', '0.4.0')
        self.assertEqual((0, {}), self.check())
        for release in ('0.1.9', '0.5.0', '1.3.0', '9.²', '9\x1b[2J\n', None):
            self.cloud.lists['agents'] = []
            self.add_agent('old', release)
            code, found = self.check()
            self.assertEqual(2, code, release)
            self.assertIn('old has', found['Releases of agents'])
            self.assertNotIn('\x1b', found['Releases of agents'])

    def test_no_agent_and_a_silent_one_are_warnings(self):
        self.cloud.lists['agents'] = []
        self.assertEqual(1, self.check()[0])
        self.add_agent('away', '0.3.0', alive=False)
        code, found = self.check()
        self.assertEqual(1, code)
        self.assertIn('away', found['Releases of agents'])

    def test_a_host_whose_engine_has_no_image(self):
        self.add_agent('host2', '0.3.0', engine='a' * 64)
        code, found = self.check()
        self.assertEqual(2, code)
        self.assertIn('host2 (sha256 aaaaaaaaaaaa', found[
            'Images and engines'])
        self.cloud.lists['images'].append(
            {'status': 'active', 'os_hash_algo': 'sha512',
             'os_hash_value': 'f' * 128})
        code, found = self.check()
        self.assertEqual(1, code)
        self.assertIn('sha512', found['Images and engines'])

    def test_an_image_on_a_later_page_of_glance(self):
        self.cloud.page = 1
        for number in range(3):
            self.cloud.lists['images'].insert(
                0, {'status': 'active', 'os_hash_algo': 'sha256',
                    'os_hash_value': str(number) * 64})
        self.assertEqual((0, {}), self.check())

    def test_a_xen_host_needs_an_image_for_such_hosts(self):
        self.add_agent('xen1', '0.3.0', engine=None, kind='xen')
        image = {'status': 'queued', 'os_hash_algo': 'sha256',
                 'trait:CUSTOM_CLICKOS_XEN': 'required'}
        self.cloud.lists['images'].append(image)
        code, found = self.check()
        self.assertEqual(1, code)
        self.assertIn('xen1', found['Images and engines'])
        image['status'] = 'active'
        self.assertEqual((0, {}), self.check())

    def test_a_cloud_that_does_not_answer_is_a_failure(self):
        self.cloud.failing = True
        code, found = self.check()
        self.assertEqual(2, code)
        self.assertIn('Neutron', found['Releases of agents'])

    def test_keys_have_to_open_all_secrets(self):
        self.call('POST', '/v1/secrets',
                  json={'name': 'n', 'value': 'v'})
        self.assertEqual(0, self.check()[0])
        with open(os.path.join(os.path.dirname(self.path),
                               'secret.key'), 'wb') as key:
            key.write(fernet.Fernet.generate_key())
        code, found = self.check()
        self.assertEqual(2, code)
        self.assertIn('1 of 1 secrets', found['Keys of secrets'])

    def test_a_policy_file_names_no_rule_that_does_not_exist(self):
        file = os.path.join(os.path.dirname(self.path), 'policy.yaml')
        with open(self.path, 'a') as settings:
            settings.write(f'[oslo_policy]\npolicy_file = {file}\n')
        for text, wanted in (
                ('clickos:handler:list: "role:admin"\n', 0),
                ('clickos:handlers:list: "role:admin"\n', 2),
                ('{"clickos:handler:list": "role:admin"}', 2)):
            with open(file, 'w') as rules:
                rules.write(text)
            self.assertEqual(wanted, self.check()[0], text)


class SchemaTest(StatusTestCase):

    def migrate(self, how, revision):
        with self.store().writer() as session:
            how(manage.alembic_for(session.connection()), revision)

    def test_tables_of_before_are_refused_until_they_are_expanded(self):
        self.migrate(alembic_command.downgrade, '0008')
        for _ in range(2):
            answer = self.call('GET', self.handlers())
            self.assertError(503, 'schema', '0008', answer)
        code, found = self.check()
        self.assertEqual(2, code)
        self.assertIn('upgrade --expand', found['Tables of the database'])
        self.assertEqual(0, manage.main(
            ['--config-file', self.path, 'upgrade', '--expand']))
        self.assertEqual(200, self.call('GET', self.handlers())[0])
        self.assertEqual((0, {}), self.check())

    def set_revision(self, revision):
        with self.store().writer() as session:
            session.execute(sa.text('update alembic_version set'
                                    ' version_num = :revision'),
                            {'revision': revision})

    def test_an_expansion_of_a_later_release_does_no_harm(self):
        self.set_revision('0099')
        self.assertEqual(200, self.call('GET', self.handlers())[0])
        self.assertEqual((0, {}), self.check())

    def test_a_contraction_of_a_later_release_is_refused(self):
        self.set_revision('0100')
        with self.store().writer() as session:
            session.add(models.Contraction(revision='0100'))
        self.assertError(503, 'schema', '0100',
                         self.call('GET', self.handlers()))
        self.assertEqual(2, self.check()[0])

    def test_each_new_migration_says_its_phase_and_keeps_to_it(self):
        known = schema.scripts()
        for each in known.iterate_revisions('head', '0008'):
            phase = each.module.phase
            self.assertIn(phase, (schema.EXPAND, schema.CONTRACT))
            with open(each.path) as file:
                code = file.read().partition('def downgrade')[0]
            if phase == schema.CONTRACT:
                self.assertIn('contractions', code, each.path)
                continue
            for word in ('op.drop', 'op.alter', 'op.rename', 'op.execute'):
                self.assertNotIn(word, code, each.path)

    def test_an_expansion_stops_before_a_contraction(self):
        known = schema.scripts()
        self.assertEqual('0005', schema.last_expansion(known, '0005'))
        self.assertEqual('0011', schema.last_expansion(known, '0008'))
        self.assertEqual('head', schema.last_expansion(known, None))


class PagesTest(base.TestCase):

    def setUp(self):
        super().setUp()
        self.names = [f'e{n}.h' for n in range(5)]
        self.agent.guests[self.server_id] = dict.fromkeys(self.names, '')

    def pages(self, path):
        """Return the pages of a list, and the names of its entries."""
        pages = []
        while path:
            status_code, body = self.call('GET', path)
            self.assertEqual(200, status_code, body)
            pages.append([each['name'] for each in body['handlers']])
            links = body.get('handlers_links', [{'href': None}])
            path = links[0]['href']
        return pages

    def test_all_entries_come_once(self):
        for limit, sizes in ((2, [2, 2, 1]), (5, [5]), (1000, [5]),
                             (1, [1] * 5)):
            pages = self.pages(self.handlers(f'?limit={limit}'))
            self.assertEqual(sizes, list(map(len, pages)))
            self.assertEqual(self.names, sum(pages, []))
        self.assertEqual([self.names], self.pages(self.handlers()))

    def test_a_limit_or_marker_that_cannot_be(self):
        for query in ('limit=0', 'limit=1001', 'limit=x', 'limit=-1',
                      'limit=%C2%B2', 'limit=99999999999', 'limit=',
                      'marker=nothing', 'marker='):
            answer = self.call('GET', self.handlers('?' + query))
            self.assertError(400, 'bad-request', query[:5], answer)

    def test_ports_of_one_address_come_once(self):
        """Neutron lets ports of two networks have the same MAC address."""
        path = f'/v1/servers/{self.server_id}/ports'
        (port,) = self.call('GET', path)[1]['ports']
        ports = [{**port, 'id': each} for each in ('a', 'b', None)]
        href, found = path + '?limit=1', []
        with mock.patch.object(rpc.Agent, 'port_list', autospec=True,
                               return_value=ports):
            for _page in range(4):
                body = self.call('GET', href)[1]
                found += [each['id'] for each in body['ports']]
                if 'ports_links' not in body:
                    break
                href = body['ports_links'][0]['href']
        self.assertEqual(['a', 'b', None], found)

    def test_each_list_of_the_service_has_pages(self):
        for path in ('/v1/secrets', '/v1/catalog', self.handlers(),
                     f'/v1/servers/{self.server_id}/ports',
                     f'/v1/servers/{self.server_id}/changes'):
            answer = self.call('GET', path + '?limit=0')
            self.assertError(400, 'bad-request', 'limit', answer)
            self.assertEqual(200, self.call('GET', path + '?limit=1')[0])


class ProxyTest(base.TestCase):

    def test_links_have_the_address_that_a_trusted_proxy_has(self):
        for trusted, start in ((False, 'http://localhost'),
                               (True, 'https://cloud.example')):
            self.conf.set_override('enable_proxy_headers_parsing', trusted,
                                   group='oslo_middleware')
            self.agent.guests[self.server_id] = {'a.h': '', 'b.h': ''}
            answer = self.client.get(
                self.handlers('?limit=1'), headers={
                    'X-Auth-Token': self.token,
                    'X-Forwarded-Proto': 'https',
                    'X-Forwarded-Host': 'cloud.example'})
            href = answer.get_json()['handlers_links'][0]['href']
            self.assertTrue(href.startswith(start + '/v1/'), href)

    def test_a_report_is_written_when_a_file_changes(self):
        """A WSGI server has its own use for signals."""
        for name in ('conf.load', 'app.create'):
            self.use(fixtures.MockPatch(f'clickos_api.{name}', autospec=True,
                                        return_value=self.conf))
        with mock.patch.object(gmr.TextGuruMeditation, 'setup_autorun',
                               autospec=True) as setup:
            importlib.import_module('clickos_api.wsgi')
        options = setup.call_args.kwargs
        self.assertIs(False, options['setup_signal'])
        self.assertIsNone(options['conf'].oslo_reports.file_event_handler)
