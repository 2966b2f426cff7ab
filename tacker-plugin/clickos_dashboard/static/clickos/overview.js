// SPDX-License-Identifier: Apache-2.0
// Shows the rates of all guests together, and which guests lose packets. An
// answer has the counters of a few guests; the next one those that follow.
(function () {
  'use strict';
  const EVERY_MS = 5000;
  const KINDS = ['received', 'sent', 'dropped'];
  const before = new Map(), rates = new Map();
  let next = 0;

  function take(guest) {
    const old = before.get(guest.id);
    if (guest.error) {
      before.delete(guest.id);
      rates.delete(guest.id);
      return;
    }
    if (old && guest.at_ms > old.at_ms) {
      const seconds = (guest.at_ms - old.at_ms) / 1000;
      rates.set(guest.id, KINDS.map(function (kind) {
        return Math.max(0, guest[kind] - old[kind]) / seconds;
      }));
    }
    before.set(guest.id, guest);
  }

  function show(box, entries) {
    KINDS.forEach(function (kind, i) {
      let sum = 0;
      for (const each of rates.values()) {
        sum += each[i];
      }
      box.querySelector('[data-rate=' + kind + ']').textContent =
        rates.size ? Math.round(sum) : '–';
    });
    const calm = document.getElementById('clickos-untroubled');
    for (const entry of entries) {
      const found = rates.get(entry.dataset.server);
      const dropped = found ? Math.round(found[2]) : 0;
      entry.hidden = dropped === 0;
      entry.querySelector('span').textContent =
        dropped + ' ' + calm.dataset.dropped;
    }
    calm.hidden = calm.parentElement.querySelectorAll(
      'li:not(#clickos-untroubled):not([hidden])').length > 0;
  }

  async function ask(box) {
    const entries = [...document.querySelectorAll('[data-server]')];
    const query = new URLSearchParams(), most = Number(box.dataset.most);
    for (const entry of entries.slice(next, next + most)) {
      query.append('server', entry.dataset.server);
    }
    next = next + most < entries.length ? next + most : 0;
    const answer = await fetch(box.dataset.url + '?' + query, {
      credentials: 'same-origin',
      headers: {'X-Requested-With': 'XMLHttpRequest'}
    });
    const body = await answer.json();
    document.getElementById('clickos-rates-error').textContent =
      body.error || '';
    (body.guests || []).forEach(take);
    show(box, entries);
  }

  async function turn() {
    const box = document.getElementById('clickos-rates');
    if (box && !document.hidden) {
      try {
        await ask(box);
      } catch (problem) {
        document.getElementById('clickos-rates-error').textContent =
          String(problem);
      }
    }
    setTimeout(turn, EVERY_MS);
  }
  turn();
}());
