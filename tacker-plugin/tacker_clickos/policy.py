# SPDX-License-Identifier: Apache-2.0
"""The rule of ours among Tacker's, in its policy file."""

from oslo_policy import policy as oslo_policy
from tacker import policy

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
