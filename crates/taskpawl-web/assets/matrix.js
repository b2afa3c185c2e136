// @ts-check
// The matrix of tasks: one cell a task, bands by layer. Hovering outlines the cone of a task.

/**
 * @typedef {{generation: number, revision: number, ids: string[], layers: number[], states: string, parents: number[],
 *   edges: number[]}} Columns
 */

const MIN_CELL = 5;
const MAX_CELL = 22;
const GAP = 8;
/** Height of a band whose tasks have all ended. */
const FOLDED = 14;
/** Least number of tasks of a plan whose ended bands are folded. */
const LEAST_FOLDED = 200;
/** Script time of one frame while a cone is drawn, in milliseconds. */
const BUDGET = 3;
const ENDED = "dsc";

/** State letters by name, for the tip and for readers of the screen. */
export const NAMES = /** @type {Record<string, string>} */ ({
  x: "running", h: "in work", q: "asking", f: "failed", b: "blocked", r: "ready", m: "to do", w: "waiting",
  d: "done", s: "skipped", c: "cancelled",
});

export class Matrix {
  /**
   * @param {HTMLElement} place
   * @param {Columns} columns
   * @param {(id: string) => void} open
   */
  constructor(place, columns, open) {
    this.place = place;
    this.columns = columns;
    this.open = open;
    this.states = [...columns.states];
    this.canvas = /** @type {HTMLCanvasElement} */ (place.querySelector("canvas"));
    this.tip = /** @type {HTMLElement} */ (place.querySelector(".tip"));
    this.overlay = document.createElement("canvas");
    this.overlay.className = "overlay";
    this.overlay.setAttribute("aria-hidden", "true");
    this.canvas.after(this.overlay);
    this.at = -1;
    this.width = 0;
    this.cell = MAX_CELL;
    /** Left and top of each row. */
    this.spots = new Int32Array(columns.ids.length * 2);
    /** @type {{top: number, rows: number[], height: number, folded?: number, begin?: number}[]} */
    this.lines = [];
    /** Bands that a person has unfolded, by their first place in the order. @type {Set<number>} */
    this.unfolded = new Set();
    this.isFolding = columns.ids.length >= LEAST_FOLDED && [...columns.states].some((letter) => !ENDED.includes(letter));
    this.frame = 0;
    /** @type {{from: Int32Array, others: Int32Array}[] | undefined} */
    this.near = undefined;
    this.measured = 0;
    this.seen = new Uint32Array(columns.ids.length);
    this.stamp = 0;
    /** @type {Map<string, HTMLCanvasElement>} */
    this.sprites = new Map();
    this.order = columns.ids.map((_, row) => row).sort((a, b) => columns.layers[a] - columns.layers[b] || a - b);
    this.canvas.addEventListener("pointermove", (event) => this.hover(this.rowAt(event.offsetX, event.offsetY)));
    this.canvas.addEventListener("pointerleave", () => this.hover(-1));
    this.canvas.addEventListener("click", (event) => this.click(event.offsetX, event.offsetY));
    this.canvas.addEventListener("keydown", (event) => this.press(event));
    this.resizer = new ResizeObserver(() => this.layout());
    this.resizer.observe(place);
    this.dark = matchMedia("(prefers-color-scheme: dark)");
    this.repaint = () => { this.sprites.clear(); this.draw(); };
    this.dark.addEventListener("change", this.repaint);
    this.layout();
  }

  close() {
    this.resizer.disconnect();
    cancelAnimationFrame(this.frame);
    this.dark.removeEventListener("change", this.repaint);
  }

  layout(isForced = false) {
    const width = Math.floor(this.place.clientWidth);
    if (!width || (width === this.width && !isForced)) return;
    this.width = width;
    const room = Math.max(240, innerHeight * 0.62);
    this.cell = MAX_CELL;
    // Of a small plan each layer has a band; of a large one layers with few tasks share bands.
    let height = this.arrange(1);
    if (height > room) height = this.arrange();
    while (height > room && this.cell > MIN_CELL) {
      this.cell -= 1;
      height = this.arrange();
    }
    const scale = devicePixelRatio || 1;
    for (const canvas of [this.canvas, this.overlay]) {
      canvas.width = Math.round(width * scale);
      canvas.height = Math.round(height * scale);
      canvas.getContext("2d")?.setTransform(scale, 0, 0, scale, 0, 0);
    }
    this.sprites.clear();
    this.draw();
  }

  /**
   * Places the rows, and returns the height. Layers share a band until it has `least` tasks, by default a whole line.
   * @param {number} [least]
   */
  arrange(least) {
    const { layers } = this.columns;
    const { cell } = this;
    const across = Math.max(1, Math.floor(this.width / cell));
    this.lines = [];
    let top = 0;
    let begin = 0;
    while (begin < this.order.length) {
      let end = begin;
      do {
        const layer = layers[this.order[end]];
        while (end < this.order.length && layers[this.order[end]] === layer) end += 1;
      } while (end < this.order.length && end - begin < (least ?? across));
      if (this.isFolded(begin, end)) {
        for (let at = begin; at < end; at += 1) this.spots[this.order[at] * 2] = -1;
        this.lines.push({ top, rows: [], height: FOLDED, folded: end - begin, begin });
        top += FOLDED + Math.min(GAP, cell);
        begin = end;
        continue;
      }
      for (let at = begin; at < end; at += across) {
        const rows = this.order.slice(at, Math.min(end, at + across));
        rows.forEach((row, index) => {
          this.spots[row * 2] = index * cell;
          this.spots[row * 2 + 1] = top;
        });
        this.lines.push({ top, rows, height: cell });
        top += cell;
      }
      top += Math.min(GAP, cell);
      begin = end;
    }
    return Math.max(cell, top);
  }

