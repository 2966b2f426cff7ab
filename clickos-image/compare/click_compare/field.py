# SPDX-License-Identifier: Apache-2.0
"""Configurations of other people: files stand in for their devices."""
import ipaddress
import re

from click_compare.packets import Ends
from click_compare.packets import ENDS

SECONDS = 100
_SOURCES = ('FromDevice|PollDevice|FromClickOS|FromDPDKDevice|FromHost|'
            'FromNetmapDevice')
_SINKS = ('ToDevice|ToClickOS|ToDPDKDevice|ToHost|ToHostSniffers|'
          'ToNetmapDevice')
_ARGUMENTS = r'\b(?!\s*\{)(\s*\((?:[^()]|\([^()]*\))*\))?'
_ADDRESS = r'(?<![\d.:])\d{1,3}(?:\.\d{1,3}){3}(?![\d.])'
_NETWORK = r'(\d{1,3}(?:\.\d{1,3}){3})/(\d\d?)\b'
_HOST = r'(?<![\w:])[0-9a-fA-F]{1,2}(?:[:-][0-9a-fA-F]{1,2}){5}(?![\w:])'


def without_devices(text, trace, folder):
    """Return a configuration that reads and writes files, and those."""
    text = re.sub(rf'\b(?:{_SOURCES}){_ARGUMENTS}',
                  f'FromDump({trace}, TIMING true)', text)
    written = []

    def sink(_match):
        written.append(folder / f'out{len(written)}')
        return f'ToDump({written[-1]}, SNAPLEN 0)'

    text = re.sub(rf'\b(?:{_SINKS}){_ARGUMENTS}', sink, text)
    return f'{text}\n;Script(wait {SECONDS}s, stop);\n', written


def ends(rng, text):
    """Return addresses and ports that mean something to a configuration."""
    addresses = {a for a in re.findall(_ADDRESS, text) if _is_address(a)}
    for network, bits in re.findall(_NETWORK, text):
        addresses |= _inside(rng, network, int(bits))
    hosts = {bytes(int(part, 16) for part in re.split('[:-]', host))
             for host in re.findall(_HOST, text)}
    ports = {int(port) for port in re.findall(r'port (\d+)', text)
             if int(port) < 65536}
    return Ends(sorted(addresses) + list(ENDS.addresses[:3]),
                sorted(hosts) + list(ENDS.hosts[:2]),
                sorted(ports) + list(ENDS.ports[:4]))


def _is_address(text):
    return all(int(part) < 256 for part in text.split('.'))


def _inside(rng, network, bits):
    if not _is_address(network) or bits > 32:
        return set()
    whole = ipaddress.ip_network(f'{network}/{bits}', strict=False)
    return {str(whole[rng.randrange(whole.num_addresses)]) for _ in range(2)}
