/**
 * One stream, kept up: it connects, reads, notices silence, and connects again after the last event it handed on.
 *
 * Every attempt is a generation. Whatever an earlier one still has to say, a late response or a chunk in flight, belongs to nobody.
 */
import { ReattachError, refusal } from './errors.js'
import { spread } from './pace.js'
import { EventStreamParser } from './sse.js'

const RETRY = 1000
/** After the end of a stream that had merely become old, or of a token that had. */
const SOON = 250
/** Between two attempts that nobody asked for twice. */
const APART = 250

export class Line {
  #http
  #path
  #sink
  #stall
  #delay
  #isLast
  #generation = 0
  #controller = null
  #timer = null
  #failures = 0
  #retry = RETRY
  #refresh = false
  #startedAt = 0
  #notBefore = 0
  #heardAt = 0
  #cutUntil = 0
  #ended = false

  /** The last event that was handed on; the next connection begins after it. */
  cursor = null
  /** `idle` `connecting` `live` `retrying` `offline` `ended` `refused`, and why. */
  state = { state: 'idle' }

  /**
   * @param {import('./http.js').Http} http
   * @param {string} path Of the events.
   * @param {{ stall: number, delay?: Function, isLast: (frame: object) => boolean }} about `stall`: milliseconds of silence after which a
   *   connection is taken for dead. `delay`: chooses the pause before the next attempt instead of the line.
   * @param {{ frames: Function, state: Function, lost: Function }} sink
   */
  constructor(http, path, { stall, delay, isLast }, sink) {
    this.#http = http
    this.#path = path
    this.#stall = stall
    this.#delay = delay
    this.#isLast = isLast
    this.#sink = sink
  }

  /** Whether it is connected or will be by itself. */
  get running() {
    return ['connecting', 'live', 'retrying', 'offline'].includes(this.state.state)
  }

  /** Connect now, after this event; null for the first one. */
  start(cursor) {
    this.cursor = cursor
    this.#ended = false
    this.#attempt()
  }

  /** Disconnect, and stay so. */
  stop(state = { state: 'idle' }) {
    this.#drop()
    this.#tell(state)
  }

  /** Something in the world has changed: do not wait longer than has to be, and trust no connection that has been silent. */
  nudge() {
    const { state } = this.state
    const now = Date.now()
    if (state === 'live' || state === 'connecting') {
      if (now - this.#heardAt > this.#stall) this.#attempt()
    } else if ((state === 'retrying' || state === 'offline') && now >= Math.max(this.#notBefore, this.#startedAt + APART)) this.#attempt()
  }

  /** Lose the connection, and find none for so many milliseconds: to try out what a page does then. */
  cut(ms) {
    this.#cutUntil = Date.now() + ms
    if (this.running) this.#fail('cut')
  }

  #drop() {
    this.#generation++
    clearTimeout(this.#timer)
    this.#controller?.abort()
    this.#controller = null
  }

  #tell(state) {
    this.state = Object.freeze(state)
    this.#sink.state(this.state)
  }

  async #attempt() {
    this.#drop()
    const generation = this.#generation
    const { signal } = (this.#controller = new AbortController())
    this.#startedAt = this.#heardAt = Date.now()
    this.#watch()
    this.#tell({ state: 'connecting', failures: this.#failures })
    const current = () => generation === this.#generation
    try {
      if (this.#startedAt < this.#cutUntil) throw new ReattachError('unreachable', 'the connection is cut')
      const response = await this.#request(signal)
      if (!current()) return void response.body?.cancel().catch(() => {})
      await this.#answer(response, current)
    } catch (error) {
      if (current()) this.#met(error)
    }
  }

  async #request(signal) {
    const refresh = this.#refresh
    this.#refresh = false
    const query = this.cursor === null ? {} : { after: this.cursor }
    return this.#http.send(this.#path, { query, headers: { accept: 'text/event-stream' }, signal, refresh })
  }

  async #answer(response, current) {
    if (response.status === 204) return this.stop({ state: 'ended' })
    const type = response.headers.get('content-type') ?? ''
    if (response.status !== 200) throw await refusal(response)
    if (!type.startsWith('text/event-stream')) {
      await response.body?.cancel()
      throw new ReattachError('unexpected', `the answer is ${type || 'of no type'}, not an event stream`, { status: 200 })
    }
    this.#tell({ state: 'live' })
    const parser = new EventStreamParser()
    const reader = response.body.getReader()
    for (;;) {
      const { done, value } = await reader.read()
      if (!current()) return
      if (done) break
      this.#heardAt = Date.now()
      this.#failures = 0
      this.#take(parser.feed(value))
      if (!current()) return
      this.#retry = parser.retry ?? this.#retry
      this.#sink.heard?.()
    }
    // A complete body means the end only after the run's last event; else somebody between here and the server closed it politely.
    if (this.#ended) this.stop({ state: 'ended' })
    else this.#fail('closed')
  }

  #take(frames) {
    const closing = frames.findIndex(frame => frame.event === 'stream.closing')
    const events = (closing < 0 ? frames : frames.slice(0, closing)).filter(frame => frame.id !== null)
    if (events.length) {
      const generation = this.#generation
      this.cursor = events.at(-1).id
      this.#ended = events.some(this.#isLast)
      this.#sink.frames(events)
      if (generation !== this.#generation) return
    }
    if (closing >= 0) this.#closing(frames[closing])
  }

  #closing({ data }) {
    let reason = 'closing'
    try {
      reason = String(JSON.parse(data).reason)
    } catch {
      // The server says goodbye in words that this version does not know.
    }
    // Access may be gone, or only the token: the next one is asked for anew.
    this.#refresh = reason === 'unauthorized'
    this.#fail(reason)
  }

  #met(error) {
    if (!(error instanceof ReattachError)) return this.#fail('broken', error)
    if (error.again) return this.#fail(error.code, error)
    this.#drop()
    if (!error.isCursor) return this.#tell({ state: 'refused', error })
    this.#tell({ state: 'idle' })
    this.#sink.lost(error)
  }

  #fail(reason, error = null) {
    this.#drop()
    this.#failures++
    const planned = ['lifetime', 'unauthorized'].includes(reason) && Date.now() - this.#startedAt > RETRY
    const about = { failures: this.#failures, reason, retry: this.#retry, retryAfter: error?.retryAfter ?? null }
    const wait = this.#delay?.(about) ?? (planned ? Math.random() * SOON : spread(this.#retry, this.#failures))
    const now = Date.now()
    this.#notBefore = now + (about.retryAfter ?? 0)
    // Who was sent away together comes back one by one.
    const earliest = about.retryAfter ? about.retryAfter * (1 + Math.random() / 5) : 0
    const retryAt = Math.max(now + Math.max(wait, earliest), this.#cutUntil)
    this.#timer = setTimeout(() => this.#attempt(), retryAt - now)
    const state = globalThis.navigator?.onLine === false ? 'offline' : 'retrying'
    this.#tell({ state, reason, retryAt, failures: this.#failures, error })
  }

  #watch() {
    const generation = this.#generation
    const look = () => {
      if (generation !== this.#generation) return
      const silent = Date.now() - this.#heardAt
      if (silent >= this.#stall) this.#fail('stalled')
      else this.#timer = setTimeout(look, this.#stall - silent)
    }
    this.#timer = setTimeout(look, this.#stall)
  }
}
