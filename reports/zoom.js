// Enlarges a figure, and zooms into it: by wheel, by dragging over a region, by fingers, buttons and
// keys. The page shows every figure without this script; the script adds a button to each.
"use strict";
(() => {
  const LEAST = 1 / 64; // of an axis: the points have no finer places
  const SVG = document.querySelector(".figure svg")?.namespaceURI;
  const whole = () => ({ x: [0, 1], y: [0, 1] });
  let view = whole(), panels = [], drawing = null, pointers = new Map(), begun = null;

  const made = (name, attributes, text) => {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    if (text !== undefined) element.textContent = text;
    return element;
  };

  // An axis: its ends as numbers on a linear scale, and what is written for a place on it.
  const axisOf = text => {
    const [low, high, kind] = text.split(" ");
    const ends = [Number(low), Number(high)];
    return { kind, ends: kind === "log" ? ends.map(Math.log10) : ends };
  };
  const valueAt = (axis, share) => {
    const place = axis.ends[0] + share * (axis.ends[1] - axis.ends[0]);
    return axis.kind === "log" ? 10 ** place : place;
  };
  const shareOf = (axis, value) =>
    ((axis.kind === "log" ? Math.log10(value) : value) - axis.ends[0]) /
    ((axis.ends[1] - axis.ends[0]) || 1);
  const written = (axis, value) => axis.kind === "nines"
    ? `${Number((100 * (1 - 10 ** -value)).toPrecision(7))} %` : `${Number(value.toPrecision(4))}`;

  // Round numbers between two: their distance is 1, 2 or 5 times a power of ten.
  const rounded = (low, high) => {
    const power = 10 ** Math.floor(Math.log10((high - low) / 4));
    const step = [1, 2, 5, 10].map(m => m * power).find(s => (high - low) / s <= 6) || 10 * power;
    const found = [];
    for (let n = Math.ceil(low / step - 1e-9); n * step <= high + 1e-9 * step; n++)
      found.push(Number((n * step).toPrecision(12)));
    return found;
  };
  const ticksOf = (axis, [from, to]) => {
    const low = valueAt(axis, from), high = valueAt(axis, to);
    if (axis.kind === "nines") {
      const tails = parts => [100, 10, 1, .1, .01, .001, .0001].flatMap(tail =>
        parts.map(part => 100 - tail * part));
      const within = percents => percents.map(percent => -Math.log10(1 - percent / 100))
        .filter(place => place >= low && place <= high);
      const rows = [[1], [1, .5], [1, .5, .2]].map(parts => within(tails(parts)));
      return rows.find(row => row.length >= 4) ||
        within(rounded(100 * (1 - 10 ** -low), 100 * (1 - 10 ** -high)));
    }
    if (axis.kind === "log" && high / low > 20) {
      const decades = rounded(Math.log10(low), Math.log10(high)).filter(Number.isInteger);
      return decades.map(n => 10 ** n);
    }
    return rounded(low, high);
  };

  // A place in the figure as it was drawn, and where it is in the view; both are shares of the box.
  const seen = (axis, share) => (share - view[axis][0]) / (view[axis][1] - view[axis][0]);
  const inside = share => share > -1e-6 && share < 1 + 1e-6;

  const read = (panel, number) => {
    const [left, top, right, base] = panel.dataset.box.split(" ").map(Number);
    const data = panel.querySelector(".data"), clip = made("clipPath", { id: `zoom-clip-${number}` });
    clip.append(made("rect", { x: left, y: top, width: right - left, height: base - top }));
    const outer = made("g", { "clip-path": `url(#zoom-clip-${number})` });
    data.replaceWith(clip, outer);
    outer.append(data);
    const fixed = {};
    for (const name of ["x", "y"]) {
      const labels = [...panel.querySelectorAll(`.grid .t${name}`)];
      fixed[name] = labels.map(label => ({ label, share: name === "x"
        ? (label.getAttribute("x") - left) / (right - left)
        : (base + 3.5 - label.getAttribute("y")) / (base - top) }));
    }
    const rules = [...panel.querySelectorAll("[data-rule]")].map(label => ({
      label, share: label.dataset.rule === "x" ? (label.getAttribute("x") - left) / (right - left)
        : (base - 4 - label.getAttribute("y")) / (base - top) }));
    for (const line of panel.querySelectorAll(".grid .g")) line.remove();
    return { left, top, right, base, data, fixed, rules, grid: panel.querySelector(".grid"),
      lines: panel.querySelector(".grid").insertBefore(made("g", {}), null),
      x: axisOf(panel.dataset.x), y: axisOf(panel.dataset.y), first: number === 0 };
  };

  const drawTicks = (panel, name) => {
    const { left, right, top, base } = panel, axis = panel[name];
    const line = place => made("path", { class: "g", d: name === "x"
      ? `M${place} ${top}V${base}` : `M${left} ${place}H${right}` });
    const placeOf = share => name === "x" ? left + share * (right - left)
      : base - share * (base - top);
    for (const { label, share } of panel.fixed[name]) {
      const at = seen(name, share), shown = axis.kind === "fixed" && inside(at);
      label.style.display = shown ? "" : "none";
      if (!shown) continue;
      label.setAttribute(name, placeOf(at) + (name === "y" ? 2.5 : 0));
      panel.lines.append(line(placeOf(at)));
    }
    if (axis.kind === "fixed") return;
    for (const value of ticksOf(axis, view[name])) {
      const at = seen(name, shareOf(axis, value));
      if (!inside(at)) continue;
      const place = placeOf(at);
      panel.lines.append(line(place));
      if (name === "x") panel.lines.append(made("text", { class: "tx", x: place, y: base + 13,
        "text-anchor": "middle" }, written(axis, value)));
      else if (panel.first) panel.lines.append(made("text", { class: "ty", x: left - 5,
        y: place + 2.5, "text-anchor": "end" }, written(axis, value)));
    }
  };

  const draw = () => {
    for (const panel of panels) {
      const { left, right, top, base } = panel;
      const wide = 1 / (view.x[1] - view.x[0]), high = 1 / (view.y[1] - view.y[0]);
      panel.data.setAttribute("transform", `matrix(${wide} 0 0 ${high} ` +
        `${left - wide * (left + (right - left) * view.x[0])} ` +
        `${base - high * (base - (base - top) * view.y[0])})`);
      panel.lines.replaceChildren();
      drawTicks(panel, "x");
      drawTicks(panel, "y");
      for (const { label, share } of panel.rules) {
        const name = label.dataset.rule, at = seen(name, share);
        label.style.display = inside(at) ? "" : "none";
        if (name === "x") label.setAttribute("x", left + at * (right - left));
        else label.setAttribute("y", base - at * (base - top) - 4);
      }
    }
  };

  // Changes the view and keeps it within the figure.
  const show = next => {
    for (const axis of ["x", "y"]) {
      const size = Math.min(Math.max(next[axis][1] - next[axis][0], LEAST), 1);
      const middle = (next[axis][0] + next[axis][1]) / 2;
      const from = Math.min(Math.max(middle - size / 2, 0), 1 - size);
      view[axis] = [from, from + size];
    }
    draw();
    tell(`${Math.round(1 / (view.x[1] - view.x[0]) * 10) / 10} times wider, ` +
      `${Math.round(1 / (view.y[1] - view.y[0]) * 10) / 10} times higher`);
  };
  const zoomed = (axis, factor, at) => {
    const [from, to] = view[axis], fixed = from + at * (to - from);
    return [fixed + (from - fixed) * factor, fixed + (to - fixed) * factor];
  };
  const zoom = (factor, x = .5, y = .5) =>
    show({ x: zoomed("x", factor, x), y: zoomed("y", factor, y) });
  const moved = (axis, share) => view[axis].map(end => end + share * (view[axis][1] - view[axis][0]));
  const move = (x, y) => show({ x: moved("x", x), y: moved("y", y) });

  // Where a pointer is: the panel, and the share of its box.
  const under = event => {
    const point = new DOMPoint(event.clientX, event.clientY)
      .matrixTransform(drawing.getScreenCTM().inverse());
    const panel = panels.find(one => point.x >= one.left && point.x <= one.right) || panels[0];
    const clamp = share => Math.min(Math.max(share, 0), 1);
    return { panel, x: clamp((point.x - panel.left) / (panel.right - panel.left)),
      y: clamp((panel.base - point.y) / (panel.base - panel.top)) };
  };

  const dialog = document.createElement("dialog");
  dialog.className = "zoom";
  dialog.innerHTML = '<div class="tools"></div><div class="drawing"></div><p>Drag over a region, ' +
    "turn the wheel (with Shift along the x axis alone), or press + and −, the arrows and 0. " +
    "Esc closes.</p>";
  const tools = dialog.firstChild, output = document.createElement("output");
  const tell = text => { output.textContent = text; };
  const actions = [["+", "Zoom in", () => zoom(1 / 1.5)], ["−", "Zoom out", () => zoom(1.5)],
    ["←", "Move left", () => move(-.2, 0)], ["→", "Move right", () => move(.2, 0)],
    ["↑", "Move up", () => move(0, .2)], ["↓", "Move down", () => move(0, -.2)],
    ["0", "Show the whole figure", () => show(whole())], ["✕", "Close", () => dialog.close()]];
  for (const [sign, label, act] of actions) {
    const button = document.createElement("button");
    button.textContent = sign;
    button.title = label;
    button.setAttribute("aria-label", label);
    button.type = "button";
    button.addEventListener("click", act);
    tools.append(button);
  }
  tools.append(output);
  const keys = { "+": 0, "=": 0, "-": 1, "ArrowLeft": 2, "ArrowRight": 3, "ArrowUp": 4,
    "ArrowDown": 5, "0": 6 };
  dialog.addEventListener("keydown", event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !(event.key in keys)) return;
    event.preventDefault();
    actions[keys[event.key]][2]();
  });

  const listen = svg => {
    svg.addEventListener("wheel", event => {
      event.preventDefault();
      const at = under(event), factor = 1.2 ** Math.sign(event.deltaY || event.deltaX);
      show({ x: zoomed("x", factor, at.x), y: event.shiftKey ? view.y : zoomed("y", factor, at.y) });
    }, { passive: false });
    svg.addEventListener("dblclick", () => show(whole()));
    svg.addEventListener("pointerdown", event => {
      svg.setPointerCapture(event.pointerId);
      pointers.set(event.pointerId, under(event));
      begun = pointers.size === 1 && event.pointerType !== "touch" ? under(event) : null;
    });
    svg.addEventListener("pointermove", event => {
      const at = under(event), before = pointers.get(event.pointerId);
      const read = name => written(at.panel[name], valueAt(at.panel[name],
        view[name][0] + at[name] * (view[name][1] - view[name][0])));
      if (!before) {
        const shown = ["x", "y"].filter(name => at.panel[name].kind !== "fixed");
        tell(shown.map(name => `${name} ${read(name)}`).join(", "));
      } else if (begun) {
        choose(begun, at);
      } else {
        const other = [...pointers].find(([id]) => id !== event.pointerId);
        pointers.set(event.pointerId, at);
        if (!other) return move(before.x - at.x, before.y - at.y);
        const apart = one => Math.hypot(one.x - other[1].x, one.y - other[1].y) || 1e-3;
        zoom(apart(before) / apart(at), (at.x + other[1].x) / 2, (at.y + other[1].y) / 2);
      }
    });
    for (const kind of ["pointerup", "pointercancel"]) svg.addEventListener(kind, event => {
      const from = begun, to = under(event);
      pointers.delete(event.pointerId);
      begun = null;
      svg.querySelector(".chosen")?.remove();
      if (kind === "pointercancel" || !from || Math.hypot(to.x - from.x, to.y - from.y) < .02) return;
      const next = name => [from[name], to[name]].sort((a, b) => a - b)
        .map(share => view[name][0] + share * (view[name][1] - view[name][0]));
      const flat = name => Math.abs(to[name] - from[name]) < .02;
      show({ x: flat("x") ? view.x : next("x"), y: flat("y") ? view.y : next("y") });
    });
  };
  const choose = (from, to) => {
    drawing.querySelector(".chosen")?.remove();
    const { left, right, top, base } = from.panel;
    const x = share => left + share * (right - left), y = share => base - share * (base - top);
    drawing.append(made("rect", { class: "chosen", x: x(Math.min(from.x, to.x)),
      y: y(Math.max(from.y, to.y)), width: Math.abs(x(to.x) - x(from.x)),
      height: Math.abs(y(to.y) - y(from.y)) }));
  };

  const enlarge = figure => {
    drawing = figure.querySelector("svg").cloneNode(true);
    drawing.querySelector("title").remove(); // or it would cover what is pointed at
    panels = [...drawing.querySelectorAll(".panel")].map(read);
    view = whole();
    pointers = new Map();
    begun = null;
    dialog.querySelector(".drawing").replaceChildren(drawing);
    dialog.setAttribute("aria-label", drawing.querySelector(".h").textContent);
    listen(drawing);
    draw();
    tell("");
    dialog.showModal();
  };
  document.body.append(dialog);
  for (const figure of document.querySelectorAll(".figure")) {
    const button = document.createElement("button"), title = figure.querySelector("text.h");
    button.type = "button";
    button.textContent = "⤢";
    button.title = "Enlarge";
    button.setAttribute("aria-label", `Enlarge: ${title.textContent}`);
    button.addEventListener("click", () => enlarge(figure));
    figure.append(button);
  }
})();
