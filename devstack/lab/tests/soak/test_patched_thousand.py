# SPDX-License-Identifier: Apache-2.0
"""A thousand guests on a host whose daemons have our patches."""

from clickos_lab.xen import patched
from tests.soak import test_thousand


class PatchedThousandTest(test_thousand.ThousandTest):
    """The same with patched oxenstored and xenconsoled."""

    growth = ('max_pooled_creation_growth_ratio',
              'max_new_creation_growth_ratio')

    @classmethod
    def root(cls):
        patched.build(cls.state, cls.places)
        return patched.overlay(cls.places)
