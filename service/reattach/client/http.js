/** Requests to the service: where it is, who asks, and what is tried again. */
import { ReattachError, refusal } from './errors.js'
import { pause, spread } from './pace.js'

export class Http {
  #base
  #token
  #ticket
  #fetch
  #credentials

  /** @param {import('./reattach.js').Options} options */
  constructor({ base = '', token, ticket, fetch, credentials = 'same-origin' } = {}) {
    this.#base = String(base).replace(/\/+$/, '')
    this.#token = token
    this.#ticket = ticket
    this.#fetch = fetch
    this.#credentials = credentials
  }

  /** Where requests go, as an absolute address where the page has one. */
  get base() {
    const here = globalThis.location?.href
    return here ? new URL(this.#base || '/', here).href.replace(/\/+$/, '') : this.#base
  }

  /** Whose requests these are, as far as a token can tell: what other tabs must have in common to share a connection. */
  async identity() {
    const token = await this.#token?.({ refresh: false })
    return token ? digest(claims(token)) : ''
  }

  /**
   * Send one request; its response, whatever the status. A 401 is met by asking once more for a token.
   *
   * @throws {ReattachError} `unreachable`: no answer came.
   */
  async send(path, { query = {}, headers = {}, refresh = false, ...request } = {}) {
    const response = await this.#once(path, query, headers, request, refresh)
    if (response.status !== 401 || refresh || !(this.#token || this.#ticket)) return response
    await response.body?.cancel()
    return this.#once(path, query, headers, request, true)
  }

  async #once(path, query, headers, request, refresh) {
    const [token, ticket] = await Promise.all([this.#token?.({ refresh }), request.method ? null : this.#ticket?.({ refresh })])
    const search = new URLSearchParams({ ...query, ...(ticket && { ticket }) }).toString()
    const given = { cache: 'no-store', credentials: this.#credentials, ...request }
    const about = { ...headers, ...(token && { authorization: `Bearer ${token}` }) }
    try {
      const fetch = this.#fetch ?? globalThis.fetch
      return await fetch(`${this.#base}${path}${search && '?'}${search}`, { ...given, headers: about })
    } catch (cause) {
      if (request.signal?.aborted) throw request.signal.reason
      throw new ReattachError('unreachable', 'the service cannot be reached', { cause })
    }
  }

  /**
   * Ask for JSON, again and again while that may help.
   *
   * @param {string} path
   * @param {{ body?: unknown, key?: string, query?: object, signal?: AbortSignal, patience?: number, etag?: string }} [about] With a `body`
   *   it is a POST, and safe to send again only with a `key`. `patience`: milliseconds after which no new attempt begins.
   * @returns {Promise<any>} null for 304.
   * @throws {ReattachError} The service refuses, or did not answer in time.
   */
  async ask(path, { body, key, query, signal, patience = 60_000, etag } = {}) {
    const headers = { accept: 'application/json', ...(etag && { 'if-none-match': etag }) }
    const request = { query, headers, signal }
    if (body !== undefined) {
      Object.assign(request, { method: 'POST', body: JSON.stringify(body) })
      Object.assign(headers, { 'content-type': 'application/json', ...(key && { 'idempotency-key': key }) })
    }
    const until = Date.now() + patience
    for (let failures = 1; ; failures++) {
      try {
        return await this.#answer(await this.send(path, request))
      } catch (error) {
        if (signal?.aborted || !(error instanceof ReattachError) || !error.again) throw error
        const wait = Math.max(spread(1000, failures), error.retryAfter ?? 0)
        if (Date.now() + wait > until) throw error
        await pause(wait, signal)
      }
    }
  }

  async #answer(response) {
    if (response.status === 304) return null
    if (!response.ok) throw await refusal(response)
    try {
      return await response.json()
    } catch (cause) {
      throw new ReattachError('unreachable', 'the answer broke off', { status: response.status, cause })
    }
  }
}

/** What a token says of its owner, without what changes when it is renewed; a token that cannot be read stands for itself. */
function claims(token) {
  try {
    const middle = token.split('.')[1].replaceAll('-', '+').replaceAll('_', '/')
    const { exp, iat, nbf, jti, auth_time, ...lasting } = JSON.parse(atob(middle))
    return JSON.stringify(Object.entries(lasting).sort())
  } catch {
    return token
  }
}

async function digest(text) {
  const hash = await globalThis.crypto.subtle.digest('SHA-256', new TextEncoder().encode(text))
  return Array.from(new Uint8Array(hash).slice(0, 16), byte => byte.toString(16).padStart(2, '0')).join('')
}
