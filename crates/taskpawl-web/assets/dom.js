// @ts-check
// Turning fragments into elements, and changing what is shown without losing focus, selection or scroll.

/** @type {{createHTML(text: string): any} | undefined} */
const policy = /** @type {any} */ (globalThis).trustedTypes?.createPolicy("taskpawl", {
  createHTML: (/** @type {string} */ text) => text,
});

/**
 * Parses a fragment that this server has made; it escapes all data in it.
 * @param {string} text
 */
export function parse(text) {
  const template = document.createElement("template");
  template.innerHTML = policy ? policy.createHTML(text) : text;
  return template.content;
}

/**
 * @param {string} name
 * @param {Record<string, string>} [attributes]
 * @param {(Node | string)[]} children
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** @param {Node} node */
function keyOf(node) {
  return node instanceof Element ? node.getAttribute("data-key") || node.id || "" : "";
}

/**
 * @param {Node} old
 * @param {Node} fresh
 */
function isSame(old, fresh) {
  return old.nodeType === fresh.nodeType && old.nodeName === fresh.nodeName && keyOf(old) === keyOf(fresh);
}

/**
 * Changes the children of one node into those of another.
 * @param {Node} old
 * @param {Node} fresh
 */
export function morph(old, fresh) {
  const keyed = new Map();
  for (const child of old.childNodes) if (keyOf(child)) keyed.set(keyOf(child), child);
  let at = old.firstChild;
  for (const next of [...fresh.childNodes]) {
    const key = keyOf(next);
    const found = key ? keyed.get(key) : undefined;
    if (found && found !== at && isSame(found, next)) {
      old.insertBefore(found, at);
      update(found, next);
    } else if (at && isSame(at, next)) {
      update(at, next);
      at = at.nextSibling;
    } else {
      old.insertBefore(next, at);
    }
  }
  while (at) {
    const next = at.nextSibling;
    old.removeChild(at);
    at = next;
  }
}

/**
 * @param {Node} old
 * @param {Node} fresh
 */
function update(old, fresh) {
  if (!(old instanceof Element) || !(fresh instanceof Element)) {
    if (old.nodeValue !== fresh.nodeValue) old.nodeValue = fresh.nodeValue;
    return;
  }
  // Scripts fill these: what the server sends for them is only their beginning.
  if (old.hasAttribute("data-keep")) return;
  const isOpen = old.nodeName === "DETAILS";
  for (const { name } of [...old.attributes]) {
    if (!fresh.hasAttribute(name) && !(isOpen && name === "open")) old.removeAttribute(name);
  }
  for (const { name, value } of [...fresh.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  // A person may be typing in it.
  if (["INPUT", "SELECT", "TEXTAREA"].includes(old.nodeName)) return;
  morph(old, fresh);
}
