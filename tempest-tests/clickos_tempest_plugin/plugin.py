# SPDX-License-Identifier: Apache-2.0
"""What Tempest loads."""

import os

from tempest import config
from tempest.test_discover import plugins

from clickos_tempest_plugin import config as clickos_config


class ClickOSTempestPlugin(plugins.TempestPlugin):
    """Tests, options and service clients of ClickOS."""

    def load_tests(self):
        """Return where the tests are and what their names start from."""
        here = os.path.dirname(os.path.abspath(__file__))
        return os.path.join(here, 'tests'), os.path.dirname(here)

    def register_opts(self, conf):
        """Register the plugin's options."""
        conf.register_opt(clickos_config.service_available,
                          group='service_available')
        for group, opts in (
                (clickos_config.clickos_group, clickos_config.clickos_opts),
                (clickos_config.tacker_group, clickos_config.tacker_opts)):
            conf.register_group(group)
            conf.register_opts(opts, group=group)

    def get_opt_lists(self):
        """List the plugin's options."""
        return clickos_config.list_opts()

    def get_service_clients(self):
        """Return what makes os_primary.clickos, sfc and tacker."""
        return [
            dict(config.service_client_config(group), name=name,
                 service_version=f'{name}.v1', client_names=clients,
                 module_path=f'clickos_tempest_plugin.services.{module}')
            for name, group, module, clients in (
                ('clickos', 'clickos', 'clickos', ['ClickOSClient']),
                ('sfc', 'network', 'sfc', ['SfcClient']),
                ('tacker', 'nfv-orchestration', 'tacker', ['TackerClient']))]
