# SPDX-License-Identifier: Apache-2.0
"""The program clickos-agent."""

import os
import queue
import signal
import sys

from clickos_client import neutron_rpc
from clickos_client import release
from clickos_client import rpc as client_rpc
from clickos_client import timing
from cosmos_client import CosmosClient
from oslo_config import cfg
from oslo_log import log as logging
import oslo_messaging
from oslo_reports import guru_meditation_report as gmr
from oslo_reports import opts as report_opts
from oslo_service import systemd

from clickos_agent import chains
from clickos_agent import conf
from clickos_agent import devices
from clickos_agent import heartbeat
from clickos_agent import load
from clickos_agent import metrics
from clickos_agent import policies
from clickos_agent import ports
from clickos_agent import record
from clickos_agent import resync
from clickos_agent import rpc
from clickos_agent import uplinks
from clickos_agent import wiring

LOG = logging.getLogger(__name__)
CONF = cfg.CONF

#: Seconds to wait for an answer of Neutron; the agent changes no port before.
_NEUTRON_TIMEOUT_S = 5


def main(argv=None):
    """Serve until SIGTERM or SIGINT.

    cosmosd is connected to call by call, so it may come later and go away.

    :param argv: arguments, those of the process by default.
    :returns: the exit status, 0
    """
    _configure(sys.argv[1:] if argv is None else argv)
    ended = end_signals()
    options = CONF.clickos_agent
    transport = oslo_messaging.get_rpc_transport(
        CONF, url=options.neutron_transport_url)
    neutron = ports.Neutron(transport, CONF.host, _NEUTRON_TIMEOUT_S)
    port_chains = chains.Chains(_client(CONF), neutron, _record(CONF))
    parts = [make_server(CONF, port_chains.reason),
             *make_ports(CONF, transport, neutron, port_chains),
             metrics.Endpoint(_client(CONF), options.metrics_host,
                              options.metrics_port)]
    for part in parts:
        part.start()
    LOG.info('Serving as %s', CONF.host)
    systemd.notify_once()
    ended.get()
    LOG.info('Stopping')
    for part in parts:
        part.stop()
    for part in parts:
        part.wait()
    return 0


def end_signals():
    """Return a queue that gets each SIGTERM and SIGINT from now on.

    A handler runs in the middle of what waits for it. An Event is locked at
    the begin of its wait(), so that a handler could wait for itself.
    """
    found = queue.SimpleQueue()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda number, _frame: found.put(number))
    return found


def _configure(argv):
    logging.register_options(CONF)
    conf.register_opts(CONF)
    report_opts.set_defaults(CONF)
    CONF(argv, project='clickos', prog='clickos-agent')
    logging.setup(CONF, 'clickos-agent')
    gmr.TextGuruMeditation.setup_autorun(release.Product, conf=CONF)


def _client(conf):
    return CosmosClient(conf.clickos_agent.cosmosd_socket,
                        timing.MARGIN_S)


def _record(conf):
    """:returns: where the chains in force are kept, with systemd's folder"""
    folders = os.environ.get('STATE_DIRECTORY', '').split(':')
    folder = conf.clickos_agent.state_dir or folders[0] or None
    return record.Record(folder, conf.host)


def make_ports(conf, transport, neutron, port_chains):
    """:returns: what keeps ports and chains as Neutron has them"""
    options = conf.clickos_agent
    kept = resync.ResyncLoop('chains', port_chains.run_once,
                             options.port_resync_interval)
    interfaces = options.interface_mappings
    led = resync.ResyncLoop(
        'uplinks', uplinks.Uplinks(_client(conf), neutron, interfaces,
                                   options.tunnel_ip).run_once,
        options.port_resync_interval)
    attached = devices.Devices(_client(conf), neutron)
    filters = policies.Policies(_client(conf), neutron, port_chains.restore)
    wired = wiring.Wiring(_client(conf), neutron, attached.ports,
                          filters.refused)
    judged = resync.ResyncLoop('policies',
                               _in_turn(filters.run_once, wired.run_once),
                               options.port_resync_interval)
    # A port whose link changes forwards from now on, or no more.
    reconciler = ports.Reconciler(_client(conf), neutron,
                                  options.port_resync_interval,
                                  judged.trigger)
    plugged = resync.ResyncLoop(
        'devices', _followed(attached, judged.trigger),
        options.port_resync_interval)

    def changed(event):
        # A chain may have ports that need no rules to forward.
        lost = (kept,) if event == resync.HOST else ()
        for each in (*lost, judged, led, plugged):
            each.trigger()

    hints = oslo_messaging.get_rpc_server(
        transport,
        oslo_messaging.Target(exchange=neutron_rpc.EXCHANGE,
                              topic=neutron_rpc.AGENT, server=conf.host),
        [ports.Hints(reconciler, kept, judged, led, plugged)],
        access_policy=oslo_messaging.DefaultRPCAccessPolicy)
    links = {'tunnel_ip': options.tunnel_ip, 'interfaces': interfaces,
             'release': release.version()}
    return [hints, reconciler, kept, judged, led, plugged,
            resync.EventTrigger(_client(conf), changed),
            heartbeat.Heartbeat(neutron, options.report_interval, links,
                                load.Load(_client(conf)),
                                heartbeat.installed(_client(conf)))]


def _in_turn(first, second):
    """:returns: a call of both; a port without rules drops all frames"""
    def run_both():
        pauses = first(), second()
        return min(filter(None, pauses), default=None)
    return run_both


def _followed(attached, hint):
    """:returns: a poll of devices that hints when it changed them"""
    def run_and_hint():
        before = attached.ports()
        pause_s = attached.run_once()
        if attached.ports() != before:
            hint()
        return pause_s
    return run_and_hint


def make_server(conf, reason):
    """Return the RPC server for clickos-api, not started.

    :param reason: returns why a port chain is not ready, or None
    """
    return oslo_messaging.get_rpc_server(
        oslo_messaging.get_rpc_transport(conf),
        oslo_messaging.Target(topic=client_rpc.TOPIC, server=conf.host),
        [rpc.Endpoint(_client(conf), reason)],
        access_policy=oslo_messaging.DefaultRPCAccessPolicy)


if __name__ == '__main__':
    sys.exit(main())
