# SPDX-License-Identifier: Apache-2.0
"""The table in a VNF's README: the RFCs that it follows, with their tests."""

from clickos_lab.duties import rows

_HEAD = '| standard | duties, each tested by the suite `duties` |'
_RULE = '|---|---|'


def table(vnf):
    """Return the lines of a VNF's table; none without duties."""
    found = {}
    for row in rows.DUTIES:
        if vnf in row.vnfs:
            standard, _, clause = row.rfc.partition(', ')
            words = f'{row.name} ({clause})' if clause else row.name
            found.setdefault(standard, []).append(words)
    if not found:
        return []
    return [_HEAD, _RULE, *(f'| {standard} | {"; ".join(duties)} |'
                            for standard, duties in sorted(found.items()))]


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
