# SPDX-License-Identifier: Apache-2.0
"""Judges pages by axe-core: WCAG 2.1, levels A and AA."""

from clickos_lab import axe

_AUDIT = '''
const done = arguments[arguments.length - 1];
axe.run({include: [['#content_body']]}, {runOnly: [
  'wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa']}).then(found => done(
    found.violations.flatMap(fault => fault.nodes.map(
      node => fault.id + ' ' + node.target.join(' ') + ': ' +
              node.failureSummary))));
'''


def faults(driver):
    """Return what is wrong with the page that a browser shows."""
    driver.execute_script(axe.script())
    return driver.execute_async_script(_AUDIT)
