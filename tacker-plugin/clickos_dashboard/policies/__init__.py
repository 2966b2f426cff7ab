# SPDX-License-Identifier: Apache-2.0
"""Which policy file holds the rules of which service.

An operator who changes a service's rules writes the same rules into the file
of FILES, below Horizon's POLICY_FILES_PATH.
"""

import pathlib

_FOLDER = pathlib.Path(__file__).parent

#: Neutron's rules of chains, which Horizon does not have.
CHAINS = 'networking-sfc'
FILES = {'clickos': 'clickos_policy.yaml',
         'nfv-orchestration': 'tacker_policy.yaml',
         CHAINS: 'neutron_policy.yaml'}
DEFAULTS = {'clickos': str(_FOLDER / 'clickos.yaml'),
            'nfv-orchestration': str(_FOLDER / 'tacker.yaml'),
            CHAINS: str(_FOLDER / 'networking_sfc.yaml')}
