/**
 * The credential of this tab. It lives in sessionStorage: other tabs have their own, and it goes with the tab. Where a cookie carries the
 * credential there is none here, and none is needed.
 */

const KEY = 'reattach.token'

/** The token, or an empty string. */
export function token() {
  try {
    return sessionStorage.getItem(KEY) ?? ''
  } catch {
    return held
  }
}

let held = ''

/** Use another token from now on; an empty one is none. */
export function setToken(value) {
  held = value
  try {
    if (value) sessionStorage.setItem(KEY, value)
    else sessionStorage.removeItem(KEY)
  } catch {
    // Storage is forbidden here: the token lives as long as the page.
  }
  for (const listener of listeners) listener()
}

const listeners = new Set()

/** Hear when the token changes. */
export function onToken(listener) {
  listeners.add(listener)
  return () => listeners.delete(listener)
}
