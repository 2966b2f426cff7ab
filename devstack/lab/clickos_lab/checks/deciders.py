# SPDX-License-Identifier: Apache-2.0
"""Only the modules that decide get at objects, and SECURITY.md names them.

An id becomes an object, a text a parsed value, in few functions. RULES says
which modules may use the tables of a database or the getters of an SDK. The
functions that SECURITY.md lists exist.
"""

import ast
import dataclasses
import functools
import pathlib
import re
import sys

from clickos_lab import checks
from clickos_lab.checks import decisions
from clickos_lab import paths

_SECURITY = 'SECURITY.md'


@dataclasses.dataclass(frozen=True)
class Rule:
    """Names that only some modules of a package may use.

    :param what: the names, for the message
    :param package: its folder
    :param names: matches the beginning of dotted names in the code
    :param modules: paths below the folder that may use them
    """

    what: str
    package: str
    names: re.Pattern
    modules: frozenset


def _rule(what, package, names, modules):
    return Rule(what, package, re.compile(names),
                frozenset(f'{each}.py' for each in modules.split()))


RULES = (
    _rule('tables of clickos-api', 'tacker-plugin/clickos_api',
          r'clickos_api\.db\.models\b',
          'operations/shared_limits state/desired_state state/fusions'
          ' state/history state/secrets'
          ' db/migrations/env'),
    _rule('keys of states', 'tacker-plugin/clickos_api',
          r'keys\.(of_server|of_state)\b',
          'operations/authority state/desired_state outside/ownership'),
    _rule('getters of Nova, Tacker and Neutron', 'tacker-plugin/clickos_api',
          r'(\w+\.)*_?cloud\.(server|server_of_vnf|neutron)\b',
          'operations/authority operations/background operations/chains'
          ' operations/shared_limits service'),
    _rule('fusions by id', 'tacker-plugin/clickos_api',
          r'(\w+\.)*fusions\.of_chain\b', 'operations/authority'),
    _rule("Tacker's tables", 'tacker-plugin/tacker_clickos',
          r'tacker\.db\.(db_sqlalchemy|nfvo|vnfm)\b',
          'leftovers onboarding owned package_change tacker_db '
          'stale_operations vnfds'),
    _rule('getters of the SDK', 'tacker-plugin/tacker_clickos',
          r'(\w+\.)*_?connection\.(compute|network|image)\.\w',
          'connectivity networks own placement ports servers'),
    _rule("Neutron's tables", 'nova-driver/neutron_clickos',
          r'(neutron\.db|neutron\.plugins\.ml2\.(models|db)'
          r'|networking_sfc\.db)\b',
          'filters guards port_rpc qos sfc/claims sfc/plugin sfc/sfc_db'
          ' uplinks wiring'),
    _rule("Horizon's and the SDK's getters",
          'tacker-plugin/clickos_dashboard',
          r'(openstack_dashboard\.api|openstack\.connection)\b',
          'api/chains api/networks api/ports api/sessions chains/views'
          ' guests/editor guests/tabs guests/views overview/hosts'
          ' topology/views vnfs/workflows'))


def names(source):
    """Return the dotted names that a module imports or reads.

    An alias counts as what it stands for.
    """
    tree = ast.parse(source)
    found, aliases = set(), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found.update(each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom):
            for each in node.names:
                full = f'{node.module or ""}.{each.name}'
                found.add(full)
                if each.asname:
                    aliases[each.asname] = each.name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            found.add(_dotted(node, aliases))
    return found


def _dotted(node, aliases):
    parts = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name):
        parts.append(aliases.get(node.id, node.id))
    return '.'.join(reversed(parts))


def breaches(rule, files):
    """Return what is wrong with a package.

    :param files: {path below the folder: text}
    """
    users = {path for path, text in files.items()
             if any(rule.names.match(name) for name in names(text))}
    for path in sorted(users - rule.modules):
        yield (f'{rule.package}/{path}: uses {rule.what}; ask one of'
               f' {", ".join(sorted(rule.modules))}')
    for path in sorted(rule.modules - users):
        yield (f'{rule.package}/{path}: uses no {rule.what}; take it off its'
               ' rule in checks/deciders.py')


def main():
    """Check every package, and SECURITY.md."""
    problems = []
    for rule in RULES:
        folder = paths.REPO / rule.package
        files = {path.relative_to(folder).as_posix(): path.read_text()
                 for path in folder.rglob('*.py')
                 if 'versions' not in path.parts}
        problems += breaches(rule, files)
    tracked = checks.tracked()
    found, count = decisions.problems(
        (paths.REPO / _SECURITY).read_text(),
        decisions.Code(tracked, _read))
    problems += [f'{_SECURITY}: {each}' for each in found]
    return checks.report(problems, len(RULES) + count, 'rules and functions')


@functools.cache
def _read(path):
    return pathlib.Path(paths.REPO / path).read_text()


if __name__ == '__main__':
    sys.exit(main())
