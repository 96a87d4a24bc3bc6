/**
 * Addresses of the console. All of them are behind the `#`, so that one file serves every page and nothing of them reaches a server's log.
 */

/** @typedef {{name: string, id: string, query: URLSearchParams}} Place */

const ID = '([^/?]+)'
const PLACES = [
  ['runs', /^\/?$/],
  ['run', new RegExp(`^/runs/${ID}$`)],
  ['sessions', /^\/sessions$/],
  ['session', new RegExp(`^/sessions/${ID}$`)],
  ['start', /^\/start$/],
]

/**
 * Where an address leads; `lost` for one that leads nowhere.
 *
 * @param {string} hash
 * @returns {Place}
 */
export function read(hash) {
  const [path, query = ''] = split(hash.replace(/^#/, ''))
  for (const [name, form] of PLACES) {
    const match = form.exec(path)
    if (match) return { name, id: decode(match[1] ?? ''), query: new URLSearchParams(query) }
  }
  return { name: 'lost', id: '', query: new URLSearchParams() }
}

function split(text) {
  const at = text.indexOf('?')
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)]
}

function decode(text) {
  try {
    return decodeURIComponent(text)
  } catch {
    return text
  }
}

/** The address of a run's page. */
export function runPlace(id) {
  return `#/runs/${encodeURIComponent(id)}`
}

/** The address of a session's page. */
export function sessionPlace(id) {
  return `#/sessions/${encodeURIComponent(id)}`
}

/** An address with a query; what is empty is left out. */
export function place(path, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value)
  return given.length ? `#${path}?${new URLSearchParams(given)}` : `#${path}`
}
