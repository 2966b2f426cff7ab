# SPDX-License-Identifier: Apache-2.0
"""What becomes of single commands: names of the demonstration, and make."""

import re

from clickos_lab.config import hosts

#: Of these, make runs the suite itself, or the suite has done it.
THIS_RUN = ('demo', 'lint', 'unit', 'test', 'integration', 'soak')
#: They remove what the suite runs on, which stops it at its end.
ENDS_HOST = ('lab-down', 'clean-demo')
#: Builds of many minutes, for which the short run has no time.
LONG = ('build', 'click', 'csars', 'image', 'packages')
#: The most seconds of a command, and of a long build next to other work.
LIMIT_S, LONG_S = 600, 1800
_MAKE = re.compile(r'make\s+([\w-]+)')
_VNF = re.compile(r'--vnf (\S+)')
_CLIENT = re.compile(r'netns exec (\S+) ping \D*\d+ (\S+)')


def not_run(statement, short):
    """Return why a command does not run here, or None."""
    found = _MAKE.match(statement)
    target = found[1] if found else None
    if target in THIS_RUN:
        return 'is this run'
    if target in ENDS_HOST:
        return 'ends the host'
    return 'in make integration' if short and target in LONG else None


def limit_s(statement):
    """Return how many seconds a command may take."""
    found = _MAKE.match(statement)
    return LONG_S if found and found[1] in LONG else LIMIT_S


def names(usage, state):
    """Map the words that stand for things of the demonstration to these.

    :param usage: what the demonstration has printed, a :class:`Block`
    :param state: paths.State
    """
    text = '\n'.join(usage.statements)
    vnf, client = _VNF.search(text)[1], _CLIENT.search(text)
    return {'VNF_ID': vnf, 'CLIENT': client[1], 'SERVER_IP': client[2],
            'HOST': hosts.PROCESS.name, 'admin-openrc':
            str(state.root / 'openrc-admin'),
            '/var/lib/clickos/valed': str(state.data / 'valed')}


def named(block, known):
    """Return a block's commands with the demonstration's names in them."""
    if not known:
        return block.statements
    word = re.compile(r'(?<![\w$-])(' + '|'.join(map(re.escape, known))
                      + r')(?![\w=-])')
    return tuple(word.sub(lambda found: known[found[1]], statement)
                 for statement in block.statements)
