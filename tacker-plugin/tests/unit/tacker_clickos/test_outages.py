# SPDX-License-Identifier: Apache-2.0
"""Requests and steps while a service is away, over real connections."""

import contextlib
import json
import subprocess
import sys
import types
from unittest import mock

from keystoneauth1 import adapter
from keystoneauth1 import exceptions as ks_exceptions
from keystoneauth1 import noauth
from openstack import exceptions as sdk_exceptions
from oslo_config import cfg
from oslo_db import exception as db_exc
import pymysql
import requests
import sqlalchemy as sa
import sqlalchemy.orm    # noqa: F401
from tacker.common import exceptions as tacker_exceptions
from tacker import context as tacker_context
from tacker import objects

from tacker_clickos import database
from tacker_clickos import exception
from tacker_clickos import guests
from tacker_clickos import infra_driver
from tacker_clickos import outages
from tacker_clickos import ports
from tests.unit.tacker_clickos import base
from tests.unit.tacker_clickos import scripted_service

CUT = None


class Service:
    """Runs scripted_service.py; Tacker's eventlet and threads do not mix.

    :param answers: (status, object) or CUT
    """

    def __init__(self, *answers, port=0):
        self._process = subprocess.Popen(
            [sys.executable, '-I', scripted_service.__file__, str(port),
             json.dumps(answers)], stdout=subprocess.PIPE, text=True)
        self.port = int(self._process.stdout.readline())

    def stop(self):
        """End it; return the methods of the requests that it got."""
        self._process.kill()
        self._process.wait()
        with self._process.stdout as output:
            return output.read().split()


class OutagesCase(base.TestCase):

    def setUp(self):
        super().setUp()
        self.patience(30)
        self.addCleanup(cfg.CONF.clear_override, 'outage_timeout', 'clickos')

    def patience(self, seconds):
        cfg.CONF.set_override('outage_timeout', seconds, 'clickos')