  /** Returns whether a band is drawn as one line. @param {number} begin @param {number} end */
  isFolded(begin, end) {
    if (!this.isFolding || this.unfolded.has(begin)) return false;
    for (let at = begin; at < end; at += 1) if (!ENDED.includes(this.states[this.order[at]])) return false;
    return true;
  }

  /** @param {number} x @param {number} y */
  click(x, y) {
    const line = this.lineAt(y);
    if (line?.begin !== undefined) {
      this.unfolded.add(line.begin);
      this.layout(true);
    } else this.enter(this.rowAt(x, y));
  }

  draw() {
    const context = this.canvas.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.canvas.width, this.canvas.height);
    for (let row = 0; row < this.states.length; row += 1) this.cellOf(context, row);
    const style = getComputedStyle(document.documentElement);
    context.font = "11px system-ui, sans-serif";
    context.textBaseline = "middle";
    for (const { top, folded } of this.lines) {
      if (!folded) continue;
      context.fillStyle = style.getPropertyValue("--s-d").trim();
      context.fillRect(0, top + 5, 18, 4);
      context.fillStyle = style.getPropertyValue("--quiet").trim();
      context.fillText(`${folded} ended`, 26, top + FOLDED / 2 + 1);
    }
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   */
  cellOf(context, row) {
    const { cell } = this;
    const { spots } = this;
    if (spots[row * 2] < 0) return;
    context.drawImage(this.sprite(this.states[row]), spots[row * 2], spots[row * 2 + 1], cell, cell);
  }

  /** @param {string} letter */
  sprite(letter) {
    const known = this.sprites.get(letter);
    if (known) return known;
    const { cell } = this;
    const scale = devicePixelRatio || 1;
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.ceil(cell * scale);
    const context = canvas.getContext("2d");
    if (context) {
      context.scale(scale, scale);
      const style = getComputedStyle(document.documentElement);
      paint(context, letter, cell, style.getPropertyValue(`--s-${letter}`).trim() || "gray", style.getPropertyValue("--paper").trim());
    }
    this.sprites.set(letter, canvas);
    return canvas;
  }

  /** @param {Record<string, string>} cells */
  change(cells) {
    const context = this.canvas.getContext("2d");
    const { cell } = this;
    let isReset = false;
    for (const [key, letter] of Object.entries(cells)) {
      const row = Number(key);
      this.states[row] = letter;
      if (context && this.spots[row * 2] < 0 && !ENDED.includes(letter)) isReset = true;
      else if (context && this.spots[row * 2] >= 0) {
        context.clearRect(this.spots[row * 2], this.spots[row * 2 + 1], cell, cell);
        this.cellOf(context, row);
      }
    }
    // A folded band has work again.
    if (isReset) this.layout(true);
    else if (this.at >= 0) this.hover(this.at, true);
  }

  /**
   * @param {number} x
   * @param {number} y
   */
  rowAt(x, y) {
    return this.lineAt(y)?.rows[Math.floor(x / this.cell)] ?? -1;
  }

  /** @param {number} y */
  lineAt(y) {
    return this.lines.find(({ top, height }) => y >= top && y < top + height);
  }

  /** Outlines the cone of a task, over several frames if it is large. @param {number} row @param {boolean} [isForced] */
  hover(row, isForced = false) {
    if (row === this.at && !isForced) return;
    this.at = row;
    cancelAnimationFrame(this.frame);
    const context = this.overlay.getContext("2d");
    if (!context) return;
    context.clearRect(0, 0, this.overlay.width, this.overlay.height);
    if (row < 0) {
      this.tip.textContent = "";
      return;
    }
    this.tip.textContent = `${this.columns.ids[row]}: ${NAMES[this.states[row]] ?? ""}`;
    const style = getComputedStyle(document.documentElement);
    const ink = style.getPropertyValue("--ink").trim();
    context.fillStyle = style.getPropertyValue("--veil").trim();
    context.fillRect(0, 0, this.overlay.width, this.overlay.height);
    const cone = this.cone(row);
    const step = () => {
      const begin = performance.now();
      let next = cone.next();
      while (!next.done) {
        this.cellOf(context, next.value);
        if (performance.now() - begin > BUDGET) break;
        next = cone.next();
      }
      if (next.done) this.outline(context, row, ink);
      else this.frame = requestAnimationFrame(step);
      this.measured += 1;
      if (this.measured % 1000 === 0) performance.clearMeasures("matrix-frame");
      performance.measure("matrix-frame", { start: begin, end: performance.now() });
    };
    step();
  }

