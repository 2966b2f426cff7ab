// SPDX-License-Identifier: Apache-2.0
// Shows the rates of a chain's hops and asks again while the page is seen.
(function () {
  'use strict';
  const EVERY_MS = 2000;
  let before = null;

  function cells(name, now, old, seconds) {
    const rate = function (key) {
      return old ? Math.round(Math.max(0, now[key] - old[key]) / seconds) : '';
    };
    const live = 'pairs' in now ? now.live_pairs + '/' + now.pairs : '';
    const bits = old ? 8 * rate('bytes') : '';
    return [name, live, rate('packets'), bits, rate('dropped'),
            now.packets, now.dropped, now.looped || 0];
  }

  function row(texts) {
    const line = document.createElement('tr');
    for (const text of texts) {
      line.appendChild(document.createElement('td')).textContent = text;
    }
    return line;
  }

  function show(table, answer) {
    const now = {at_ms: performance.now(), counters: answer.counters};
    const seconds = before ? (now.at_ms - before.at_ms) / 1000 : 0;
    const old = before && before.counters.hops.length ===
      now.counters.hops.length ? before.counters : null;
    const rows = [row(cells(table.dataset.entered, now.counters, old,
                            seconds))];
    now.counters.hops.forEach(function (hop, i) {
      rows.push(row(cells(answer.names[i], hop, old && old.hops[i],
                          seconds)));
    });
    table.tBodies[0].replaceChildren(...rows);
    before = now;
  }

  async function turn() {
    const table = document.getElementById('clickos-chain');
    const error = document.getElementById('clickos-chain-error');
    if (table && !document.hidden) {
      try {
        const answer = await fetch(table.dataset.url, {
          credentials: 'same-origin',
          headers: {'X-Requested-With': 'XMLHttpRequest'}
        });
        const body = await answer.json();
        error.textContent = body.error || '';
        if (!body.error) {
          show(table, body);
        }
      } catch (problem) {
        error.textContent = String(problem);
      }
    }
    setTimeout(turn, EVERY_MS);
  }
  turn();
}());
