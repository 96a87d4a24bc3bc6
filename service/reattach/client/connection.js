/**
 * The connection of a page to one event stream: kept up by a `Line`, shared with the other tabs of the browser where it can be, and
 * awake exactly when the page is.
 *
 * It promises to tell `sink` of every event after `sink.cursor()` in order, or that it could not. Sharing weakens that: a tab that heard
 * nothing for a while may have missed something. So whoever listens checks the sequence.
 */
import { ReattachError } from './errors.js'
import { Line } from './line.js'
import { watchPage } from './page.js'
import { Tabs } from './tabs.js'

const STALL = 40_000

export class Connection {
  #http
  #path
  #share
  #stall
  #sink
  #line
  #tabs = null
  #unwatch = null
  #entered = false
  #leading = false
  #life = 0
  #toldAt = 0
  #told = null

  /** How it is: see `ConnectionStatus`. A new object whenever it changed. */
  status = Object.freeze({ state: 'idle', leader: false, shared: false, reason: null, retryAt: null, failures: 0, error: null })

  /**
   * @param {string} path Of the events, e.g. `/agent-runs/run_…/events`.
   * @param {import('./http.js').Http} http
   * @param {import('./reattach.js').Options & { isLast?: (frame: object) => boolean }} options
   * @param {{ cursor: () => string | null | undefined, frames: Function, status: Function, lost: Function, behind?: Function,
   *   woken?: Function, asleep?: Function }} sink `cursor` is the last event it has; null for none, undefined while it does not know yet.
   */
  constructor(path, http, { share = true, stall = STALL, delay, isLast = () => false }, sink) {
    this.#http = http
    this.#path = path
    this.#share = share && Tabs.possible
    this.#stall = stall
    this.#sink = sink
    const heard = {
      frames: frames => this.#heard(frames),
      state: state => this.#moved(state),
      lost: error => sink.lost(error),
      heard: () => this.#beat(),
    }
    this.#line = new Line(http, path, { stall, delay, isLast }, heard)
  }

  /**
   * Begin, or begin again after a refusal: hear what other tabs hear, and connect after `sink.cursor` when it is this tab's turn and the
   * cursor is known. Called again once it is, and whenever it is known better than before; what runs is left alone.
   */
  open() {
    this.#unwatch ??= watchPage({ wake: () => this.nudge(), sleep: () => this.#sleep(), rise: () => this.#rise() })
    if (this.status.state === 'paused') return
    if (!this.#entered) this.#enter()
    else if (this.#leading) this.#start()
  }

  /** Something in the world has changed: look at once whether all is well. */
  nudge() {
    if (this.status.state === 'paused') return this.#rise()
    if (this.#leading) this.#line.nudge()
    else this.#tabs?.say({ kind: 'nudge' })
    this.#sink.woken?.()
  }

  /** Lose the connection, and find none for so many milliseconds: to try out what a page does then. The run does not notice. */
  cut(ms) {
    if (this.#leading) this.#line.cut(ms)
    else this.#tabs?.say({ kind: 'cut', ms })
  }

  /** Stop for good; the run does not notice. */
  close(state = 'closed', error = null) {
    this.#leave()
    this.#unwatch?.()
    this.#unwatch = null
    this.#show({ state, error: error?.told ?? null })
  }

  async #enter() {
    const life = ++this.#life
    this.#entered = true
    this.#show({ state: 'connecting' })
    if (!this.#share) return this.#lead()
    const name = typeof this.#share === 'string' ? this.#share : await this.#http.identity().catch(() => null)
    if (life !== this.#life) return
    // Without a token there is nothing to share under; the line will meet the same trouble and say so.
    if (name === null) return this.#lead()
    const on = { lead: () => this.#lead(), follow: () => this.#follow(), hear: message => this.#hear(message) }
    this.#tabs = new Tabs(`reattach ${this.#http.base}${this.#path} ${name}`, 1.5 * this.#stall, on)
    this.#tabs.join()
  }

  #leave() {
    this.#life++
    this.#entered = this.#leading = false
    if (this.#line.running) this.#line.stop()
    this.#tabs?.leave()
    this.#tabs = null
  }

  #lead() {
    this.#leading = true
    this.#start()
  }

  #start() {
    const cursor = this.#sink.cursor()
    if (cursor !== undefined && !this.#line.running) this.#line.start(cursor)
  }

  #follow() {
    this.#leading = false
    this.#line.stop()
    this.#show({ state: 'connecting' })
  }

  #sleep() {
    this.#sink.asleep?.()
    if (!this.#unwatch || this.status.state === 'paused') return
    this.#leave()
    this.#show({ state: 'paused' })
  }

  #rise() {
    if (this.#unwatch && this.status.state === 'paused') this.#enter()
    this.#sink.woken?.()
  }

  #heard(frames) {
    this.#toldAt = Date.now()
    // The others first: what this tab makes of it may end the sharing.
    this.#tabs?.say({ kind: 'frames', frames })
    this.#sink.frames(frames)
  }

  #moved(line) {
    if (!this.#leading) return
    const { error = null, ...state } = line
    this.#told = { kind: 'status', status: { ...state, error: error instanceof ReattachError ? error.told : null }, cursor: this.#line.cursor }
    this.#tabs?.say(this.#told)
    this.#show(this.#told.status)
    // The next tab may have better luck: its token is its own.
    if (state.state === 'refused' || state.state === 'ended') this.#leave()
  }

  #beat() {
    if (!this.#tabs || Date.now() - this.#toldAt < this.#stall / 8) return
    this.#toldAt = Date.now()
    this.#tabs.say({ kind: 'beat' })
  }

  #hear(message) {
    if (this.#leading) {
      if (message.kind === 'hello' && this.#told) this.#tabs.say({ ...this.#told, cursor: this.#line.cursor })
      else if (message.kind === 'nudge') this.#line.nudge()
      else if (message.kind === 'cut') this.#line.cut(message.ms)
      return
    }
    if (message.kind === 'frames') this.#sink.frames(message.frames)
    else if (message.kind === 'status' && !['refused', 'ended', 'idle'].includes(message.status.state)) {
      this.#show(message.status)
      if (message.cursor !== null) this.#sink.behind?.(Number(message.cursor.slice(message.cursor.lastIndexOf(':') + 1)))
    }
  }

  #show({ state, reason = null, retryAt = null, failures = 0, error = null }) {
    this.status = Object.freeze({ state, leader: this.#leading, shared: Boolean(this.#share), reason, retryAt, failures, error })
    this.#sink.status(this.status)
  }
}
