// SPDX-License-Identifier: Apache-2.0
// Lets one zoom and move a picture by mouse, wheel, keyboard and buttons.
// Letters never become smaller than LEAST_PX on the screen: a text that has
// no room then is cut, and its title has all of it.
(function () {
  'use strict';
  const SCALES = [0.3, 4], STEP = 1.25, MOVE_PX = 60, LEAST_PX = 11;
  const COMPACT = 0.7, TINY = 0.6, KEPT_PX = 60;
  const MOST_SQUEEZED = 1.2;
  const SVG = 'http://www.w3.org/2000/svg';
  const known = new Map();

  // box: an element that holds a picture in the course of time.
  function Zoom(box) {
    const behavior = d3.behavior.zoom().scaleExtent(SCALES);
    let view = null, size = [0, 0], frame = 0, lettered = 0, cutAt = 0;
    let fitted = true;

    // Words of earlier pictures at this scale: how they were cut.
    let cuts = new Map();

    function letters() {
      frame = 0;
      const scale = behavior.scale();
      if (!view || lettered === scale) {
        return;
      }
      if (cutAt !== scale) {
        cuts = new Map();
        cutAt = scale;
      }
      lettered = scale;
      const texts = [...view.querySelectorAll('text[data-room]')];
      for (const text of texts) {
        if (text.dataset.whole === undefined) {
          text.dataset.whole = text.textContent;
        }
      }
      const unknown = texts.filter(function (text) {
        return !cuts.has(keyOf(text));
      });
      // All writes, then all reads: the browser lays out the page once.
      for (const text of unknown) {
        write(text, {words: text.dataset.whole});
      }
      const lengths = unknown.map(function (text) {
        return text.getComputedTextLength();
      });
      unknown.forEach(function (text, i) {
        cuts.set(keyOf(text), cut(text, lengths[i]));
      });
      for (const text of texts) {
        write(text, cuts.get(keyOf(text)));
      }
    }

    function clamp() {
      const scale = behavior.scale(), place = behavior.translate();
      const room = [box.clientWidth, box.clientHeight];
      behavior.translate(place.map(function (at, i) {
        return Math.min(room[i] - KEPT_PX,
                        Math.max(KEPT_PX - size[i] * scale, at));
      }));
    }

    function show() {
      if (!view) {
        return;
      }
      clamp();
      const scale = behavior.scale(), place = behavior.translate();
      view.setAttribute('transform', 'translate(' + place.join(' ') +
                        ') scale(' + scale + ')');
      box.style.setProperty('--clickos-scale', scale);
      box.classList.toggle('clickos-compact', scale < COMPACT);
      box.classList.toggle('clickos-tiny', scale < TINY);
      const output = document.querySelector(
        '[data-scale-of="' + box.id + '"]');
      if (output) {
        output.textContent = Math.round(100 * scale) + ' %';
      }
      frame = frame || requestAnimationFrame(letters);
    }

    function moved() {
      fitted = false;
      show();
    }

    function move(x, y) {
      const place = behavior.translate();
      behavior.translate([place[0] + x, place[1] + y]);
      moved();
    }

    // Zooms around the middle of what is seen.
    function zoom(wanted) {
      const old = behavior.scale(), place = behavior.translate();
      const scale = Math.min(SCALES[1], Math.max(SCALES[0], wanted));
      const room = [box.clientWidth, box.clientHeight];
      behavior.scale(scale).translate(place.map(function (at, i) {
        return room[i] / 2 - (room[i] / 2 - at) * scale / old;
      }));
      moved();
    }

    function fit(isFirst) {
      const room = [box.clientWidth, box.clientHeight];
      const shares = [room[0] / size[0], room[1] / size[1]];
      // A picture that grows downwards fits by its width at first.
      const share = box.dataset.fit === 'width' && isFirst ?
        Math.max(COMPACT, shares[0]) : Math.min(...shares);
      const scale = Math.min(1, Math.max(SCALES[0], share || 1));
      behavior.scale(scale).translate(room.map(function (all, i) {
        return Math.max(0, (all - size[i] * scale) / 2);
      }));
      fitted = true;
      show();
    }

    this.act = function (name) {
      const scale = behavior.scale();
      const acts = {
        in: function () { zoom(scale * STEP); },
        out: function () { zoom(scale / STEP); },
        whole: function () { zoom(1); },
        fit: function () { fit(false); },
        left: function () { move(MOVE_PX, 0); },
        right: function () { move(-MOVE_PX, 0); },
        up: function () { move(0, MOVE_PX); },
        down: function () { move(0, -MOVE_PX); }
      };
      acts[name]();
    };

    // Shows an <svg> instead of the last one, at the same zoom.
    this.show = function (svg) {
      size = [Number(svg.getAttribute('width')),
              Number(svg.getAttribute('height'))];
      const corner = (svg.getAttribute('viewBox') || '0 0').split(' ');
      view = document.createElementNS(SVG, 'g');
      const shift = document.createElementNS(SVG, 'g');
      shift.setAttribute('transform', 'translate(' + -corner[0] + ' ' +
                         -corner[1] + ')');
      for (const child of [...svg.childNodes]) {
        if (!['title', 'style', 'defs'].includes(child.nodeName)) {
          shift.appendChild(child);
        }
      }
      view.appendChild(shift);
      svg.appendChild(view);
      for (const name of ['width', 'height', 'viewBox']) {
        svg.removeAttribute(name);
      }
      box.replaceChildren(svg);
      lettered = 0;
      if (fitted) {
        fit(true);
      } else {
        show();
      }
    };

    // Brings an element of the picture that has the focus into sight.
    function follow(event) {
      const all = box.getBoundingClientRect();
      const at = event.target.getBoundingClientRect();
      if (event.target === box) {
        return;
      }
      const x = at.left < all.left ? all.left - at.left + KEPT_PX :
        at.right > all.right ? all.right - at.right - KEPT_PX : 0;
      const y = at.top < all.top ? all.top - at.top + KEPT_PX :
        at.bottom > all.bottom ? all.bottom - at.bottom - KEPT_PX : 0;
      box.scrollTo(0, 0);
      if (x || y) {
        move(x, y);
      }
    }

    // At the end of the scale the wheel moves the page again.
    box.addEventListener('wheel', function (event) {
      const scale = behavior.scale();
      if (event.deltaY > 0 ? scale <= SCALES[0] : scale >= SCALES[1]) {
        event.stopImmediatePropagation();
      }
    }, {capture: true, passive: true});
    d3.select(box).call(behavior).on('dblclick.zoom', null);
    behavior.on('zoom', moved);
    box.addEventListener('focusin', follow);
    new ResizeObserver(function () {
      if (fitted && view) {
        fit(true);
      } else {
        show();
      }
    }).observe(box);
  }

  function keyOf(text) {
    return text.dataset.room + ' ' + text.dataset.whole;
  }

  // Returns how a text of a length has room: cut, squeezed, or both.
  function cut(text, length) {
    const signs = [...text.dataset.whole], room = Number(text.dataset.room);
    if (length <= room * MOST_SQUEEZED) {
      return {words: text.dataset.whole, squeezed: length > room && room};
    }
    const count = Math.max(1, Math.floor(signs.length * room / length) - 1);
    return {words: signs.slice(0, count).join('') + '…',
            squeezed: (count + 1) * length / signs.length > room && room};
  }

  function write(text, found) {
    if (text.textContent !== found.words) {
      text.textContent = found.words;
    }
    if (found.squeezed) {
      text.setAttribute('textLength', found.squeezed);
      text.setAttribute('lengthAdjust', 'spacingAndGlyphs');
    } else {
      text.removeAttribute('textLength');
    }
  }

  // Returns the Zoom of an element; a tab that is loaded again has a new one.
  window.clickos.zoom = function (box) {
    let found = known.get(box.id);
    if (!found || found.box !== box) {
      found = {box: box, zoom: new Zoom(box)};
      known.set(box.id, found);
    }
    return found.zoom;
  };

  const KEYS = {ArrowLeft: 'left', ArrowRight: 'right', ArrowUp: 'up',
                ArrowDown: 'down', '+': 'in', '=': 'in', '-': 'out',
                0: 'fit', 1: 'whole'};
  document.addEventListener('keydown', function (event) {
    const box = event.target.closest && event.target.closest(
      '.clickos-canvas');
    const name = Object.hasOwn(KEYS, event.key) && KEYS[event.key];
    if (box && name && !event.ctrlKey && !event.altKey && !event.metaKey) {
      event.preventDefault();
      window.clickos.zoom(box).act(name);
    }
  });
  document.addEventListener('click', function (event) {
    const button = event.target.closest && event.target.closest(
      '[data-zoom]');
    if (button) {
      const box = document.getElementById(
        button.closest('[data-for]').dataset.for);
      window.clickos.zoom(box).act(button.dataset.zoom);
    }
  });
}());
