# SPDX-License-Identifier: Apache-2.0
"""Secrets: who sees what, and where the value goes."""

import contextlib
import io
import json
import logging
import os
import urllib.parse
import uuid

from clickos_client import document
from clickos_client import secrets
from cryptography import fernet
import fixtures
import sqlalchemy as sa

from clickos_api.db import manage
from clickos_api.db import models
from clickos_api.outside.ownership import USER_DATA
from tests.unit.clickos_api import base

VALUE = 'allow udp, deny all'


class SecretTestCase(base.TestCase):
    """One secret of the server's project."""

    def setUp(self):
        super().setUp()
        self.store = self.app.extensions['clickos']._service.store
        self.secrets = self.app.extensions['clickos']._service.secrets
        status, body = self.make('rules', VALUE)
        self.assertEqual(201, status, body)
        self.secret = body['secret']
        self.reference = self.secret['reference']

    def key(self):
        """Write a new key; return its file."""
        path = os.path.join(self.folder(), uuid.uuid4().hex)
        with open(path, 'wb') as file:
            file.write(fernet.Fernet.generate_key() + b'\n')
        return path

    def folder(self):
        return os.path.dirname(self.conf.config_file[0])

    def use_keys(self, *files):
        """Let the service have these keys."""
        self.secrets._files, self.secrets._keys = files, None

    def make(self, name, value, token=None):
        return self.call('POST', '/v1/secrets', token,
                         json={'name': name, 'value': value})

    def path(self):
        return '/v1/secrets/' + self.secret['id']

    def row(self):
        with self.store.reader() as session:
            return session.get(models.Secret, self.secret['id']).sealed


class SecretTest(SecretTestCase):
    """The service's requests for secrets."""

    def test_no_answer_has_the_value(self):
        self.assertNotIn('value', self.secret)
        self.assertEqual((200, {'secrets': [self.secret]}),
                         self.call('GET', '/v1/secrets'))
        self.assertEqual((200, {'secret': self.secret}),
                         self.call('GET', self.path()))
        self.assertNotIn('udp', self.row())

    def test_the_guest_gets_the_value_and_the_record_the_reference(self):
        self.assertEqual((200, {'revision': 1}), self.put(self.reference))
        self.assertEqual(VALUE,
                         self.agent.guests[self.server_id]['fw.config'])
        self.assertEqual([['fw.config', self.reference]],
                         self.state()['writes'])

    def test_a_value_with_references_in_it(self):
        self.put(f'{self.reference}, {self.reference}')
        self.assertEqual(f'{VALUE}, {VALUE}',
                         self.agent.guests[self.server_id]['fw.config'])

    def test_words_about_a_value_with_a_secret_are_not_shown(self):
        secret = self.make('bad', 'bad')[1]['secret']
        status, body = self.put(secret['reference'])
        self.assertEqual((400, 'handler-error', secrets.HIDDEN),
                         (status, body['error']['code'],
                          body['error']['message']))
        self.assertIs(True, self.agent.has_secrets)
        self.assertEqual('fw.config: bad value',
                         self.put('bad')[1]['error']['message'])
        self.assertIs(False, self.agent.has_secrets)

    def test_another_project_has_no_such_secret(self):
        other = self.caller('other', 'member', 'reader')
        for method in ('GET', 'DELETE'):
            self.assertError(404, 'no-such-secret', self.secret['id'],
                             self.call(method, self.path(), other))
        self.assertEqual({'secrets': []},
                         self.call('GET', '/v1/secrets', other)[1])
        foreign = self.make('mine', 'x', other)[1]['secret']['reference']
        self.assertError(404, 'no-such-secret', foreign, self.put(foreign))

    def test_readers_make_and_delete_nothing(self):
        reader = self.caller(self.project_id, 'reader')
        self.assertEqual(200, self.call('GET', self.path(), reader)[0])
        self.assertEqual(403, self.make('x', 'y', reader)[0])
        self.assertEqual(403, self.call('DELETE', self.path(), reader)[0])

    def test_only_services_read_values(self):
        self.put(self.reference)
        path = self.state_path() + '?secrets=true'
        service = self.caller('svc', 'service')
        self.assertEqual({self.reference: VALUE},
                         self.call('GET', path, service)[1]['secrets'])
        for roles in (('member', 'reader'), ('admin',)):
            self.assertEqual(403, self.call('GET', path, self.caller(
                self.project_id, *roles))[0])

    def test_those_of_a_state(self):
        state = '/v1/states/' + self.make_state(
            writes=[['a.x', self.reference]])
        self.assertEqual(
            {self.reference: VALUE},
            self.call('GET', f'{state}?secrets=true'
                      f'&project_id={self.project_id}',
                      self.caller('svc', 'service'))[1]['secrets'])
        self.assertError(409, 'in-use', state[11:],
                         self.call('DELETE', self.path()))
        self.cloud.servers[self.server_id][USER_DATA] = document.referring(
            state[11:])
        self.put('1', 'a.x')
        self.assertError(409, 'in-use', state[11:],
                         self.call('DELETE', self.path()))
        self.call('DELETE', state)
        self.assertEqual(204, self.call('DELETE', self.path())[0])
        self.assertEqual(404, self.call('DELETE', self.path())[0])

    def test_a_state_of_another_project_cannot_refer_to_it(self):
        other = self.caller('other', 'member', 'reader')
        body = {'config': 'Idle;', 'writes': [['a.x', self.reference]]}
        state = '/v1/states/' + self.make_state(other)
        for method, path in (('POST', '/v1/states'), ('PUT', state)):
            self.assertError(404, 'no-such-secret', self.reference,
                             self.call(method, path, other, json=body))
        self.assertEqual([], self.call('GET', state, other)[1]['writes'])

    def test_bad_bodies(self):
        for body, words in (({'name': 'a b', 'value': 'x'}, 'name'),
                            ({'name': 'a', 'value': ''}, 'empty'),
                            ({'name': 'a', 'value': ['top']}, 'a text'),
                            ({'name': 'a', 'value': 'x' * 4097}, '4096'),
                            ({'name': 'a'}, '"value" is missing')):
            status, answer = self.call('POST', '/v1/secrets', json=body)
            self.assertEqual(400, status)
            self.assertIn(words, answer['error']['message'])
            self.assertNotIn('top', answer['error']['message'])

    def test_values_that_grow_too_long(self):
        long = self.make('long', 'x' * 4096)[1]['secret']['reference']
        self.conf.set_override('max_value_bytes', 100000, 'clickos_api')
        self.addCleanup(self.conf.clear_override, 'max_value_bytes',
                        'clickos_api')
        self.assertError(413, 'too-large', '524288',
                         self.put(long * 129))

    def test_a_quota(self):
        self.secrets._limit = 1
        self.assertError(413, 'over-quota', 'the quota is 1',
                         self.make('more', 'x'))

    def test_no_key(self):
        for files in ((), ('/nonexistent',), (__file__,)):
            self.use_keys(*files)
            self.assertError(503, 'no-secret-key', 'secret_key_files',
                             self.make('x', 'y'))
        self.use_keys(self.key())
        self.assertError(503, 'no-secret-key', 'cannot be read',
                         self.put(self.reference))

    def test_a_row_of_another_secret_is_not_opened(self):
        other = self.make('other', 'x')[1]['secret']
        with self.store.writer() as session:
            session.execute(sa.update(models.Secret).where(
                models.Secret.id == other['id']).values(sealed=self.row()))
        self.assertError(503, 'no-secret-key', 'cannot be read',
                         self.put(other['reference']))

    def rotate(self, *files):
        extra = os.path.join(self.folder(), 'keys.conf')
        with open(extra, 'w') as file:
            file.write('[clickos_api]\nsecret_key_files = '
                       + ','.join(files))
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            status = manage.main(['--config-file', self.conf.config_file[0],
                                  '--config-file', extra, 'rotate-secrets'])
        return status, out.getvalue()

    def test_rotation(self):
        old, new = self.secrets._files[0], self.key()
        status, text = self.rotate(new, old)
        self.assertEqual((0, '1 secrets are encrypted with the first key\n'),
                         (status, text))
        self.use_keys(new)
        self.assertEqual(200, self.put(self.reference)[0])


