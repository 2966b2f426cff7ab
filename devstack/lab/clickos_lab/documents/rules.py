# SPDX-License-Identifier: Apache-2.0
"""What becomes of single commands: names of the demonstration, and make."""

import re

#: Of these, make runs the suite itself, or the suite has done it.
THIS_RUN = ('demo', 'lint', 'unit', 'test', 'integration', 'soak')
#: They remove what the suite runs on, which stops it at its end.
ENDS_HOST = ('lab-down', 'clean-demo')
#: Builds of many minutes, for which the short run has no time.
LONG = ('build', 'click', 'csars', 'image', 'packages')
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


def names(usage):
    """Map the words that stand for things of the demonstration to these.

    :param usage: what the demonstration has printed, a :class:`Block`
    """
    text = '\n'.join(usage.statements)
    vnf, client = _VNF.search(text)[1], _CLIENT.search(text)
    return {'VNF_ID': vnf, 'CLIENT': client[1], 'SERVER_IP': client[2]}


def named(block, known):
    """Return a block's commands with the demonstration's names in them."""
    if not known:
        return block.statements
    word = re.compile(r'(?<![\w$-])(' + '|'.join(known) + r')(?![\w=-])')
    return tuple(word.sub(lambda found: known[found[1]], statement)
                 for statement in block.statements)
