/** Values that never change: a snapshot is handed to pages, which compare by identity. */

/**
 * Freeze a JSON value with all that is in it. What is frozen already is not walked through again.
 *
 * @template T
 * @param {T} value
 * @returns {T}
 */
export function freeze(value) {
  // By hand instead of by recursion: what an agent says may be nested as deep as the server lets it.
  const open = [value]
  while (open.length) {
    const next = open.pop()
    if (typeof next !== 'object' || next === null || Object.isFrozen(next)) continue
    Object.freeze(next)
    open.push(...Object.values(next))
  }
  return value
}

/** The object with these members changed; the same object where all of them are the same already. */
export function put(object, members) {
  return Object.entries(members).every(([name, value]) => Object.is(object[name], value)) ? object : Object.freeze({ ...object, ...members })
}

/** The list with the item at this place replaced, or added at its end. */
export function place(list, at, item) {
  const next = list.slice()
  next[at < 0 ? list.length : at] = item
  return Object.freeze(next)
}