class SessionTest(OutagesCase):

    def client(self, *answers, service='network'):
        self.service = Service(*answers)
        url = 'http://127.0.0.1:%d' % self.service.port
        return adapter.Adapter(
            outages.Session(auth=noauth.NoAuth(endpoint=url)),
            service_type=service)

    def test_a_read_is_repeated(self):
        client = self.client((503, {}), (500, {}), CUT, (502, {}))
        self.assertEqual({'made': True}, client.get('/x').json())
        self.assertEqual(['GET'] * 5, self.service.stop())

    def test_so_are_put_and_delete(self):
        client = self.client((503, {}), (200, {}), CUT)
        client.put('/x', json={})
        client.delete('/x')
        self.assertEqual(['PUT', 'PUT', 'DELETE', 'DELETE'],
                         self.service.stop())

    def test_a_post_is_not(self):
        for answer in CUT, (500, {}), (503, {}), (504, {}):
            client = self.client(answer)
            with self.assertRaises(exception.Unanswered):
                client.post('/x', json={})
            self.assertEqual(['POST'], self.service.stop())

    def test_but_that_for_a_token_is(self):
        client = self.client((503, {}), CUT, service='identity')
        client.post('/v3/auth/tokens', json={})
        self.assertEqual(['POST'] * 3, self.service.stop())

    def test_a_refusal_is_returned_at_once(self):
        client = self.client((404, {}), (409, {}))
        self.assertEqual(404, client.get('/x', raise_exc=False).status_code)
        with self.assertRaises(ks_exceptions.Conflict):
            client.put('/x', json={})
        self.assertEqual(['GET', 'PUT'], self.service.stop())

    def test_the_text_names_the_service(self):
        self.patience(0)
        for service, answer, text in (
                ('network', (503, {}), 'Neutron answers with HTTP 503'),
                ('compute', (500, {}), 'Nova answers with HTTP 500'),
                ('image', CUT, 'Glance cannot be reached')):
            client = self.client(answer, service=service)
            with self.assertRaises(exception.ServiceAway) as away:
                client.get('/x')
            self.service.stop()
            self.assertEqual(text, str(away.exception))

    def test_no_text_says_where_a_service_is(self):
        self.patience(0)
        client = self.client()
        self.assertEqual([], self.service.stop())
        send = self.patch(requests.Session, 'request')
        for fault in (requests.exceptions.SSLError,
                      requests.exceptions.Timeout,
                      requests.exceptions.ConnectionError,
                      requests.exceptions.ChunkedEncodingError):
            send.side_effect = fault('of http://inside.example')
            with self.assertRaises(exception.ServiceAway) as away:
                client.get('/x')
            self.assertNotIn('http', str(away.exception))

    def test_a_step_tells_no_path_of_the_conductor(self):
        for error, told in (
                (FileNotFoundError(2, 'No such file', '/var/lib/tacker/a'),
                 'FileNotFoundError'),
                (tacker_exceptions.TackerException(
                    'package /var/lib/tacker/a: is gone'),
                 'package ...: is gone')):
            @outages.outlived
            def step():
                raise error
            with self.assertRaises(exception.ClickOSError) as failed, \
                    self.assertLogs(outages.LOG.logger) as logs:
                step()
            self.assertEqual('ClickOS driver failed: ' + told,
                             str(failed.exception))
            self.assertIn('/var/lib/tacker/a', logs.output[0])

    def test_a_step_tells_refusals_without_the_address(self):
        client = self.client((404, {}))

        @outages.outlived
        def step():
            sdk_exceptions.raise_from_response(
                client.get('/x', raise_exc=False))
        with self.assertRaises(exception.ServiceRefused) as refused:
            step()
        self.service.stop()
        self.assertEqual('a service of the cloud answers with HTTP 404: Not'
                         ' Found', str(refused.exception))
        self.assertIn('http://', str(refused.exception.__cause__))

    def test_own_words_of_clickos_api_are_returned(self):
        self.patience(0)
        error = {'error': {'code': 'unavailable', 'message': 'no database'}}
        for method in 'GET', 'POST':
            client = self.client((503, error), service='clickos')
            answer = client.request('/x', method, raise_exc=False)
            self.service.stop()
            self.assertEqual(error, answer.json())

    def test_those_of_a_server_in_front_of_it_are_not(self):
        for error in ({'error': {'code': 502, 'message': 'no answer'}},
                      {'error': 'no answer'}):
            client = self.client((502, error), service='clickos')
            with self.assertRaises(exception.Unanswered):
                client.post('/x', json={})
            self.assertEqual(['POST'], self.service.stop())

    def test_a_service_that_comes_back_on_its_port(self):
        client = self.client()
        self.assertEqual([], self.service.stop())

        def come_back(_state):
            self.service = Service(port=self.service.port)
        with self._at_first_pause(come_back):
            self.assertEqual({'made': True}, client.get('/x').json())
        self.assertEqual(['GET'], self.service.stop())

    @contextlib.contextmanager
    def _at_first_pause(self, act):
        """Do something when the session first waits."""
        tries, done = outages._tries, []

        def loop(*given, **named):
            made = tries(*given, **named)
            made.before_sleep = lambda state: done or done.append(
                act(state))
            return made
        outages._tries = loop
        try:
            yield
        finally:
            outages._tries = tries

    def test_the_watcher_waits_for_none(self):
        client = self.client((503, {}))
        with outages.ignored(), self.assertRaises(exception.ServiceAway):
            client.get('/x')
        self.assertEqual(['GET'], self.service.stop())


class OnceTest(OutagesCase):

    def setUp(self):
        super().setUp()
        self.made, self.requests = [], 0

    def make(self, *errors, works=True):
        """Return a request that works, unless it is not to, then fails."""
        errors = list(errors)

        def request():
            self.requests += 1
            if errors and isinstance(errors[0], sdk_exceptions.SDKException):
                raise errors.pop(0)
            if works:
                self.made.append(self.requests)
            if errors:
                raise errors.pop(0)
            return self.made[-1]
        return request

    def find(self):
        return self.made[0] if self.made else None

    def lost(self):
        return exception.Unanswered(service='Nova', reason='is away')

    def test_what_a_lost_answer_made_is_found(self):
        self.assertEqual(1, outages.once(self.find, self.make(self.lost())))
        self.assertEqual([1], self.made)

    def test_what_was_not_made_is_made(self):
        errors = [self.lost(), self.lost()]

        def make():
            if errors:
                raise errors.pop()
            self.made.append('it')
            return 'it'
        self.assertEqual('it', outages.once(self.find, make))
        self.assertEqual(['it'], self.made)

    def test_a_request_that_came_through_late(self):
        answers = iter((None, 'it'))
        make = iter((self.lost(), sdk_exceptions.ConflictException()))

        def fail():
            raise next(make)
        self.assertEqual('it', outages.once(lambda: next(answers), fail))

    def test_a_refusal_is_none_of_its_business(self):
        with self.assertRaises(sdk_exceptions.ConflictException):
            outages.once(self.find,
                         self.make(sdk_exceptions.ConflictException()))
        self.assertEqual(1, self.requests)


