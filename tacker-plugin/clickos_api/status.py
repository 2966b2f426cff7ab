# SPDX-License-Identifier: Apache-2.0
"""clickos-status: whether a cloud is ready for this release.

``clickos-status upgrade check`` runs with the configuration of clickos-api
before its services start. It exits with 0 if all is well, 1 after a warning,
2 after a failure.
"""

import sys

from clickos_client import release
from keystoneauth1 import exceptions as ks_exc
from keystoneauth1 import loading as ks_loading
from oslo_config import cfg
from oslo_policy import opts as policy_opts
from oslo_policy import policy as oslo_policy
from oslo_upgradecheck import common_checks
from oslo_upgradecheck import upgradecheck

from clickos_api import conf as api_conf
from clickos_api.db import schema
from clickos_api import errors
from clickos_api.http import routes
from clickos_api.state import desired_state
from clickos_api.state import secrets

_AGENTS = '/v2.0/agents?agent_type=ClickOS%20agent'
_IMAGES = '/v2/images?limit=1000'
#: Pages of that many images are read.
_PAGES = 100
_XEN = 'trait:CUSTOM_CLICKOS_XEN'
SUCCESS, WARNING, FAILURE = upgradecheck.Code

#: Names of a list, before it is cut.
_SHOWN = 5


def _result(code=SUCCESS, details=None):
    return upgradecheck.Result(code, details)


def _names(names):
    """Return names for a terminal; hosts report some of them."""
    names = sorted(''.join(each if each.isprintable() else '?'
                           for each in name) for name in names)
    more = len(names) - _SHOWN
    return ', '.join(names[:_SHOWN]) + (f' and {more} more' if more > 0
                                        else '')


