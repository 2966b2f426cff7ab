# SPDX-License-Identifier: Apache-2.0
"""All duties, in the order of the table."""

from clickos_lab.duties import balancing
from clickos_lab.duties import duty
from clickos_lab.duties import forwarding
from clickos_lab.duties import inspection
from clickos_lab.duties import messages
from clickos_lab.duties import neighbors
from clickos_lab.duties import relays
from clickos_lab.duties import stateful
from clickos_lab.duties import subscribers
from clickos_lab.duties import translation
from clickos_lab.duties import version6

_MODULES = (neighbors, forwarding, translation, inspection, relays, messages,
            stateful, version6, balancing, subscribers)
DUTIES = sorted(duty.DUTIES, key=lambda row: [
    module.__name__ for module in _MODULES].index(row.check.__module__))
