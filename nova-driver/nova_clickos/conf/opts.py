# SPDX-License-Identifier: Apache-2.0
"""What oslo-config-generator lists under the name ``nova_clickos``."""

from nova_clickos.conf import clickos


def list_opts():
    """:returns: list of (group, options)"""
    return [(clickos.GROUP, clickos.all_opts())]