#: Values whose text differs from what an error has of them.
_VALUES = ('topsecret "x"', "topsecret 'x'", 'topsecret \\ x',
           'topsecret\tx', 'topsecret\nx', 'topsecret \u00e9',
           'topsecret $(x) {$ x $}', ' topsecret ')
#: How programs spell a value in a message; the last ones cut it.
_SPELLINGS = (str, repr, ascii, json.dumps, lambda value: repr(
    value.encode()), lambda value: value[:9], lambda value: value.split(
        'top')[1][:6], urllib.parse.quote)
_MARKS = ('topsecret', 'secret ', 'secret"')


class SpellingTest(SecretTestCase):
    """No spelling of a value gets anywhere but to the guest."""

    def told(self, value, spell):
        """Return what a guest says about a value."""
        return f'fw.config: line 1: {spell(value)}: expected a rule'

    def everything(self):
        """Return the text of the whole database but for the secrets."""
        with self.store.reader() as session:
            return '\n'.join(
                repr(tuple(row)) for table in (
                    models.DesiredState, models.Change)
                for row in session.execute(sa.select(*table.__table__.c)))

    def assertNowhere(self, *texts):
        for text in texts:
            for mark in _MARKS:
                self.assertNotIn(mark, text)

    def test_answers_database_logs(self):
        logs = self.use(fixtures.FakeLogger(level=logging.DEBUG))
        for value in _VALUES:
            reference = self.make('s', value)[1]['secret']['reference']
            for spell in _SPELLINGS:
                for code in ('handler-error', 'internal'):
                    self.agent.broken = {'error': {
                        'code': code, 'message': self.told(value, spell)}}
                    answer = self.put(f'allow {reference}')
                    changes = self.call(
                        'GET', f'/v1/servers/{self.server_id}/changes')
                    self.assertNowhere(json.dumps(answer),
                                       json.dumps(changes))
        self.assertNowhere(self.everything(), logs.output)
        self.assertIn('handler-error', self.everything())

    def test_verdicts_that_come_late(self):
        for value in _VALUES:
            reference = self.make('s', value)[1]['secret']['reference']
            for spell in _SPELLINGS:
                ticket = self.store.begin(
                    self.server_id, [['fw.config', reference]],
                    self.project_id, self.server_id, 'host1')
                self.store.settle(self.server_id, ticket.number, {
                    'applied': [], 'pending': [], 'refused': [{
                        'number': ticket.number, 'code': 'handler-error',
                        'message': self.told(value, spell)}]})
        self.assertNowhere(self.everything())
        self.assertIn(secrets.HIDDEN, self.everything())

    def test_words_about_other_values_are_kept(self):
        ticket = self.store.begin(
            self.server_id, [['fw.config', 'plain']], self.project_id,
            self.server_id, 'host1')
        self.store.settle(self.server_id, ticket.number, {
            'applied': [], 'pending': [], 'refused': [{
                'number': ticket.number, 'code': 'handler-error',
                'message': self.told('plain', repr)}]})
        self.assertIn('expected a rule', self.everything())
