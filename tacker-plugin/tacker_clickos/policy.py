# SPDX-License-Identifier: Apache-2.0
"""The rules of Tacker's policy file that the filter asks for."""

import re

from oslo_policy import policy as oslo_policy
from tacker.common import exceptions as tacker_exceptions
from tacker import conf as tacker_conf
from tacker.policies import vnf_lcm
from tacker.policies import vnf_package
from tacker import policy

from tacker_clickos import exception

STOCK_SCRIPTS = 'clickos:stock_scripts'

RULES = [
    oslo_policy.DocumentedRuleDefault(
        name=STOCK_SCRIPTS, check_str='role:admin',
        description="""
Upload packages with scripts for Tacker's stock driver, and name such a script
in a request. tacker-conductor runs it as its own user. Without ``[clickos]
stock_driver`` nobody can.
""", operations=[
            {'method': 'PUT',
             'path': '/vnf_packages/{id}/package_content'},
            {'method': 'POST',
             'path': '/vnf_instances/{id}/instantiate'}])]

#: Rules by API and method, with the path; the last word of one may name it.
#: Tacker has none for subscriptions: they are for those who may make VNFs.
_ACTIONS = {
    ('lifecycle', 'POST'): (
        (re.compile(r'/(?:vnf_instances|subscriptions)/?\Z'),
         vnf_lcm.VNFLCM % 'create'),
        (re.compile(r'/vnf_(?:instances|lcm_op_occs)/[^/]+/(\w+)/?\Z'),
         vnf_lcm.VNFLCM)),
    ('lifecycle', 'PATCH'): (
        (re.compile(r'/vnf_instances/[^/]+/?\Z'),
         vnf_lcm.VNFLCM % 'update_vnf'),),
    ('lifecycle', 'DELETE'): (
        (re.compile(r'/subscriptions/[^/]+/?\Z'), vnf_lcm.VNFLCM % 'delete'),),
    ('packages', 'POST'): (
        (re.compile(r'/vnf_packages/?\Z'), vnf_package.VNFPKGM % 'create'),),
    ('packages', 'PATCH'): (
        (re.compile(r'/vnf_packages/[^/]+/?\Z'),
         vnf_package.VNFPKGM % 'patch'),),
    ('packages', 'PUT'): (
        (re.compile(r'/vnf_packages/[^/]+/package_content/?\Z'),
         vnf_package.VNFPKGM % 'upload_package_content'),)}


def require(context, api, method, path):
    """Refuse what Tacker's policy refuses, before the filter works for it.

    Tacker asks again. With enhanced_tacker_policy only Tacker knows what a
    rule is about.

    :param context: Tacker's, of the request; the object of the path is of
        its project (owned.py)
    :raises: NotAllowed
    """
    action = _action(api, method, path)
    if action is None or context.is_admin \
            or tacker_conf.CONF.oslo_policy.enhanced_tacker_policy:
        return
    try:
        context.can(action, target={'project_id': context.project_id,
                                    'user_id': context.user_id})
    except tacker_exceptions.Forbidden as refused:
        raise exception.NotAllowed(reason=str(refused))


def _action(api, method, path):
    for pattern, action in _ACTIONS.get((api, method), ()):
        found = pattern.match(path)
        if found:
            return action % found[1] if found.groups() else action
    return None


def list_rules():
    """Return the rules, for oslo.policy's generators."""
    return RULES


def may_bring_scripts(context):
    """Return whether a request may make Tacker's conductor run a script."""
    policy.init()
    enforcer = policy._ENFORCER
    for rule in RULES:
        if rule.name not in enforcer.registered_rules:
            enforcer.register_default(rule)
    return bool(context.can(STOCK_SCRIPTS, target={}, fatal=False))
