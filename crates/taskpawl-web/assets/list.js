// @ts-check
// The list of tasks: the rows that are seen, and a few around them, however many there are.

import { morph, parse } from "./dom.js";

/** Height of a row, as the styles set it. */
const ROW = 40;
/** Rows of one read. */
const BLOCK = 100;

export class List {
  /**
   * @param {HTMLElement} place
   * @param {(path: string) => Promise<Response>} request
   */
  constructor(place, request) {
    this.place = place;
    this.request = request;
    this.total = Number(place.dataset.total);
    this.body = /** @type {HTMLElement} */ (place.querySelector("tbody"));
    /** Rows by block. @type {Map<number, Element[]>} */
    this.blocks = new Map();
    this.isBusy = false;
    this.due = 0;
    /** Room for the rows above and below. @type {HTMLElement | undefined} */
    this.above = undefined;
    /** @type {HTMLElement | undefined} */
    this.below = undefined;
    const first = Number(place.dataset.offset);
    if (this.total <= BLOCK) return;
    document.querySelector(".pager")?.remove();
    place.classList.add("virtual");
    place.querySelector("table")?.setAttribute("aria-rowcount", String(this.total + 1));
    this.above = this.spacer();
    this.below = this.spacer();
    this.blocks.set(Math.floor(first / BLOCK), [...this.body.children]);
    place.addEventListener("scroll", () => this.fill());
    this.show([Math.floor(first / BLOCK)]);
    place.scrollTop = Math.floor(first / BLOCK) * BLOCK * ROW;
    this.fill();
  }

  close() {
    clearTimeout(this.due);
  }

  /** Reads the rows that are seen once more. */
  refresh() {
    if (!this.above || this.due) return;
    this.due = setTimeout(async () => {
      this.due = 0;
      for (const block of this.wanted()) await this.read(block);
      this.show(this.wanted());
    }, 300);
  }

  spacer() {
    const row = document.createElement("tr");
    row.setAttribute("aria-hidden", "true");
    row.className = "spacer";
    return row;
  }

  /** Returns the blocks that are seen, and their neighbours. */
  wanted() {
    const [from, to] = [this.place.scrollTop, this.place.scrollTop + this.place.clientHeight];
    const block = (/** @type {number} */ top) => Math.floor(top / ROW / BLOCK);
    const last = Math.floor((this.total - 1) / BLOCK);
    const wanted = [];
    for (let at = Math.max(0, block(from - BLOCK * ROW / 2)); at <= Math.min(last, block(to + BLOCK * ROW / 2)); at += 1) wanted.push(at);
    return wanted;
  }

  async fill() {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      for (;;) {
        const wanted = this.wanted();
        const missing = wanted.find((block) => !this.blocks.has(block));
        this.show(wanted.filter((block) => this.blocks.has(block)));
        if (missing === undefined || !(await this.read(missing))) break;
      }
    } finally {
      this.isBusy = false;
    }
  }

  /** @param {number} block */
  async read(block) {
    const query = new URLSearchParams(location.search);
    query.set("offset", String(block * BLOCK));
    const answer = await this.request(`/fragment/tasks?${query}`);
    if (!answer.ok || !this.place.isConnected) return false;
    const content = parse(await answer.text());
    const rows = [...content.querySelectorAll("#list tbody tr")];
    this.total = Number(/** @type {HTMLElement | null} */ (content.querySelector("#list"))?.dataset.total ?? 0);
    const old = this.blocks.get(block) ?? [];
    rows.forEach((row, index) => {
      row.setAttribute("aria-rowindex", String(block * BLOCK + index + 2));
      const same = old[index];
      // Rows that are shown stay, with focus and selection.
      if (same?.getAttribute("data-key") === row.getAttribute("data-key")) {
        morph(same, row);
        rows[index] = same;
      }
    });
    this.blocks.set(block, rows);
    return true;
  }

  /** @param {number[]} blocks */
  show(blocks) {
    const { above, below } = this;
    if (!above || !below || !blocks.length) return;
    const rows = blocks.flatMap((block) => this.blocks.get(block) ?? []);
    const first = blocks[0] * BLOCK;
    above.style.height = `${first * ROW}px`;
    below.style.height = `${Math.max(0, this.total - first - rows.length) * ROW}px`;
    const wanted = [above, ...rows, below];
    const isSame = wanted.length === this.body.children.length && wanted.every((row, index) => row === this.body.children[index]);
    if (!isSame) this.body.replaceChildren(...wanted);
    for (const block of this.blocks.keys()) if (this.blocks.size > 12 && !blocks.includes(block)) this.blocks.delete(block);
  }
}
