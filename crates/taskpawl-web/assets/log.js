// @ts-check
// The log: windows of lines, loaded while scrolling. At most so many are kept, however long the log is.

import { parse } from "./dom.js";

const WINDOW = 65536;
const KEPT = 12;
const NEAR = 800;

export class Log {
  /**
   * @param {HTMLElement} place
   * @param {(path: string) => Promise<Response>} request
   */
  constructor(place, request) {
    this.place = place;
    this.request = request;
    const { task = "", call = "", start = "", stream = "" } = place.dataset;
    this.task = encodeURIComponent(task);
    this.query = new URLSearchParams({ call, start, stream }).toString();
    this.isBusy = false;
    /** @type {number[]} */
    this.hits = [];
    this.hit = -1;
    this.total = 0;
    this.form = /** @type {HTMLFormElement | null} */ (document.querySelector("#find"));
    this.output = /** @type {HTMLOutputElement | null} */ (this.form?.querySelector("output") ?? null);
    place.addEventListener("scroll", () => this.fill());
    this.form?.addEventListener("submit", (event) => {
      event.preventDefault();
      event.stopPropagation();
      const text = /** @type {HTMLInputElement | null} */ (this.form?.querySelector("input"))?.value;
      if (text) this.find(text);
    });
    this.form?.addEventListener("click", (event) => this.press(/** @type {HTMLElement} */ (event.target)));
    const isLive = place.hasAttribute("data-live");
    if (isLive) place.scrollTop = place.scrollHeight;
    this.timer = isLive ? setInterval(() => this.fill(), 1000) : 0;
    this.fill();
  }

  close() {
    clearInterval(this.timer);
  }

  get windows() {
    return /** @type {HTMLElement[]} */ ([...this.place.querySelectorAll(".window")]);
  }

  /** @param {number} from @param {number} [until] */
  async lines(from, until) {
    const end = until === undefined ? "" : `&until=${until}`;
    const answer = await this.request(`/fragment/lines/${this.task}?${this.query}&from=${from}${end}`);
    return answer.ok ? parse(await answer.text()).querySelector(".window") : null;
  }

  /** Loads what is near the part that is seen. */
  async fill() {
    if (this.isBusy) return;
    this.isBusy = true;
    try {
      while (await this.fillOne());
    } finally {
      this.isBusy = false;
    }
  }

  async fillOne() {
    const { place, windows } = this;
    const [first, last] = [windows[0], windows[windows.length - 1]];
    if (!first || !last) return false;
    const isAtEnd = place.scrollTop + place.clientHeight > place.scrollHeight - 4;
    if (place.scrollTop + place.clientHeight > place.scrollHeight - NEAR) {
      const next = await this.lines(Number(last.dataset.to));
      if (next && Number(/** @type {HTMLElement} */ (next).dataset.to) > Number(last.dataset.to)) {
        place.append(next);
        if (place.hasAttribute("data-live") && isAtEnd) place.scrollTop = place.scrollHeight;
        if (windows.length >= KEPT) this.drop(first, true);
        return !place.hasAttribute("data-live");
      }
    }
    const from = Number(first.dataset.from);
    if (place.scrollTop < NEAR && from > 0) {
      const before = await this.lines(Math.max(0, from - WINDOW), from);
      if (before) {
        const height = place.scrollHeight;
        place.prepend(before);
        place.scrollTop += place.scrollHeight - height;
        if (windows.length >= KEPT) this.drop(last, false);
        return true;
      }
    }
    return false;
  }

  /** @param {HTMLElement} old @param {boolean} isAbove */
  drop(old, isAbove) {
    const height = this.place.scrollHeight;
    old.remove();
    if (isAbove) this.place.scrollTop -= height - this.place.scrollHeight;
  }

  /** @param {number} offset @param {boolean} [isHit] */
  async show(offset, isHit = false) {
    const lines = await this.lines(offset);
    if (!lines) return;
    this.place.replaceChildren(lines);
    this.place.scrollTop = 0;
    if (isHit) {
      const row = lines.querySelector(".row");
      row?.classList.add("hit");
      history.replaceState(null, "", `/log/${this.task}?${this.query}&from=${offset}`);
      await this.fill();
      row?.scrollIntoView({ block: "center" });
    }
    await this.fill();
  }

  /** @param {string} [text] */
  async find(text) {
    const words = text ? `&q=${encodeURIComponent(text)}` : "";
    const answer = await this.request(`/api/v1/tasks/${this.task}/output/find?${this.query}${words}`);
    if (!answer.ok) return this.tell("The search failed.");
    const { total, offsets } = await answer.json();
    this.hits = offsets;
    this.total = total;
    this.hit = -1;
    if (total === 0) return this.tell("Nothing found.");
    await this.step(1);
  }

  /** @param {number} by */
  async step(by) {
    if (!this.hits.length) return;
    this.hit = (this.hit + by + this.hits.length) % this.hits.length;
    await this.show(this.hits[this.hit], true);
    this.tell(`${this.hit + 1} of ${this.total}`);
  }

  /** @param {string} text */
  tell(text) {
    if (this.output) this.output.value = text;
  }

  /** @param {HTMLElement} button */
  press(button) {
    const { find, jump } = button.dataset ?? {};
    if (find) this.find();
    else if (jump === "next") this.step(1);
    else if (jump === "previous") this.step(-1);
    else if (jump === "begin") this.show(0);
    else if (jump === "end") this.end();
  }

  async end() {
    const bytes = Number(this.windows[0]?.dataset.bytes ?? 0);
    await this.show(Math.max(0, bytes - WINDOW / 2));
    this.place.scrollTop = this.place.scrollHeight;
  }
}
