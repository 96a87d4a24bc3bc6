/** What the service refuses, and what could not be asked. */

/**
 * A request that was not done. `code` is stable: the service's own (`run_not_found`, `wait_not_open` …), or `unreachable` where no
 * answer came, or `unexpected` where somebody else answered.
 */
export class ReattachError extends Error {
  name = 'ReattachError'

  /**
   * @param {string} code
   * @param {string} detail For a person.
   * @param {{ status?: number, retryAfter?: number | null, problem?: object | null, cause?: unknown }} [about] `retryAfter` in milliseconds.
   */
  constructor(code, detail, { status = 0, retryAfter = null, problem = null, cause } = {}) {
    super(detail, { cause })
    this.code = code
    this.status = status
    this.retryAfter = retryAfter
    this.problem = problem
  }

  /** Whether the same request may succeed later: nobody answered, somebody else did, or the service said so. */
  get again() {
    return this.status >= 500 || [0, 200, 408, 425, 429].includes(this.status)
  }

  /** The error as plain data, for pages and other tabs. */
  get told() {
    return Object.freeze({ code: this.code, status: this.status, detail: this.message, problem: this.problem })
  }

  /** Whether the place to go on from is not one any more: take the snapshot. */
  get isCursor() {
    return this.code.includes('cursor')
  }
}

/** The error that a response tells of. */
export async function refusal(response) {
  const { status } = response
  const retryAfter = delay(response.headers.get('retry-after'))
  let problem = null
  try {
    if (/^application\/(problem\+)?json/.test(response.headers.get('content-type') ?? '')) problem = await response.json()
    else await response.body?.cancel()
  } catch {
    // Cut off in the middle: the status is all there is to know.
  }
  if (typeof problem?.code !== 'string') return new ReattachError('unexpected', `the answer was ${status}`, { status, retryAfter })
  return new ReattachError(problem.code, String(problem.detail ?? problem.title ?? problem.code), { status, retryAfter, problem })
}

/** `Retry-After` in milliseconds, of either form (RFC 9110, section 10.2.3); null where it says nothing. */
function delay(value) {
  if (value === null) return null
  const ms = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - Date.now()
  return Number.isFinite(ms) ? Math.min(Math.max(ms, 0), 3_600_000) : null
}
