# SPDX-License-Identifier: Apache-2.0
"""The table in a VNF's README: the RFCs that it follows, with their tests."""

from clickos_lab.duties import rows

_HEAD = '| duty, which the suite `duties` tests | standard |'
_RULE = '|---|---|'


def table(vnf):
    """Return the lines of a VNF's table; none without duties."""
    found = [f'| {row.name} | {row.rfc} |' for row in rows.DUTIES
             if vnf in row.vnfs]
    return [_HEAD, _RULE, *found] if found else []


def updated(text, vnf):
    """Return a README with the table in its place, before the limits."""
    lines = text.splitlines()
    if _HEAD in lines:
        first = lines.index(_HEAD)
        last = first
        while last < len(lines) and lines[last].startswith('|'):
            last += 1
        lines[first:last] = table(vnf)
    elif made := table(vnf):
        at = next(number for number, line in enumerate(lines)
                  if line.startswith(('Limits: ', 'Judges of ')))
        lines[at:at] = [*made, '']
    return '\n'.join(lines) + '\n'
