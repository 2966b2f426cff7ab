# SPDX-License-Identifier: Apache-2.0
"""The IPS with curl as attacker."""

SHARED_NETWORK = True


def check(case, vnf):
    server = f'http://{vnf.address("right")}'
    attack = ('curl', '-s', '--max-time', '0.5', f'{server}/?f=/etc/passwd')
    vnf.serve('right', 80, 'python3', '-m', 'http.server', 80)
    vnf.run('left', 'curl', '-sf', f'{server}/')
    case.assertEqual(0, vnf.count('alerts.count'))
    case.assertTrue(vnf.fails('left', *attack), 'a signature passes')
    case.assertGreater(vnf.count('alerts.count'), 0)
    vnf.swap()
    case.assertTrue(vnf.fails('left', *attack), 'a signature passes')
    vnf.control.write('action.switch', '1')
    case.assertFalse(vnf.fails('left', *attack), 'detection only')
    vnf.control.write('signatures.config', '"harmless"')
    alerts = vnf.count('alerts.count')
    case.assertFalse(vnf.fails('left', *attack))
    case.assertEqual(alerts, vnf.count('alerts.count'))
