# SPDX-License-Identifier: Apache-2.0
"""Options of the driver, in nova.conf."""

import nova.conf

from nova_clickos.conf import clickos

CONF = nova.conf.CONF
clickos.register_opts(CONF)
