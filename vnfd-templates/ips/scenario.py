# SPDX-License-Identifier: Apache-2.0
"""The IPS with curl as attacker."""

SHARED_NETWORK = True


def check(case, vnf):
    server = f'http://{vnf.address("right")}'
    attack = ('curl', '-s', f'{server}/?f=/etc/passwd')
    vnf.serve_http('right', 80)
    vnf.run('left', 'curl', '-sf', f'{server}/')
    case.assertEqual(0, vnf.count('alerts.count'))
    _check_dropped(case, vnf, attack)
    vnf.swap()
    _check_dropped(case, vnf, attack)
    vnf.control.write('action.switch', '1')
    vnf.run('left', *attack)
    vnf.control.write('signatures.config', '"harmless"')
    alerts = vnf.count('alerts.count')
    vnf.run('left', *attack)
    case.assertEqual(alerts, vnf.count('alerts.count'))


def _check_dropped(case, vnf, attack):
    alerts = vnf.count('alerts.count')
    client = vnf.start('left', *attack, '--max-time', '3')
    vnf.until(lambda: vnf.count('alerts.count') > alerts, 'no alert')
    vnf.wait(client)
    case.assertNotEqual(0, client.returncode, 'a signature passes')
