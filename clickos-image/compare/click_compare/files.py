# SPDX-License-Identifier: Apache-2.0
"""Given configurations, run by both programs on packets made for them."""
import random
import re
import subprocess

from click_compare.field import ends
from click_compare.field import without_devices
from click_compare.packets import frame
from click_compare.packets import write_pcap
from click_compare.programs import only_one_has
from click_compare.programs import run

_TIMEOUT_S = 10
# of elements under both names; what is asked here, or differs as documented
_UNASKED = frozenset((
    'handlers', 'config', 'cycles', 'ports', 'tickets', 'home_thread',
    'scheduled', 'rate', 'bit_rate', 'byte_rate', 'notifier', 'filename',
    'program', 'dump', 'packet_filepos', 'filesize', 'signal', 'signals',
    'class', 'name', 'text', 'elapsed', 'log', 'now', 'capacity',
    'mappings', 'table', 'active'))


def compare_file(options, path, folder):
    """Return how one configuration went, and what differed."""
    text = path.read_text(encoding='latin1')
    rng = random.Random(f'{options.seed}.{path.name}')
    trace, config = folder / 'in.pcap', folder / 'c.click'
    here = ends(rng, text)
    write_pcap(trace, [frame(rng, here) for _ in range(options.packets)],
               interval_us=1000000)
    text, dumps = without_devices(text, trace, folder)
    config.write_text(text, encoding='latin1')
    programs = options.click, options.other
    accepted = [_accepts(program, config, path) for program in programs]
    if not all(accepted):
        return _refused(*accepted), ''
    handlers = _common(programs, config, path)
    results = [run(program, config, handlers, dumps, path.parent)
               for program in programs]
    return _outcome(*results)


def _refused(ours, other):
    if ours:
        return 'other refuses'
    return 'we refuse' if other else 'both refuse'


def _outcome(ours, other):
    if isinstance(other[0], str):
        return f'other {other[0]}', ''
    if ours == other:
        return 'same', ''
    if sorted(ours[1]) == sorted(other[1]):
        return 'same in another order', ''
    return 'differ', only_one_has(ours[1], other[1])


def _quick(program, config, path, *names):
    command = [program, '--simtime', '-q', str(config)]
    for name in names:
        command += ['-h', name]
    try:
        return subprocess.run(command, capture_output=True, check=False,
                              cwd=path.parent, stdin=subprocess.DEVNULL,
                              timeout=_TIMEOUT_S)
    except subprocess.TimeoutExpired:
        return None


def _accepts(program, config, path):
    done = _quick(program, config, path)
    return done is not None and done.returncode == 0


def _common(programs, config, path):
    """Return the read handlers that both programs have."""
    listed = _quick(programs[0], config, path, 'list', 'version').stdout
    names = [line for line in listed.decode('latin1').split('\n')
             if re.fullmatch(r'[\w@/]+', line) and not line.isdigit()]
    asked = [f'{name}.handlers' for name in names] + ['version']
    sets = [_handlers(_quick(program, config, path, *asked).stdout)
            for program in programs]
    return sorted(sets[0] & sets[1]) + ['requirements']


def _handlers(output):
    found, element = set(), None
    for line in output.decode('latin1').split('\n'):
        head = re.fullmatch(r'([\w@/]+)\.handlers:', line)
        entry = re.fullmatch(r'(\S+)\tr\w*', line)
        if head:
            element = head.group(1)
        elif entry and element and entry.group(1) not in _UNASKED:
            found.add(f'{element}.{entry.group(1)}')
    return found
