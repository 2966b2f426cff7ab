# SPDX-License-Identifier: Apache-2.0
"""The application for uWSGI, with an agent in the same process.

Guests whose UUID begins with ``slow`` in hexadecimal spelling (51) answer
once a file exists. The tests of test_slow_guests start it.
"""

import os
import time

from keystonemiddleware import fixture as ksm_fixture
from oslo_config import cfg
import oslo_messaging as messaging

from clickos_api import app
from clickos_api import conf as api_conf
from clickos_api.operations import workers

CONF_VARIABLE = 'CLICKOS_TEST_CONF'
GATE_VARIABLE = 'CLICKOS_TEST_GATE'
SLOW = '51'
TOKEN = 'the-token'
PROJECT = 'the-project'
#: On a busy machine the good guest, too, may answer slowly once.
_CALLED_SLOW_S = 2


class Agent:
    """Answers, for some guests only when the gate is open."""

    target = messaging.Target(version='1.3')

    def handler_read(self, ctxt, server_id, name):
        """Read any handler."""
        _dawdle(server_id)
        return {'value': name}

    def handler_write(self, ctxt, server_id, attempt, writes, incarnation):
        """Accept any write."""
        _dawdle(server_id)
        return {'applied': [attempt], 'incarnation': server_id}


def _dawdle(server_id):
    while (server_id.startswith(SLOW)
           and not os.path.exists(os.environ[GATE_VARIABLE])):
        time.sleep(0.1)


def _serve():
    workers._CALLED_SLOW_S = _CALLED_SLOW_S
    conf = api_conf.load([], [os.environ[CONF_VARIABLE]])
    tokens = ksm_fixture.AuthTokenFixture()
    tokens.setUp()
    tokens.add_token_data(token_id=TOKEN, user_id='user',
                          project_id=PROJECT, role_list=['member', 'reader'])
    server = messaging.get_rpc_server(
        messaging.get_rpc_transport(cfg.CONF, 'fake:///'),
        messaging.Target(topic='clickos-agent', server='host1'), [Agent()],
        executor='threading')
    server.start()
    return app.create(conf)


if CONF_VARIABLE in os.environ:   # in uWSGI
    application = _serve()