class OutlivedTest(OutagesCase):

    def step(self, *errors):
        errors, self.calls = list(errors), 0

        @outages.outlived
        def step(result):
            self.calls += 1
            if errors:
                raise errors.pop(0)
            return result
        return step

    def test_it_is_repeated_after_an_outage(self):
        step = self.step(
            exception.ServiceAway(service='Nova', reason='is away'),
            exception.ServerFailed(name='a', server_id='b', reason='c'),
            db_exc.DBConnectionError())
        self.assertEqual('done', step('done'))
        self.assertEqual(4, self.calls)

    def test_it_is_not_after_a_refusal(self):
        step = self.step(exception.GuestFailed(name='a', server_id='b',
                                               reason='fw.click:1: no'))
        with self.assertRaises(exception.GuestFailed):
            step('done')
        self.assertEqual(1, self.calls)

    def test_it_may_be_switched_off(self):
        self.patience(0)
        step = self.step(db_exc.DBConnectionError())
        with self.assertRaises(db_exc.DBConnectionError):
            step('done')


class DatabaseTest(OutagesCase):
    """SQLAlchemy's own engine, with a driver that fails first."""

    def connect(self, *errors):
        """Connect through a driver with errors; return (calls, result)."""
        database.wait_for_it()
        database.wait_for_it()
        self.addCleanup(sa.event.remove, sa.engine.Engine, 'do_connect',
                        database._connect)
        errors, calls = list(errors), []
        engine = sa.create_engine('sqlite://')
        connect = engine.dialect.connect

        def failing(*arguments, **options):
            calls.append(1)
            if errors:
                raise errors.pop(0)
            return connect(*arguments, **options)
        engine.dialect = types.SimpleNamespace(connect=failing)
        return calls, lambda: database._connect(engine.dialect, None,
                                                (':memory:',), {})

    def test_it_waits_for_a_database_that_starts(self):
        calls, connect = self.connect(
            pymysql.err.OperationalError(2003, 'refused'),
            pymysql.err.OperationalError(1053, 'shutdown'))
        connect().close()
        self.assertEqual(3, len(calls))

    def test_it_does_not_for_a_wrong_password(self):
        calls, connect = self.connect(
            pymysql.err.OperationalError(1045, 'denied'))
        with self.assertRaises(pymysql.err.OperationalError):
            connect()
        self.assertEqual(1, len(calls))

    def test_engines_use_it(self):
        database.wait_for_it()
        self.addCleanup(sa.event.remove, sa.engine.Engine, 'do_connect',
                        database._connect)
        engine, errors = sa.create_engine('sqlite://'), [
            pymysql.err.OperationalError(2003, 'refused')]
        connect = engine.dialect.connect

        def failing(*arguments, **options):
            if errors:
                raise errors.pop(0)
            return connect(*arguments, **options)
        engine.dialect.connect = failing
        with engine.connect() as connection:
            self.assertEqual(1, connection.scalar(sa.text('SELECT 1')))
        self.assertEqual([], errors)


class ReleaseTest(OutagesCase):
    """A step begins without a connection that Tacker's readers left open."""

    def setUp(self):
        super().setUp()
        self.engine = sa.create_engine('sqlite://',
                                       poolclass=sa.pool.QueuePool)
        self.addCleanup(self.engine.dispose)
        self.context = tacker_context.get_admin_context()
        self.context._session = sa.orm.Session(self.engine)
        self.addCleanup(self.context._session.close)

    @outages.outlived
    def held(self, _context):
        return self.engine.pool.checkedout()

    def test_a_connection_of_a_reader_is_given_back(self):
        self.context.session.execute(sa.text('SELECT 1'))
        self.assertEqual(1, self.engine.pool.checkedout())
        self.assertEqual(0, self.held(self.context))

    def test_a_transaction_that_somebody_began_is_left_alone(self):
        with self.context.session.begin():
            self.context.session.execute(sa.text('SELECT 1'))
            self.assertEqual(1, self.held(self.context))


