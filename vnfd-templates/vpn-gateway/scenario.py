# SPDX-License-Identifier: Apache-2.0
"""The VPN gateway with wireguard-go and wg as its other end."""

import base64
import os
import subprocess

INNER = '10.8.0.1'


def _key():
    """Return a private key as wg makes it."""
    return subprocess.run(['wg', 'genkey'], check=True, text=True,
                          capture_output=True).stdout.strip()


def _public(private):
    return subprocess.run(['wg', 'pubkey'], check=True, text=True,
                          input=private, capture_output=True).stdout.strip()


OURS, THEIRS = (base64.b64encode(os.urandom(32)).decode() for _ in '12')


def properties():
    """The other end's public key is known when wg is installed."""
    return {'peers': [
        {'key': _public(THEIRS), 'address': '10.9.2.9', 'port': 51999,
         'network': '10.8.0.0/24'}]}


def check(case, vnf):
    vnf.control.write('wg.private_key', OURS)
    case.assertEqual(_public(OURS), vnf.control.read('wg.public_key'))
    device = f'wg{os.getpid()}'
    _start_peer(vnf, device)
    capture = vnf.capture('right', 'udp port 51820', 1)
    case.assertEqual(5, vnf.ping('left', INNER))
    case.assertNotIn('echo', vnf.wait(capture))
    case.assertEqual(1, vnf.count('wg.handshakes'))
    vnf.serve_http('right', 80)
    page = vnf.run('left', 'curl', '-sf', f'http://{INNER}/')
    case.assertEqual(vnf.run('right', 'curl', '-sf', f'http://{INNER}/'),
                     page)
    vnf.swap()
    case.assertEqual(5, vnf.ping('left', INNER))
    case.assertEqual(1, vnf.count('wg.handshakes'), 'the swap lost the keys')
    _check_sizes(case, vnf)
    _check_strangers(case, vnf)
    _check_other_key(case, vnf, device)


def _start_peer(vnf, device):
    vnf.start('right', 'wireguard-go', '-f', device)
    vnf.until(lambda: not vnf.fails('right', 'wg', 'show', device),
              'wireguard-go does not answer')
    _set_key(vnf, device, THEIRS)
    vnf.run('right', 'wg', 'set', device, 'listen-port', 51999, 'peer',
            _public(OURS), 'allowed-ips', f'{vnf.address("left")}/32',
            'endpoint', f'{vnf.address("vif1")}:51820')
    vnf.run('right', 'ip', 'address', 'add', f'{INNER}/24', 'dev', device)
    vnf.run('right', 'ip', 'link', 'set', device, 'up', 'mtu', 1420)
    vnf.run('right', 'ip', 'route', 'add', f'{vnf.address("left")}/32',
            'dev', device)


def _set_key(vnf, device, key):
    file = vnf.folder / 'key'
    file.write_text(key)
    vnf.run('right', 'wg', 'set', device, 'private-key', file)


def _check_sizes(case, vnf):
    """1,420 bytes fit; more are fragmented, or refused with DF."""
    case.assertEqual(3, vnf.ping('left', INNER, 3, '-s', 1392, '-M', 'do'))
    case.assertEqual(3, vnf.ping('left', INNER, 3, '-s', 2000))
    case.assertIn('mtu = 1420', vnf.printed(
        'left', 'ping', '-c', 1, '-W', 20, '-s', 1400, '-M', 'do', INNER))


def _check_strangers(case, vnf):
    """Noise at the tunnel's port is refused and counted."""
    refused = vnf.count('wg.refused')
    vnf.run('right', 'sh', '-c', 'head -c 148 /dev/zero | socat -u - '
            f'UDP4-SENDTO:{vnf.address("vif1")}:51820')
    vnf.until(lambda: vnf.count('wg.refused') == refused + 1,
              'noise is not counted')
    case.assertEqual(1, vnf.ping('left', INNER, 1))


def _check_other_key(case, vnf, device):
    """An end with another key gets nothing through."""
    _set_key(vnf, device, _key())
    vnf.control.write('wg.peers', '')
    case.assertTrue(vnf.silent('left', INNER))
