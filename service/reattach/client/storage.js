/** The tab's own storage: only ever to be faster. Whatever is in it, or that there is none, changes nothing else. */

const PREFIX = 'reattach:'

/** Beyond that, what was missed is more than the snapshot, milliseconds. */
const YOUNG = 60_000

/** The place where this tab was a moment ago, as a cursor; undefined where nothing usable is stored. */
export function read(name) {
  try {
    const [, sequence, at] = /^([1-9][0-9]{0,15}) ([0-9]+)$/.exec(globalThis.sessionStorage.getItem(PREFIX + name))
    return Math.abs(Date.now() - Number(at)) < YOUNG ? sequence : undefined
  } catch {
    return undefined
  }
}

/** Remember the place. */
export function write(name, sequence) {
  try {
    globalThis.sessionStorage.setItem(PREFIX + name, `${sequence} ${Date.now()}`)
  } catch {
    // Full, not allowed here, or no browser.
  }
}
