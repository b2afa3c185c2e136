// @ts-check
// The drawings of the server: zoom of the timeline, and the keyboard in the graph.

/** Width of the whole timeline, in units of the drawing. */
const WIDTH = 100000;
const MAX_ZOOM = 200;

export class Timeline {
  /** @param {HTMLElement} drawing */
  constructor(drawing) {
    this.drawing = drawing;
    this.zoom = 1;
    this.left = 0;
    this.controls = document.querySelector(".zoom");
    this.press = (/** @type {Event} */ event) => {
      const word = /** @type {HTMLElement} */ (event.target).closest("button")?.dataset.zoom;
      const half = WIDTH / this.zoom / 2;
      if (word === "in") this.show(this.zoom * 2, this.left + half);
      else if (word === "out") this.show(this.zoom / 2, this.left + half);
      else if (word === "left") this.show(this.zoom, this.left + half / 2);
      else if (word === "right") this.show(this.zoom, this.left + half * 1.5);
      else if (word === "all") this.show(1, 0);
    };
    this.controls?.addEventListener("click", this.press);
    drawing.addEventListener("wheel", (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      const box = drawing.getBoundingClientRect();
      const middle = this.left + (event.clientX - box.left) / box.width * WIDTH / this.zoom;
      this.show(this.zoom * (event.deltaY < 0 ? 1.4 : 1 / 1.4), middle);
    }, { passive: false });
  }

  close() {
    this.controls?.removeEventListener("click", this.press);
  }

  /** A refresh of the screen has drawn everything: the part that was seen is shown again. */
  refresh() {
    setTimeout(() => this.show(this.zoom, this.left + WIDTH / this.zoom / 2), 400);
  }

  /** @param {number} zoom @param {number} middle */
  show(zoom, middle) {
    this.zoom = Math.min(MAX_ZOOM, Math.max(1, zoom));
    const width = WIDTH / this.zoom;
    this.left = Math.min(WIDTH - width, Math.max(0, middle - width / 2));
    const height = this.drawing.getAttribute("height") ?? "20";
    this.drawing.setAttribute("viewBox", `${this.left} 0 ${width} ${height}`);
  }
}

export class Graph {
  /** @param {HTMLElement} place */
  constructor(place) {
    this.place = place;
    place.addEventListener("keydown", (event) => this.press(event));
    place.querySelector(".here")?.scrollIntoView({ block: "center", inline: "center" });
  }

  close() {}

  /** @param {KeyboardEvent} event */
  press(event) {
    const node = /** @type {Element} */ (event.target).closest("[data-node]") ?? (event.key.startsWith("Arrow") ? this.place.querySelector(".here") : null);
    const [before, after] = ["data-before", "data-after"].map((name) => (node?.getAttribute(name) ?? "").split(" ").filter(Boolean));
    const sibling = (/** @type {number} */ by) => {
      // Up and down walk through the neighbours of the node that led here, in the order of the drawing.
      const all = [...this.place.querySelectorAll("[data-node]")].filter((other) => x(other) === x(/** @type {Element} */ (node)));
      all.sort((one, other) => y(one) - y(other));
      return all[all.indexOf(/** @type {Element} */ (node)) + by]?.getAttribute("data-node");
    };
    if (!node) return;
    const next = { ArrowLeft: before[0], ArrowRight: after[0], ArrowUp: sibling(-1), ArrowDown: sibling(1) }[event.key];
    if (!event.key.startsWith("Arrow")) return;
    event.preventDefault();
    const target = next === undefined || next === null ? node : this.place.querySelector(`[data-node="${next}"]`);
    /** @type {HTMLElement | null} */ (/** @type {unknown} */ (target))?.focus();
    target?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

/** @param {Element} node */
const x = (node) => Number(node.querySelector("rect")?.getAttribute("x"));
/** @param {Element} node */
const y = (node) => Number(node.querySelector("rect")?.getAttribute("y"));
