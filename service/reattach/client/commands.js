/**
 * What a person asks for: start, cancel, answer. Each is sent again until it is answered, always under the same key, so that one click is
 * one command however often it travels.
 */
import { Http } from './http.js'

/**
 * Start a run.
 *
 * @param {object} request `agent`, `input`, and what else `POST /agent-runs` takes.
 * @param {import('./reattach.js').CommandOptions} [options]
 * @returns {Promise<object>} The new run's snapshot, or that of the run this key started before.
 * @throws {import('./errors.js').ReattachError}
 */
export function start(request, options = {}) {
  return command('/agent-runs', request, {}, options)
}

/**
 * Ask a run to stop. Nothing else does: a page that closes stops nothing.
 *
 * @param {string} runId
 * @param {{ reason?: string, wait?: number }} [about] `wait`: seconds to wait for what becomes of it; 10 by default.
 * @param {import('./reattach.js').CommandOptions} [options]
 * @returns {Promise<object>} Its `disposition` is what really happened.
 * @throws {import('./errors.js').ReattachError}
 */
export function cancel(runId, { reason, wait = 10 } = {}, options = {}) {
  return command(`/agent-runs/${encodeURIComponent(runId)}/cancel`, reason === undefined ? {} : { reason }, wait ? { wait } : {}, options)
}

/**
 * Answer a run that waits.
 *
 * @param {string} runId
 * @param {{ wait_id: string, value: unknown }} given `wait_id` is in the snapshot's `waiting`.
 * @param {import('./reattach.js').CommandOptions} [options]
 * @throws {import('./errors.js').ReattachError} `wait_not_open`: it does not wait for this any more.
 */
export function answer(runId, { wait_id, value }, options = {}) {
  return command(`/agent-runs/${encodeURIComponent(runId)}/inputs`, { wait_id, value }, {}, options)
}

function command(path, body, query, { key = unique(), signal, patience, ...options }) {
  return new Http(options).ask(path, { body, key, query, signal, patience })
}

function unique() {
  const bytes = globalThis.crypto.getRandomValues(new Uint8Array(16))
  return Array.from(bytes, byte => byte.toString(16).padStart(2, '0')).join('')
}
