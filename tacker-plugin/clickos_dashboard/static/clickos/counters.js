// SPDX-License-Identifier: Apache-2.0
// Plots rates of a guest's counters over the time that the page is seen.
(function () {
  'use strict';
  const EVERY_MS = 2000, SOON_MS = 500;
  let meter = null, box = null, paused = false;
  let plots = new Map();

  // Counters of an answer: {plot: {name: count}}; bits of bytes.
  function counted(answer, words) {
    const found = {packets: {}, bits: {}, drops: {}, elements: {},
                   element_bits: {}};
    for (const port of answer.ports) {
      const sent = port.name + ' ' + words.sent;
      const received = port.name + ' ' + words.received;
      found.packets[sent] = port.rx_packets;
      found.packets[received] = port.tx_packets;
      found.bits[sent] = 8 * port.rx_bytes;
      found.bits[received] = 8 * port.tx_bytes;
      found.drops[port.name] = port.drops;
    }
    for (const handler of answer.handlers) {
      const last = handler.name.slice(handler.name.lastIndexOf('.') + 1);
      const [plot, factor] = {byte_count: ['element_bits', 8],
                              drops: ['drops', 1]}[last] || ['elements', 1];
      found[plot][handler.name] = factor * handler.value;
    }
    return found;
  }

  function take(answer) {
    for (const [name, counts] of Object.entries(counted(answer,
                                                        box.dataset))) {
      const plot = plots.get(name), names = Object.keys(counts);
      plot.keep(names);
      for (const each of names) {
        const found = meter.rates(name + '\n' + each, answer.at_ms,
                                  {rate: counts[each]});
        plot.add(each, answer.at_ms, found && found.rate);
      }
      plot.draw(answer.at_ms);
    }
  }

  function begin(found) {
    box = found;
    meter = new window.clickos.Meter();
    plots = new Map();
    for (const place of box ? box.querySelectorAll('[data-plot]') : []) {
      const plot = new window.clickos.Plot(place, {
        label: place.parentElement.querySelector('figcaption').textContent,
        unit: place.dataset.unit, minutes: box.dataset.minutes,
        now: box.dataset.now});
      plots.set(place.dataset.plot, plot);
      plot.draw(0);
    }
  }

  // Horizon loads a tab's content when the tab is opened.
  window.clickos.repeat('clickos-plots-error', EVERY_MS, async function () {
    const found = document.getElementById('clickos-plots');
    let next = EVERY_MS;
    if (found !== box) {
      begin(found);
      next = SOON_MS;
    }
    if (box && box.offsetParent !== null && !paused) {
      take(await window.clickos.ask(box.dataset.url));
      return next;
    }
    return SOON_MS;
  });

  document.addEventListener('click', function (event) {
    if (event.target.id === 'clickos-pause') {
      paused = !paused;
      event.target.setAttribute('aria-pressed', String(paused));
    }
  });
}());
