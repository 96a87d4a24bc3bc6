/**
 * Building what is on screen. Text is set as text, always: there is no way to hand markup to any of these functions.
 */

const SVG = 'http://www.w3.org/2000/svg'

/** @typedef {Node | string | number | null | undefined | false} Child */

/**
 * An element.
 *
 * @param {string} tag
 * @param {Record<string, any>} [props] Attributes by name; `on…` with a function listens; false, null and undefined leave one out.
 * @param {...(Child | Child[])} children Strings become text nodes.
 * @returns {any}
 */
export function h(tag, props = {}, ...children) {
  return fill(document.createElement(tag), props, children)
}

/** The same for pictures. */
export function svg(tag, props = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), props, children)
}

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props)) set(element, name, value)
  element.append(...nodes(children))
  return element
}

/** Set one attribute or listener. */
export function set(element, name, value) {
  if (name.startsWith('on') && typeof value === 'function') element.addEventListener(name.slice(2), value)
  else if (value === false || value === null || value === undefined) element.removeAttribute(name)
  else element.setAttribute(name, value === true ? '' : String(value))
}

/** @param {(Child | Child[])[]} children */
function nodes(children) {
  return children.flat(3).filter(child => child !== null && child !== undefined && child !== false && child !== '')
}

/** Replace what an element contains. */
export function replace(element, ...children) {
  element.replaceChildren(...nodes(children))
  return element
}

/** Set an element's text, without touching the document where it says that already. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text
}

let numbers = 0

/** An id that no other element has. */
export function unique(stem) {
  numbers += 1
  return `${stem}-${numbers}`
}

/**
 * Bring a container's children into the order of some items, making and keeping one child for each key.
 *
 * @template T, C
 * @param {Element} container
 * @param {Map<string, C & {element: Element}>} kept What was made before, by key; changed in place.
 * @param {readonly T[]} items
 * @param {(item: T) => string} key
 * @param {(item: T) => C & {element: Element}} make
 * @param {(child: C & {element: Element}, item: T) => void} update
 */
export function reconcile(container, kept, items, key, make, update) {
  const wanted = new Set()
  let place = container.firstElementChild
  for (const item of items) {
    const name = key(item)
    let child = kept.get(name)
    if (child === undefined) kept.set(name, (child = make(item)))
    wanted.add(name)
    update(child, item)
    if (child.element === place) place = place.nextElementSibling
    else container.insertBefore(child.element, place)
  }
  for (const [name, child] of kept) {
    if (wanted.has(name)) continue
    child.element.remove()
    kept.delete(name)
  }
}
