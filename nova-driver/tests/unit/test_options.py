# SPDX-License-Identifier: Apache-2.0
"""Every option is published, typed and explained."""

import os
import tempfile

from oslo_config import cfg
import testtools

import clickos_agent.conf
import neutron_clickos.conf
from nova_clickos.conf import opts

OURS = ('clickos_agent', 'ml2_vale')
#: keystoneauth explains the other options of [clickos] itself.
CLICKOS = ('cosmosd_socket', 'cosmosd_timeout', 'create_timeout',
           'allow_process_host', 'ring_slots', 'max_image_mib')


class OptionsTest(testtools.TestCase):

    def published(self):
        for module in (opts, neutron_clickos.conf, clickos_agent.conf):
            for group, options in module.list_opts():
                yield getattr(group, 'name', group), options

    def test_names(self):
        found = {group: {option.dest for option in options}
                 for group, options in self.published()}
        self.assertEqual({'host'}, found['DEFAULT'])
        self.assertEqual({'switch_mappings', 'tunnel_switch'},
                         found['ml2_vale'])
        self.assertEqual({'cosmosd_socket',
                          'interface_mappings', 'metrics_host',
                          'metrics_port', 'neutron_transport_url',
                          'port_resync_interval', 'report_interval',
                          'state_dir', 'tunnel_ip'},
                         found['clickos_agent'])
        self.assertLessEqual(
            set(CLICKOS) | {'auth_type', 'auth_url', 'timeout',
                            'endpoint_override'}, found['clickos'])

    def test_former_names(self):
        """Files of the release before 1.0 are read as they are."""
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'agent.conf')
            with open(path, 'w') as file:
                file.write('[clickos_agent]\nport_look_interval = 7\n')
            conf = cfg.ConfigOpts()
            clickos_agent.conf.register_opts(conf)
            conf(['--config-file', path], project='test')
            self.assertEqual(7, conf.clickos_agent.port_resync_interval)

    def test_help(self):
        ours = [option for group, options in self.published()
                for option in options
                if group in OURS or option.dest in CLICKOS]
        self.assertGreater(len(ours), len(CLICKOS))
        for option in ours:
            self.assertGreater(len(option.help), 40, option.dest)
