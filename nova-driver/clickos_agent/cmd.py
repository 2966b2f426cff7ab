# SPDX-License-Identifier: Apache-2.0
"""The program clickos-agent."""

import signal
import sys
import threading

from cosmos_client import CosmosClient
from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging
from oslo_service import systemd

from clickos_agent import conf
from clickos_agent import rpc

LOG = logging.getLogger(__name__)
CONF = cfg.CONF


def main(argv=None):
    """Serve until SIGTERM or SIGINT.

    cosmosd is connected to call by call, so it may come later and go away.

    :param argv: arguments, those of the process by default.
    :returns: the exit status, 0
    """
    _configure(sys.argv[1:] if argv is None else argv)
    stopped = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stopped.set())
    server = make_server(CONF)
    server.start()
    LOG.info('Serving as %s', CONF.host)
    systemd.notify_once()
    stopped.wait()
    LOG.info('Stopping')
    server.stop()
    server.wait()
    return 0


def _configure(argv):
    logging.register_options(CONF)
    conf.register_opts(CONF)
    CONF(argv, project='clickos', prog='clickos-agent')
    logging.setup(CONF, 'clickos-agent')


def make_server(conf):
    """:returns: the RPC server, not started"""
    options = conf.clickos_agent
    client = CosmosClient(options.cosmosd_socket, options.cosmosd_timeout)
    return oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf),
        oslo_messaging.Target(topic=rpc.TOPIC, server=conf.host),
        [rpc.Endpoint(client, options.handler_timeout)],
        access_policy=oslo_messaging.DefaultRPCAccessPolicy)


if __name__ == '__main__':
    sys.exit(main())