class Checks(upgradecheck.UpgradeCommands):
    """What clickos-status looks at.

    :param conf: the configuration of clickos-api
    """

    def __init__(self, conf):
        self._conf = conf

    def _schema(self):
        """Tables that this release can use, with all its expansions."""
        store = desired_state.Store(self._conf)
        try:
            with store.reader() as session:
                why = schema.fault(session)
                found = schema.current(session.connection())
        except errors.ApiError as exc:
            return _result(FAILURE, f'database: {exc.message}')
        if why:
            return _result(FAILURE, why)
        known = schema.scripts()
        head = known.get_current_head()
        if found != head and found in {
                each.revision for each in known.walk_revisions()}:
            return _result(WARNING, f'revision {found}, newest is {head}: run'
                           ' clickos-db-manage upgrade when no service of an'
                           ' earlier release runs')
        return _result()

    def _keys(self):
        """Key files that open every secret."""
        kept = secrets.Secrets(desired_state.Store(self._conf),
                               self._conf.clickos_api)
        try:
            if not self._conf.clickos_api.secret_key_files \
                    and not kept.count():
                return _result(WARNING, 'no [clickos_api] secret_key_files:'
                               ' tenants cannot keep secrets')
            lost, count = kept.closed(), kept.count()
        except errors.ApiError as exc:
            return _result(FAILURE, exc.message)
        if lost:
            return _result(FAILURE, f'{len(lost)} of {count} secrets open'
                           f' with no key: {_names(lost)}')
        return _result()

    def _policy(self):
        """A policy file whose every rule this release knows."""
        found = common_checks.check_policy_json(self, self._conf)
        if found.code != SUCCESS:
            return found
        self._conf.register_opts(policy_opts._options,
                                 group=policy_opts._option_group)
        enforcer = oslo_policy.Enforcer(self._conf)
        enforcer.register_defaults(routes.list_rules())
        try:
            enforcer.load_rules(force_reload=True)
        except (ValueError, cfg.Error, OSError) as exc:
            return _result(FAILURE, f'policy file: {exc}'[:300])
        unknown = [name for name in enforcer.file_rules
                   if name.startswith('clickos:')
                   and name not in enforcer.registered_rules]
        if unknown:
            return _result(FAILURE, 'policy file: no such rule:'
                           f' {_names(unknown)}')
        return _result()

    def _agents(self):
        """Agents that are of this release or of the one before."""
        try:
            agents = self._get('network', _AGENTS)['agents']
        except (ks_exc.ClientException, KeyError, ValueError) as exc:
            return _result(FAILURE, f'Neutron: {exc}'[:300])
        if not agents:
            return _result(WARNING, 'Neutron knows no ClickOS agent')
        own, old, silent = release.version(), {}, set()
        for agent in agents:
            found = (agent.get('configurations') or {}).get('release')
            if not agent.get('alive'):
                silent.add(agent['host'])
            elif not release.are_neighbors(found, own):
                old[agent['host']] = found or 'unknown'
        if old:
            return _result(FAILURE, f'this is {own}, and agents may be one'
                           ' minor release apart: ' + _names(
                               f'{host} has {found}'
                               for host, found in old.items()))
        if silent:
            return _result(WARNING,
                           f'agents that do not answer: {_names(silent)}')
        return _result()

    def _engines(self):
        """An active image in Glance for each host.

        A process host needs the image of its engine, a Xen host one that is
        for such hosts.
        """
        try:
            agents = self._get('network', _AGENTS)['agents']
            images = self._images()
        except (ks_exc.ClientException, KeyError, ValueError) as exc:
            return _result(FAILURE, f'Neutron or Glance: {exc}'[:300])
        known = {image.get('os_hash_value') for image in images
                 if image.get('status') == 'active'}
        if not known - {None}:
            return _result(WARNING, 'Glance shows no image with a checksum')
        others = {image.get('os_hash_algo') for image in images} - {
            'sha256', None}
        bad = {}
        for agent in agents:
            found = agent.get('configurations') or {}
            engine = found.get('engine_sha256')
            if found.get('host_kind') == 'process' and engine \
                    and engine not in known:
                bad[agent['host']] = engine[:12]
        if bad and others:
            return _result(WARNING, 'Glance keeps checksums of'
                           f' {_names(others)}; the images of these hosts'
                           f' were not compared: {_names(bad)}')
        if bad:
            return _result(FAILURE, 'no active image has the engine of: '
                           + _names(f'{host} (sha256 {start}...)'
                                    for host, start in bad.items()))
        xen = {agent['host'] for agent in agents if (agent.get(
            'configurations') or {}).get('host_kind') == 'xen'}
        if xen and not any(image.get('status') == 'active'
                           and image.get(_XEN) == 'required'
                           for image in images):
            return _result(WARNING, f'no active image has {_XEN}=required,'
                           f' and these are Xen hosts: {_names(xen)}')
        return _result()

    def _images(self):
        """Return all images, page by page."""
        images, path = [], _IMAGES
        for _page in range(_PAGES):
            found = self._get('image', path)
            images += found['images']
            path = found.get('next')
            if not path:
                break
        return images

    def _get(self, service_type, path):
        group = self._conf.nova
        session = ks_loading.load_session_from_conf_options(
            self._conf, 'nova', auth=ks_loading.load_auth_from_conf_options(
                self._conf, 'nova'))
        return session.get(path, endpoint_filter={
            'service_type': service_type,
            'interface': group.valid_interfaces,
            'region_name': group.region_name}).json()

    _upgrade_checks = (
        ('Tables of the database', _schema),
        ('Keys of secrets', _keys),
        ('Policy file', _policy),
        ('Releases of agents', _agents),
        ('Images and engines', _engines),
    )


def main(argv=None):
    """Entry point of the console script.

    :returns: 0, or 1 after a warning, 2 after a failure
    """
    conf = api_conf.register(cfg.ConfigOpts())
    return upgradecheck.main(
        conf, api_conf.PROJECT, Checks(conf),
        sys.argv[1:] if argv is None else argv,
        api_conf.files_from_environment())
