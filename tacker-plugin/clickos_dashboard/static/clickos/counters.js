// SPDX-License-Identifier: Apache-2.0
// Plots rates of a guest's counters over the time that the page is seen.
(function () {
  'use strict';
  const EVERY_MS = 2000, SPAN_MS = 300000;
  const WIDTH = 600, HEIGHT = 150, LEFT = 60, BELOW = 20, ABOVE = 8;
  const NS = 'http://www.w3.org/2000/svg';
  const STYLES = [['#1f5fa8', ''], ['#a8501f', '7 3'], ['#2f7d32', '2 3'],
                  ['#7b2d8b', '9 3 2 3'], ['#5c5c00', '4 2'],
                  ['#a01040', '1 2'], ['#00696b', '12 4'], ['#444', '3 6']];
  let before = null, box = null, paused = false;
  let series = new Map();

  function si(number) {
    const units = ['', ' k', ' M', ' G', ' T'];
    let unit = 0;
    while (number >= 999.5 && unit < units.length - 1) {
      number /= 1000;
      unit += 1;
    }
    return (number < 99.5 ? Number(number.toPrecision(3))
                          : Math.round(number)) + units[unit];
  }

  // Counters of an answer: {plot: {name: [count, factor]}}.
  function counted(answer, words) {
    const found = {packets: {}, bits: {}, drops: {}, handlers: {}};
    for (const port of answer.ports) {
      const sent = port.mac + ' ' + words.sent;
      const received = port.mac + ' ' + words.received;
      found.packets[sent] = [port.rx_packets, 1];
      found.packets[received] = [port.tx_packets, 1];
      found.bits[sent] = [port.rx_bytes, 8];
      found.bits[received] = [port.tx_bytes, 8];
      found.drops[port.mac] = [port.drops, 1];
    }
    for (const handler of answer.handlers) {
      found.handlers[handler.name] = [handler.value, 1];
    }
    return found;
  }

  function add(plot, name, at, rate) {
    const key = plot + '\n' + name;
    const points = series.get(key) || [];
    points.push([at, rate]);
    while (points[0][0] < at - SPAN_MS) {
      points.shift();
    }
    series.set(key, points);
  }

  function take(answer) {
    const now = {at: answer.at_ms, counts: counted(answer, box.dataset)};
    if (before && now.at > before.at) {
      const seconds = (now.at - before.at) / 1000;
      for (const plot of Object.keys(now.counts)) {
        const olds = before.counts[plot];
        for (const [name, [count, factor]] of
             Object.entries(now.counts[plot])) {
          if (Object.hasOwn(olds, name) && count >= olds[name][0]) {
            add(plot, name, now.at,
                factor * (count - olds[name][0]) / seconds);
          }
        }
      }
    }
    before = now;
    draw(now);
  }

  function element(parent, name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) {
      made.setAttribute(key, value);
    }
    if (text !== undefined) {
      made.textContent = text;
    }
    parent.appendChild(made);
    return made;
  }

  function line(points, at, top) {
    return points.map(function (point) {
      const x = LEFT + (WIDTH - LEFT) * (1 - (at - point[0]) / SPAN_MS);
      const y = ABOVE + HEIGHT * (1 - point[1] / top);
      return x.toFixed(1) + ',' + y.toFixed(1);
    }).join(' ');
  }

  function legend(names, lasts) {
    const list = document.createElement('ul');
    list.className = 'clickos-legend list-inline';
    names.forEach(function (name, i) {
      const entry = document.createElement('li');
      const sample = element(entry, 'svg', {width: 26, height: 8,
                                            'aria-hidden': 'true'});
      const [stroke, dash] = STYLES[i % STYLES.length];
      element(sample, 'line', {x1: 0, x2: 26, y1: 4, y2: 4, stroke: stroke,
                               'stroke-width': 2, 'stroke-dasharray': dash});
      entry.append(' ' + name + ': ' + si(lasts[i]));
      list.appendChild(entry);
    });
    return list;
  }

  function axes(root, top) {
    for (const share of [0, 0.5, 1]) {
      const y = ABOVE + HEIGHT * (1 - share);
      element(root, 'line', {x1: LEFT, x2: WIDTH, y1: y, y2: y,
                             stroke: '#ccc'});
      element(root, 'text', {x: LEFT - 6, y: y + 4, 'text-anchor': 'end'},
              si(top * share));
    }
    for (const minutes of [5, 4, 3, 2, 1]) {
      element(root, 'text', {
        x: LEFT + (WIDTH - LEFT) * (1 - minutes / 5),
        y: ABOVE + HEIGHT + BELOW - 4}, '−' + minutes + ' min');
    }
  }

  function draw(now) {
    for (const place of box.querySelectorAll('[data-plot]')) {
      const plot = place.dataset.plot;
      const names = Object.keys(now.counts[plot]);
      place.parentElement.hidden = names.length === 0;
      const lines = names.map(function (name) {
        return series.get(plot + '\n' + name) || [];
      });
      const top = Math.max(1, ...lines.flat().map(function (point) {
        return point[1];
      }));
      const lasts = lines.map(function (points) {
        return points.length ? points[points.length - 1][1] : 0;
      });
      const root = document.createElementNS(NS, 'svg');
      root.setAttribute('viewBox', '0 0 ' + WIDTH + ' ' +
                        (ABOVE + HEIGHT + BELOW));
      root.setAttribute('role', 'img');
      root.setAttribute('aria-label', place.parentElement.querySelector(
        'figcaption').textContent);
      axes(root, top);
      lines.forEach(function (points, i) {
        const [stroke, dash] = STYLES[i % STYLES.length];
        element(root, 'polyline', {
          points: line(points, now.at, top), fill: 'none', stroke: stroke,
          'stroke-width': 2, 'stroke-dasharray': dash});
      });
      place.replaceChildren(root, legend(names, lasts));
    }
  }

  async function ask() {
    const error = document.getElementById('clickos-plots-error');
    try {
      const answer = await fetch(box.dataset.url, {
        credentials: 'same-origin',
        headers: {'X-Requested-With': 'XMLHttpRequest'}
      });
      const body = await answer.json();
      error.textContent = body.error || '';
      if (!body.error) {
        take(body);
      }
    } catch (problem) {
      error.textContent = String(problem);
    }
  }

  // Horizon loads a tab's content when the tab is opened.
  async function turn() {
    const found = document.getElementById('clickos-plots');
    if (found !== box) {
      box = found;
      before = null;
      series = new Map();
    }
    if (box && box.offsetParent !== null && !document.hidden && !paused) {
      await ask();
    }
    setTimeout(turn, before ? EVERY_MS : EVERY_MS / 4);
  }

  document.addEventListener('click', function (event) {
    if (event.target.id === 'clickos-pause') {
      paused = !paused;
      event.target.setAttribute('aria-pressed', String(paused));
    }
  });
  turn();
}());
