# SPDX-License-Identifier: Apache-2.0
"""Tacker's conductor, without the options that its import registers.

They have other definitions than those of keystonemiddleware, which the tests
of clickos-api load in the same process.
"""

from oslo_config import cfg
from tacker.conductor import conductor_server

cfg.CONF.unregister_opts(conductor_server.OPTS, 'keystone_authtoken')
