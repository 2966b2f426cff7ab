# SPDX-License-Identifier: Apache-2.0
"""Connections to a tenant's VIM, made once and kept."""

import collections
import hashlib
import json
import threading

import openstack
from oslo_config import cfg
from oslo_utils import strutils

from tacker_clickos import conf
from tacker_clickos import outages
from tacker_clickos import urls

MAX_CONNECTIONS = 64

_lock = threading.Lock()
_connections = collections.OrderedDict()


def connect(access_info):
    """Return the openstacksdk connection for a VIM.

    Two calls with the same credentials get the same connection; the least
    recently used one goes when there are too many.

    :param access_info: what Tacker keeps of a VIM; never logged
    :raises: UrlRefused, for a VIM registered before the operator's list
    """
    key = _key(access_info)
    with _lock:
        connection = _connections.pop(key, None) or _open(access_info)
        _connections[key] = connection
        if len(_connections) > MAX_CONNECTIONS:
            _connections.popitem(last=False)
    return connection


def _key(access_info):
    """Hash the credentials, so that none lie about as a dict key."""
    text = json.dumps(access_info, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def _open(access_info):
    conf.register()
    urls.require('auth_url of the VIM', access_info['auth_url'])
    connection = openstack.connect(
        load_yaml_config=False, load_envvars=False,
        auth_url=access_info['auth_url'],
        username=access_info.get('username'),
        user_id=access_info.get('user_id'),
        password=access_info.get('password'),
        project_name=access_info.get('project_name'),
        project_id=access_info.get('project_id'),
        user_domain_name=access_info.get('user_domain_name', 'Default'),
        project_domain_name=access_info.get('project_domain_name', 'Default'),
        region_name=access_info.get('region') or None,
        verify=strutils.bool_from_string(
            access_info.get('cert_verify', True), default=True),
        api_timeout=cfg.CONF.clickos.request_timeout,
        app_name='tacker-clickos')
    connection.config.set_session_constructor(outages.Session)
    return connection
