# SPDX-License-Identifier: Apache-2.0
"""Connections to OpenStack as the administrator and as the tenant."""

import openstack

from clickos_lab.config import site


def admin(settings):
    """Return a connection as the administrator."""
    return _connect(settings, 'admin')


def demo(settings):
    """Return a connection as the tenant, an ordinary member."""
    return _connect(settings, 'demo')


def _connect(settings, name):
    """Users and projects of the lab have the same names."""
    return openstack.connect(
        load_yaml_config=False, load_envvars=False,
        auth_url=settings.url('keystone', '/v3'), username=name,
        password=settings.passwords[name], project_name=name,
        user_domain_id='default', project_domain_id='default',
        region_name=site.REGION, app_name='clickos-lab',
        cacert=settings.authority)
