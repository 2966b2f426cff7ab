# SPDX-License-Identifier: Apache-2.0
"""How a change of a guest, or an update of a VNF, ends.

Each outcome has one word and one text. clickos-api, the Tacker plugin, the
clients and the dashboard take both from here; docs/interfaces.md lists them.
"""

REFUSED, LOST, UNKNOWN = 'refused', 'lost', 'unknown'

TEXTS = {
    REFUSED: 'nothing changed',
    LOST: 'the guest does not have the change and will not get it; send it'
          ' again',
    UNKNOWN: 'the guest may have the change; read its values',
}
#: {code: (outcome, cause)} of an end without a guest's verdict. All other
#: codes are refusals.
CAUSES = {
    'not-received': (LOST, 'the change did not reach the guest'),
    'overtaken': (LOST, 'the guest took a later change first'),
    'restarted': (LOST, 'the guest started again before it answered'),
    'guest-died': (LOST, 'the guest died before it answered'),
    'server-gone': (LOST, 'the server of the guest is gone'),
    'no-guest': (UNKNOWN, 'the host has no guest of the server'),
    'bad-answer': (UNKNOWN, "the guest's answer is not of the protocol"),
    'no-verdict': (UNKNOWN, 'the guest has not answered yet'),
    'not-recorded': (UNKNOWN, 'the guest accepted the values, but they could'
                              ' not be recorded, so a restart would lose'
                              ' them; write them again'),
    'interrupted': (UNKNOWN, 'the update was interrupted; the log of'
                             ' tacker-conductor has the reason'),
}
#: cosmosd's codes of changes that its ledger has as refused, but which the
#: guest did not refuse.
_OF_LEDGER = {'timeout': 'not-received', 'dead-guest': 'guest-died',
              'stale': 'overtaken', 'internal': 'bad-answer'}


def of(code):
    """Return the outcome that a code means."""
    return CAUSES.get(code, (REFUSED,))[0]


def message(code):
    """Return the text of an end without a guest's verdict."""
    outcome, cause = CAUSES[code]
    return f'{cause}: {TEXTS[outcome]}'


def of_ledger(code, text):
    """Return code and text of an entry in cosmosd's list of refusals."""
    found = _OF_LEDGER.get(code)
    return (found, message(found)) if found else (code, text)


def no_guest(vnf_id, is_instantiated):
    """Return why a VNF has no guest that can be asked."""
    return (f'VNF instance {vnf_id} has no guest now: an operation such as a'
            ' heal replaces it; try again' if is_instantiated else
            f'VNF instance {vnf_id} has no guest: it is not instantiated')