  /**
   * @param {CanvasRenderingContext2D} context
   * @param {number} row
   * @param {string} colour
   */
  outline(context, row, colour) {
    const { cell } = this;
    const { spots } = this;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    context.strokeRect(spots[row * 2] + 1, spots[row * 2 + 1] + 1, cell - 2, cell - 2);
  }

  /** Finds the task with everything before and behind it. @param {number} row */
  * cone(row) {
    this.stamp += 1;
    this.seen[row] = this.stamp;
    yield row;
    for (const { from, others } of this.neighbours()) {
      const next = [row];
      for (let at = next.pop(); at !== undefined; at = next.pop()) {
        for (let edge = from[at]; edge < from[at + 1]; edge += 1) {
          const other = others[edge];
          if (this.seen[other] === this.stamp) continue;
          this.seen[other] = this.stamp;
          next.push(other);
          yield other;
        }
      }
    }
  }

  /** Returns the dependencies and the dependents of all rows, each row's one after the other from `from[row]` on. */
  neighbours() {
    this.near ??= [grouped(this.columns, 0), grouped(this.columns, 1)];
    return this.near;
  }

  /** Unfolds all bands, or folds those that have ended. */
  toggle() {
    this.isFolding = !this.isFolding;
    this.unfolded.clear();
    this.layout(true);
    return this.isFolding;
  }

  /** @param {number} row */
  enter(row) {
    if (row >= 0) this.open(this.columns.ids[row]);
  }

  /** @param {KeyboardEvent} event */
  press(event) {
    const lines = this.lines.filter(({ rows }) => rows.length > 0);
    let line = lines.findIndex(({ rows }) => rows.includes(this.at));
    let column = line < 0 ? 0 : lines[line].rows.indexOf(this.at);
    if (event.key === "Enter") return this.enter(this.at);
    if (line < 0) line = 0;
    else if (event.key === "ArrowRight") column += 1;
    else if (event.key === "ArrowLeft") column -= 1;
    else if (event.key === "ArrowDown") line += 1;
    else if (event.key === "ArrowUp") line -= 1;
    else return;
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const rows = lines[Math.max(0, Math.min(line, lines.length - 1))]?.rows ?? [];
    this.hover(rows[Math.max(0, Math.min(column, rows.length - 1))] ?? -1);
  }
}

/**
 * Groups edges by one of their ends.
 * @param {Columns} columns
 * @param {0 | 1} end
 */
function grouped({ ids, edges }, end) {
  const from = new Int32Array(ids.length + 1);
  for (let at = end; at < edges.length; at += 2) from[edges[at] + 1] += 1;
  for (let row = 0; row < ids.length; row += 1) from[row + 1] += from[row];
  const [others, filled] = [new Int32Array(edges.length / 2), from.slice()];
  for (let at = 0; at < edges.length; at += 2) {
    const row = edges[at + end];
    others[filled[row]] = edges[at + 1 - end];
    filled[row] += 1;
  }
  return { from, others };
}

/**
 * Draws a state as a shape, so that colour alone never tells it.
 * @param {CanvasRenderingContext2D} context
 * @param {string} letter
 * @param {number} cell
 * @param {string} colour
 * @param {string} paper
 */
function paint(context, letter, cell, colour, paper) {
  const size = cell - (cell > 9 ? 3 : 1);
  const middle = size / 2;
  context.fillStyle = context.strokeStyle = colour;
  context.lineWidth = Math.max(1, size / 8);
  const isHollow = "wmcs".includes(letter);
  if (letter === "w") {
    context.globalAlpha = 0.55;
  }
  context.beginPath();
  if (letter === "x" || letter === "h") context.arc(middle, middle, middle, 0, 7);
  else context.roundRect(isHollow ? 1 : 0, isHollow ? 1 : 0, isHollow ? size - 2 : size, isHollow ? size - 2 : size, size / 6);
  if (isHollow) context.stroke();
  else context.fill();
  context.globalAlpha = 1;
  if (size < 7) return;
  context.strokeStyle = context.fillStyle = isHollow ? colour : paper;
  context.beginPath();
  const [low, high] = [size * 0.3, size * 0.7];
  if (letter === "f") {
    context.moveTo(low, low); context.lineTo(high, high); context.moveTo(high, low); context.lineTo(low, high);
  } else if (letter === "d") {
    context.moveTo(low, middle); context.lineTo(size * 0.45, high); context.lineTo(high, low);
  } else if (letter === "q") {
    context.moveTo(middle, size * 0.2); context.lineTo(middle, size * 0.6); context.moveTo(middle, size * 0.72); context.lineTo(middle, size * 0.84);
  } else if (letter === "b" || letter === "s" || letter === "c") {
    context.moveTo(low, middle); context.lineTo(high, middle);
  } else if (letter === "r") {
    context.moveTo(low, low); context.lineTo(high, middle); context.lineTo(low, high); context.closePath();
  } else if (letter === "x") {
    context.arc(middle, middle, size * 0.18, 0, 7);
  }
  context.stroke();
}