class GuestsTest(base.CloudTestCase):
    """The next try finds what an interrupted one has left."""

    def setUp(self):
        super().setUp()
        cfg.CONF.set_override('outage_timeout', 30, 'clickos')
        self.lose, self.create = [], self.cloud.compute.create_server
        self.real = self.create.side_effect
        self.create.reset_mock()
        self.cloud.network.update_port.reset_mock(side_effect=True)
        self.create.side_effect = self.create_server

    def create_server(self, **wanted):
        """Make a server; its answer may be lost, or Nova gives it up."""
        server = self.real(**wanted)
        what = self.lose.pop(0) if self.lose else None
        if what == 'answer':
            raise exception.Unanswered(service='Nova', reason='is away')
        if what is not None:
            server.status, server.fault = 'ERROR', {'message': what}
        return server

    def instantiate(self):
        instance = base.vnf_instance()
        with mock.patch.object(objects.VnfInstance, 'save', autospec=True):
            infra_driver.ClickOSInfraDriver().instantiate_vnf(
                None, instance, {}, base.vim_connection(),
                base.instantiate_request(), None,
                vnf_package_path=str(self.package))

    def running(self):
        return [server.status for server in self.cloud.servers.values()]

    def test_a_server_of_a_lost_answer_is_used(self):
        self.lose = ['answer']
        self.instantiate()
        self.assertEqual((['ACTIVE'], 1),
                         (self.running(), self.create.call_count))

    def test_a_server_that_nova_gave_up_is_made_again(self):
        for fault in (None, 'No valid host was found. ', 'MessagingTimeout',
                      'Build of instance x aborted: no network'):
            self.lose = [fault or '']
            self.instantiate()
            self.assertEqual(['ACTIVE'], self.running(), fault)

    def test_the_words_of_a_guest_end_the_operation(self):
        self.lose = ['fw.click:3:1: no such element']
        with self.assertRaisesRegex(exception.GuestFailed, 'fw.click:3:1'):
            self.instantiate()
        self.assertEqual(({}, {}), (self.cloud.servers, self.cloud.ports))

    def test_a_port_of_a_server_that_is_gone_is_taken_back(self):
        port = self.cloud.network.create_port(
            name='p', description='d', network_id=base.LEFT_NET)
        port.device_id, port.device_owner = 'gone', 'compute:nova'
        ports.release(self.cloud, port)
        self.cloud.network.update_port.assert_called_once_with(
            port.id, device_id='', device_owner='')

    def test_such_a_port_can_be_deleted(self):
        port = self.cloud.network.create_port(
            name='p', description='d', network_id=base.LEFT_NET)
        port.device_id, port.device_owner = 'gone', 'compute:nova'
        ports.delete(self.cloud, [port])
        names = [name for name, _, _ in self.cloud.network.method_calls]
        self.assertEqual(['update_port', 'delete_port'], names[-2:])

    def test_one_of_a_router_is_not(self):
        port = self.cloud.network.create_port(
            name='p', description='d', network_id=base.LEFT_NET)
        port.device_id = 'gone'
        port.device_owner = 'network:router_interface'
        ports.release(self.cloud, port)
        self.cloud.network.update_port.assert_not_called()

    def test_one_of_a_server_that_is_there_is_not(self):
        server = self.real(name='n', metadata={})
        port = self.cloud.network.create_port(
            name='p', description='d', network_id=base.LEFT_NET)
        port.device_id, port.device_owner = server.id, 'compute:nova'
        ports.release(self.cloud, port)
        self.cloud.network.update_port.assert_not_called()

    def test_clickos_api_without_its_database(self):
        answer, errors = self.cloud._answer_of_state, [1, 2]

        def answers(*given):
            if errors:
                errors.pop()
                return 503, {'error': {'code': 'unavailable',
                                       'message': 'no database'}}
            return answer(*given)
        self.cloud._answer_of_state = answers
        self.instantiate()
        self.assertEqual((['ACTIVE'], []), (self.running(), errors))

    def test_two_ports_of_one_name_are_both_removed(self):
        for _number in range(2):
            self.cloud.network.create_port(
                name='VDU1-0-left', network_id=base.LEFT_NET,
                description=ports.description(base.VNF_ID))
        guests.Guests(self.cloud, base.VNF_ID).sweep()
        self.assertEqual({}, self.cloud.ports)
